"""What every model is sent, and what comes back when a call does not fit."""

import json
from importlib.resources import files

import pytest

from agent.errors import ToolError
from agent.tools.files import read_file, write_file
from agent.tools.git import git_commit
from agent.tools.registry import chosen, known, offered
from agent.tools.schedule import schedule
from agent.tools.tool import Tool

GOLDEN = json.loads(files("agent").joinpath("prefix/tools.json").read_text("utf-8"))


def test_the_functions_give_the_prefix_to_the_letter() -> None:
    given = [tool.schema for tool in chosen([])]
    assert [json.dumps(schema) for schema in given] == [json.dumps(schema) for schema in GOLDEN]


def test_what_may_be_added() -> None:
    names = [tool.name for tool in chosen(["web_fetch", "bash", "delegate"])]
    assert names == ["bash", "delegate", "web_fetch"]
    assert set(known()) - {s["function"]["name"] for s in GOLDEN} == {"delegate", "web_fetch"}


@pytest.mark.parametrize("name", sorted(known()))
def test_schemas_are_flat_and_plain(name: str) -> None:
    parameters = known()[name].schema["function"]["parameters"]
    assert set(parameters) == {"type", "properties", "required"}
    for schema in parameters["properties"].values():
        assert set(schema) <= {"type", "items", "enum", "description"}
        assert schema["type"] in ("string", "integer", "boolean", "array")


@pytest.mark.parametrize(
    ("tool", "given", "checked"),
    [
        (read_file, {"path": "a", "first": None}, {"path": "a"}),
        (read_file, {"path": "a", "first": "", "last": "null"}, {"path": "a"}),
        (read_file, {"path": "a", "first": "2", "last": "-1"}, {"path": "a", "first": 2, "last": -1}),
        (read_file, {"Path": ["a"], "FIRST": "1.0"}, {"path": "a", "first": 1}),
        (read_file, {"path": "None"}, {"path": "None"}),
        (write_file, {"path": "a", "content": "", "append": ""}, {"path": "a", "content": ""}),
        (write_file, {"path": 5, "content": 1.5}, {"path": "5", "content": "1.5"}),
        (git_commit, {"repo": ".", "message": "m", "files": None}, {"repo": ".", "message": "m"}),
        (git_commit, {"repo": ".", "message": "m", "files": "a"}, {"repo": ".", "message": "m", "files": ["a"]}),
        (git_commit, {"repo": ".", "message": "m", "files": '["a", "b"]'}, {"repo": ".", "message": "m", "files": ["a", "b"]}),
        (schedule, {"when": 9, "task": "x", "kind": "Remind "}, {"when": "9", "task": "x", "kind": "remind"}),
        (schedule, {"when": "9", "task": "x", "kind": "none"}, {"when": "9", "task": "x"}),
    ],
)  # fmt: skip
def test_what_the_schema_can_repair_is_repaired(
    tool: Tool, given: dict[str, object], checked: dict[str, object]
) -> None:
    assert tool.check(given) == checked


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "path is missing. Use read_file(path, first?, last?)."),
        (
            {"path": None},
            "path is missing. Use read_file(path, first?, last?).",
        ),
        (
            {"path": ["a", "b"]},
            "path: Input should be a valid string. Use read_file(path, first?, last?).",
        ),
        (
            {"path": "a", "line": 1},
            "line is not an argument of this tool. Use read_file(path, first?, last?).",
        ),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(ToolError) as caught:
        read_file.check(arguments)
    assert str(caught.value) == said


def test_a_choice_is_one_of_those_offered() -> None:
    with pytest.raises(ToolError, match="'remind', 'task' or 'summary'"):
        schedule.check({"when": "now", "task": "x", "kind": "later"})


def test_tools_for_git_are_offered_where_a_repository_is_configured() -> None:
    names = [schema["function"]["name"] for schema in offered(chosen([]), with_repositories=False)]
    assert names == [tool.name for tool in chosen([]) if not tool.name.startswith("git_")]
    assert len(offered(chosen([]), with_repositories=True)) == len(names) + 3
    fields = {
        known: {s["function"]["name"]: s for s in offered(chosen([]), with_repositories=known)}[
            "schedule"
        ]["function"]["parameters"]["properties"]
        for known in (False, True)
    }
    assert fields[True]["task"]["description"] == (
        "the text to send, the task to do, the repository to summarise, or watch and what to look at"
    )
    assert fields[True]["kind"]["enum"] == ["remind", "task", "summary"]
    assert fields[False] == {
        **fields[True],
        "task": fields[True]["task"]
        | {"description": "the text to send, the task to do, or watch and what to look at"},
        "kind": fields[True]["kind"] | {"enum": ["remind", "task"]},
    }
