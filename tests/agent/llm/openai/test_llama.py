"""Against the real llama.cpp server: what it renders of what it generated."""

import io
import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from PIL import Image

from agent.errors import ContextFull
from agent.llm.openai import OpenAIModel
from agent.llm.tool_call_parser import KnownTools, ToolCallParser
from agent.messages import Assistant, System, ToolCall, ToolResult, User
from agent.model import Completion, PrefillProgress, Request, TextPiece
from agent.store.pictures import data_url
from agent.turn.step import read_step
from backend.protocol import Endpoint
from fakes import gguf_projector
from fakes.gguf_chain import WIDTH, make_chain
from fakes.gguf_maker import TEMPLATE
from fakes.llama_embedded import serve

TOOLS = tuple(json.loads(files("agent").joinpath("prefix/tools.json").read_text("utf-8")))
ASKED = Request((System("You help."), User("list the files")), TOOLS, max_tokens=200)
CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls -la"}}\n</tool_call>'
# As Qwen's: words and a call stand on lines of their own.
QWEN_CONTENT = "(message.content + '\\n') if message.content and message.tool_calls else (message.content or '')"
FENCED = '```json\n{"name": "bash", "arguments": {"command": "ls -la"}}\n```'


async def complete(model: OpenAIModel, request: Request) -> Completion:
    *_, last = [piece async for piece in model.stream(request)]
    assert isinstance(last, Completion)
    return last


def model_of(endpoint: Endpoint) -> OpenAIModel:
    async def source() -> Endpoint:
        return endpoint

    return OpenAIModel(source)


def answered(completion: Completion) -> tuple[Assistant, ToolResult]:
    """The step as the loop keeps it, and a result of its call."""
    known = KnownTools.of(TOOLS)
    reader = ToolCallParser(known)
    reader.feed(completion.text)
    reader.close()
    message = read_step(completion, reader, known, ()).message
    [call] = message.calls
    assert call == ToolCall(call.id, "bash", '{"command": "ls -la"}')
    return message, ToolResult(call.id, "bash", "a.txt")


@pytest.mark.parametrize("text", [CALL, "I look.\n" + CALL])
async def test_what_was_generated_is_replayed_token_for_token(tmp_path: Path, text: str) -> None:
    template = TEMPLATE.replace("message.content or ''", QWEN_CONTENT)
    model_file = make_chain(tmp_path / "chain.gguf", text, template=template)
    async with serve(model_file) as endpoint, model_of(endpoint) as model:
        first = await complete(model, ASKED)
        assert first.finish_reason == "tool_calls"
        again = Request((*ASKED.messages, *answered(first)), TOOLS, max_tokens=1)
        second = await complete(model, again)
        counted = await model.count(again)
    assert first.prompt_tokens and first.completion_tokens and second.prompt_tokens
    assert counted == second.prompt_tokens
    # All but the end-of-turn token, which is generated but never evaluated.
    assert second.cached_tokens == first.prompt_tokens + first.completion_tokens - 1


async def test_a_template_that_drops_results_behind_text_gets_a_structured_call(
    tmp_path: Path,
) -> None:
    """Gemma 4's way: a result is rendered only behind an assistant message with tool_calls."""
    shown = "{%- if message.role == 'tool' %}"
    drops = "{%- if message.role == 'tool' and not loop.previtem.tool_calls %}"
    template = TEMPLATE.replace(shown, f"{drops}{{%- elif message.role == 'tool' %}}")
    model_file = make_chain(tmp_path / "chain.gguf", FENCED, template=template)
    async with serve(model_file) as endpoint, model_of(endpoint) as model:
        first = await complete(model, ASKED)
        message, result = answered(first)
        with_result = await model.count(Request((*ASKED.messages, message, result), TOOLS))
        without = await model.count(Request((*ASKED.messages, message), TOOLS))
    assert with_result > without + 5


async def test_count_is_what_the_server_reads(tmp_path: Path) -> None:
    model_file = make_chain(tmp_path / "m.gguf", "fine")
    async with serve(model_file) as endpoint, model_of(endpoint) as model:
        assert await model.count(ASKED) == (await complete(model, ASKED)).prompt_tokens


async def test_progress_and_a_full_window(tmp_path: Path) -> None:
    model_file = make_chain(tmp_path / "m.gguf", "fine")
    async with serve(model_file) as endpoint, model_of(endpoint) as model:
        long = Request((User("word " * 800),), max_tokens=1)
        pieces = [piece async for piece in model.stream(long)]
        readings = [piece for piece in pieces if isinstance(piece, PrefillProgress)]
        assert readings[-1].processed == readings[-1].total > 2048
        with pytest.raises(ContextFull, match=r"needs [\d,]+ tokens and the window holds 8,192"):
            await complete(model, Request((User("word " * 4000),)))


async def test_the_tool_schemas_pass_the_servers_grammar(tmp_path: Path) -> None:
    """A schema that the grammar converter refuses is answered with HTTP 400."""
    async with (
        serve(make_chain(tmp_path / "m.gguf", CALL)) as endpoint,
        model_of(endpoint) as model,
    ):
        for tool in TOOLS:
            one = Request(ASKED.messages, (tool,), max_tokens=1)
            assert (await complete(model, one)).finish_reason in ("length", "tool_calls")


async def test_an_answer_to_a_picture_is_read_from_the_raw_text_too(tmp_path: Path) -> None:
    model_file = make_chain(tmp_path / "chain.gguf", CALL)
    projector = gguf_projector.make(tmp_path / "mmproj.gguf", WIDTH)
    out = io.BytesIO()
    Image.new("RGB", (64, 48), "red").save(out, "PNG")
    seen = User("what is it?", (data_url("image/png", out.getvalue()),))
    asked = replace(ASKED, messages=(System("You help."), seen))
    async with serve(model_file, mmproj=projector) as endpoint, model_of(endpoint) as model:
        parsed = await complete(model, asked)
        raw = await complete(model, replace(asked, raw=True))
        short = await complete(model, replace(asked, raw=True, max_tokens=2))
    assert [call.name for call in parsed.calls] == ["bash"]
    assert (raw.text.removesuffix("<|im_end|>"), raw.finish_reason, raw.calls) == (CALL, "stop", ())
    assert raw.prompt_tokens == parsed.prompt_tokens  # the picture is among them
    assert short.finish_reason == "length"


async def test_a_thought_that_the_prompt_has_opened_is_one_in_the_raw_text(tmp_path: Path) -> None:
    """The server's parser knows that the prompt ends in a thought; our own is told by its first piece."""
    opened = TEMPLATE.replace("assistant\n{% endif", "assistant\n<think>\n{% endif")
    assert opened != TEMPLATE
    model_file = make_chain(tmp_path / "chain.gguf", "So it is.</think>Yes.", template=opened)
    parser = ToolCallParser(KnownTools.of(TOOLS))
    async with serve(model_file) as endpoint, model_of(endpoint) as model:
        async for piece in model.stream(replace(ASKED, raw=True)):
            if isinstance(piece, TextPiece):
                assert parser.feed(piece.text) in ("", "Yes", "Yes.", ".")
    parser.close()
    assert (parser.thought.strip(), parser.visible) == ("So it is.", "Yes.")
