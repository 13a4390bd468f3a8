"""Grammars for calls, on the real server with Pocket, whose own form of calls is another."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import backend.embedded
from agent.llm.openai import OpenAIModel
from agent.llm.openai.call_grammar import calls
from agent.llm.tool_call_parser import KnownTools, ToolCallParser
from agent.messages import System, User
from agent.model import Request, completion_of
from agent.prompt import context_block, system_text
from backend.protocol import Endpoint
from fakes.llama_embedded import serve

TOOLS = tuple(json.loads(files("agent").joinpath("prefix/tools.json").read_text("utf-8")))
KNOWN = KnownTools.of(TOOLS)
POCKET = Path(backend.embedded.__file__).with_name("pocket.gguf")
NOW = datetime(2026, 11, 26, 9, 0, tzinfo=UTC)
SURE = {"temperature": 0}
ASKS = (
    "how much disk space is free?",
    "run script.py",
    "thank you",
    "rename a.txt to b.txt",
    "remember that my locker is number 7",
    "remind me in 20 minutes to turn off the oven",
)


@asynccontextmanager
async def pocket() -> AsyncIterator[OpenAIModel]:
    async with serve(POCKET) as endpoint:

        async def source() -> Endpoint:
            return endpoint

        async with OpenAIModel(source) as model:
            yield model


def asked(words: str) -> Request:
    said = User(context_block(NOW, "UTC") + words)
    return Request(
        (System(system_text()), said), TOOLS, max_tokens=200, constrained=True, sampling=SURE
    )


def calls_of(text: str) -> list[tuple[str, set[str]]]:
    parser = ToolCallParser(KNOWN)
    parser.feed(text)
    parser.close()
    return [(call.name, set(call.arguments or {"unreadable"})) for call in parser.calls]


async def test_every_call_is_one_that_can_be_run() -> None:
    made = []
    async with pocket() as model:
        for words in ASKS:
            completion = await completion_of(model, asked(words))
            made += calls_of(completion.text) if completion.finish_reason == "stop" else []
    assert made
    for name, arguments in made:
        schema = next(t["function"] for t in TOOLS if t["function"]["name"] == name)["parameters"]
        assert set(schema["required"]) <= arguments <= set(schema["properties"])


def test_a_tool_without_required_arguments_takes_any_or_none() -> None:
    arguments = {"zone": {"type": "string"}, "offset": {"type": "integer"}}
    parameters = {"properties": arguments, "required": []}
    bound = calls([{"function": {"name": "time", "parameters": parameters}}])
    _, _, rule, *_ = bound["grammar"].splitlines()
    zone, offset = r'"\"zone\"" ws ":" ws string', r'"\"offset\"" ws ":" ws integer'
    taken = f'ws ({zone} (ws "," ws {offset})? | {offset})? ws'
    assert rule.startswith("call0 ::= ") and rule.endswith(f'ws ":" ws "{{" {taken} "}}" ws "}}"')


async def test_a_required_call_is_made_and_an_answer_begins_with_none() -> None:
    async with pocket() as model:
        for words in ASKS[:2]:
            bound = replace(asked(words), tool_choice="required", only=frozenset({"git_status"}))
            called = await completion_of(model, bound)
            assert called.finish_reason == "length" or calls_of(called.text)[0][0] == "git_status"
            said = await completion_of(model, replace(asked(words), tool_choice="none"))
            assert said.text[:1] not in ("{", "<", "[", "`")
