"""The self-test on the real server, with models that say a given text."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from agent.llm.openai import OpenAIModel
from agent.llm.selftest import (
    LOST,
    NO_CALL_REMEDY,
    TEXT_REMEDY,
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
from fakes.model_scripted import ModelServer, calls

TOOLS = json.loads(files("agent").joinpath("prefix/tools.json").read_text("utf-8"))
CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
FENCED = '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```'
SHOWN_FENCE = '```json {"name": "bash", "arguments": {"command": "ls"}} ```'


async def outcome(path: Path, text: str, template: str = TEMPLATE) -> SelfTest:
    async with serve(make_chain(path / "m.gguf", text, template=template)) as endpoint:

        async def source() -> Endpoint:
            return endpoint

        async with OpenAIModel(source) as model:
            return await self_test(model, TOOLS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CALL, SelfTest("structured", "It called bash.", "", "", True, True)),
        (
            FENCED,
            SelfTest(
                "salvaged", f"It wrote its call as text: {SHOWN_FENCE}", TEXT_REMEDY, "", True, True
            ),
        ),
        (
            "I cannot look.",
            SelfTest(
                "none",
                "Asked for one call, it wrote: I cannot look.",
                NO_CALL_REMEDY,
                "",
                True,
                True,
            ),
        ),
    ],
)
async def test_structured_salvaged_or_none(tmp_path: Path, text: str, expected: SelfTest) -> None:
    assert await outcome(tmp_path, text) == expected


async def test_a_template_without_tools_has_them_in_the_system_text(tmp_path: Path) -> None:
    deaf = TEMPLATE.replace("{%- if tools %}", "{%- if false %}")
    found = await outcome(tmp_path, CALL, deaf)
    assert (found.verdict, found.template_error, found.keeps_prefix) == ("salvaged", "", True)


async def test_a_template_without_a_tool_role_has_results_in_the_users(tmp_path: Path) -> None:
    refusing = "{%- for message in messages if message.role == 'tool' %}{{ raise_exception('No tools here, please') }}{%- endfor %}"
    found = await outcome(tmp_path, CALL, refusing + TEMPLATE)
    assert (found.verdict, found.template_error, found.keeps_prefix) == ("salvaged", "", True)


class Dropping:
    """A model whose template shows nobody's words but the person's."""

    async def rendered(self, request: Request) -> str:
        return "".join(message.text for message in request.messages if isinstance(message, User))


async def test_a_template_that_drops_calls_and_results_is_told_of() -> None:
    found = await check_template(Dropping(), (User("Look."),), TOOLS)  # type: ignore[arg-type]
    assert found == (LOST, True, True)


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


async def test_a_template_that_drops_thoughts_at_the_next_message_is_told_of_as_it_is(
    tmp_path: Path,
) -> None:
    found = await outcome(tmp_path, CALL, DROPPING)
    assert (found.template_error, found.keeps_turn, found.keeps_prefix) == ("", True, False)
    assert "between turns" in sentence(found)


async def test_a_server_that_shows_nothing_of_its_template() -> None:
    server = ModelServer(calls("bash", command="ls"))
    async with server, OpenAIModel(server.endpoint) as model:
        found = await self_test(model, TOOLS)
    assert found == SelfTest("structured", "It called bash.", "", "", None)
