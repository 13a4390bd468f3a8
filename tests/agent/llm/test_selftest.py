"""The self-test on the real server, with models that say a given text."""

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest

import backend.embedded
from agent.llm.openai import OpenAIModel
from agent.llm.selftest import (
    LOST,
    MOST_POINTS,
    SelfTest,
    check_template,
    self_test,
    sentence,
)
from agent.messages import User
from agent.model import Request
from backend.protocol import Endpoint
from fakes.gguf_chain import make_chain
from fakes.gguf_maker import TEMPLATE
from fakes.llama_embedded import serve
from fakes.model_scripted import ModelServer, Reply, ScriptedModel, calls, says

TOOLS = json.loads(files("agent").joinpath("prefix/tools.json").read_text("utf-8"))
CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
FENCED = '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```'


POCKET = Path(backend.embedded.__file__).with_name("pocket.gguf")


async def outcome(path: Path, text: str, template: str = TEMPLATE) -> SelfTest:
    return await verdict_on(make_chain(path / "m.gguf", text, template=template))


async def verdict_on(file: Path) -> SelfTest:
    async with serve(file) as endpoint:

        async def source() -> Endpoint:
            return endpoint

        async with OpenAIModel(source) as model:
            return await self_test(model, TOOLS)


def written(name: str, **arguments: str) -> Reply:
    """A call as a fenced block, which no server reads."""
    return says(f"```json\n{json.dumps({'name': name, 'arguments': arguments})}\n```")


LISTED, NOTED = {"command": "ls"}, {"note": "the spare key is under the blue pot"}
HARBOUR, SAVED, WELCOME = says("There is harbour.txt."), says("Saved."), says("You are welcome.")


@pytest.mark.parametrize(
    ("replies", "verdict", "points"),
    [
        (
            (calls("bash", **LISTED), HARBOUR, calls("remember", **NOTED), SAVED, WELCOME),
            "structured",
            MOST_POINTS,
        ),
        (
            (written("bash", **LISTED), HARBOUR, written("remember", **NOTED), SAVED, WELCOME),
            "salvaged",
            MOST_POINTS,
        ),
        (
            (calls("bash", **LISTED), says("No idea."), calls("remember", note="x"), WELCOME),
            "unreliable",
            2,
        ),
        ((calls("bash", **LISTED),), "unreliable", 1),
        ((written("disk_free"),), "unreliable", 0),
        ((says("I cannot look."),), "unreliable", 1),
    ],
)
async def test_the_verdict_is_what_the_model_does(
    replies: tuple[Reply, ...], verdict: str, points: int
) -> None:
    server = ModelServer(*replies)
    async with server, OpenAIModel(server.endpoint) as model:
        found = await self_test(model, TOOLS)
    assert (found.verdict, found.points, found.constrain) == (verdict, points, False)


@pytest.mark.parametrize(
    ("under_grammar", "constrain"),
    [
        ((written("bash", **LISTED), says("No idea."), written("remember", **NOTED), SAVED, WELCOME), True),
        ((written("bash", **LISTED), says("No idea."), WELCOME), False),
    ],
)  # fmt: skip
async def test_calls_that_come_as_text_get_a_grammar_unless_it_is_much_worse(
    under_grammar: tuple[Reply, ...], constrain: bool
) -> None:
    @dataclass
    class Rendering(ScriptedModel):
        async def shows_prompts(self) -> bool:
            return True

        async def rendered(self, _: Request) -> str | None:
            return None

    good = (written("bash", **LISTED), HARBOUR, written("remember", **NOTED), SAVED, WELCOME)
    found = await self_test(Rendering.of(*good, *under_grammar), TOOLS)
    assert found.constrain is constrain


async def test_the_model_that_ships_calls_tools() -> None:
    found = await verdict_on(POCKET)
    assert (found.verdict, found.points) == ("structured", MOST_POINTS)


async def test_a_grammar_that_the_server_cannot_keep_changes_nothing(tmp_path: Path) -> None:
    # The whole block is one token of this model's, which no grammar can take apart.
    found = await outcome(tmp_path, FENCED)
    assert (found.verdict, found.points, found.constrain) == ("unreliable", 1, False)
    assert found.detail.startswith("It wrote its call as text: ")


async def test_a_template_without_tools_has_them_in_the_system_text(tmp_path: Path) -> None:
    deaf = TEMPLATE.replace("{%- if tools %}", "{%- if false %}")
    found = await outcome(tmp_path, CALL, deaf)
    assert (found.points, found.template_error, found.keeps_prefix) == (1, "", True)


@pytest.mark.slow
async def test_a_template_without_a_tool_role_has_results_in_the_users(tmp_path: Path) -> None:
    refusing = "{%- for message in messages if message.role == 'tool' %}{{ raise_exception('No tools here, please') }}{%- endfor %}"
    found = await outcome(tmp_path, CALL, refusing + TEMPLATE)
    assert (found.points, found.template_error, found.keeps_prefix) == (1, "", True)


class Dropping:
    """A model whose template shows nobody's words but the person's."""

    async def rendered(self, request: Request) -> str:
        return "".join(message.text for message in request.messages if isinstance(message, User))


async def test_a_template_that_drops_calls_and_results_is_told_of() -> None:
    found = await check_template(Dropping(), (User("Look."),), TOOLS)  # type: ignore[arg-type]
    assert found == (LOST, True, True)


@pytest.mark.slow
async def test_a_template_that_changes_what_it_rendered(tmp_path: Path) -> None:
    changing = TEMPLATE.replace(
        "<|im_start|>system\n", "<|im_start|>system {{ messages|length }}\n", 1
    )
    found = await outcome(tmp_path, CALL, changing)
    assert (found.keeps_prefix, found.keeps_turn) == (False, False)
    assert "at each one" in sentence(found)


# Qwen 3.5's and gpt-oss's way: the thoughts of the turn that runs are there, older ones are not.
DROPPING = TEMPLATE.replace(
    "{{ message.content or '' }}",
    "{% if message.reasoning_content and messages[-1].role == 'tool' %}<think>"
    "{{ message.reasoning_content }}</think>{% endif %}{{ message.content or '' }}",
)


@pytest.mark.slow
async def test_a_template_that_drops_thoughts_at_the_next_message_is_told_of_as_it_is(
    tmp_path: Path,
) -> None:
    found = await outcome(tmp_path, CALL, DROPPING)
    assert (found.template_error, found.keeps_turn, found.keeps_prefix) == ("", True, False)
    assert "between turns" in sentence(found)
