"""The committed model itself, in the real server: what it is, and one call with its answer."""

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import gguf
import pytest_asyncio

from fakes.patience import SECONDS
from fakes.words import saying

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "backend/embedded/pocket.gguf"
TOOLS: list[dict[str, Any]] = json.loads((ROOT / "agent/prefix/tools.json").read_text("utf-8"))
SYSTEM = (ROOT / "agent/prefix/system.txt").read_text("utf-8").strip()


class Pocket:
    """The server with the committed model behind a UNIX socket."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def post(self, route: str, body: dict[str, Any]) -> Any:
        async with self.session.post(f"http://pocket{route}", json=body) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def prompt(self, messages: list[dict[str, Any]]) -> str:
        body = {"messages": messages, "tools": TOOLS}
        return str((await self.post("/apply-template", body))["prompt"])

    async def say(self, messages: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
        """(the assistant's message, usage), put together from the stream."""
        body = {
            "messages": messages,
            "tools": TOOLS,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": 300,
        }
        chunks = []
        async with self.session.post("http://pocket/v1/chat/completions", json=body) as answer:
            async for line in answer.content:
                if line.startswith(b"data: ") and b"[DONE]" not in line:
                    chunks.append(json.loads(line.removeprefix(b"data: ")))
        return _joined(chunks), chunks[-1]["usage"]


def _joined(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    text = "".join(delta.get("content") or "" for delta in deltas)
    if not calls:
        return {"role": "assistant", "content": text}
    function = {
        "name": "".join(call["function"].get("name") or "" for call in calls),
        "arguments": "".join(call["function"].get("arguments") or "" for call in calls),
    }
    call = {"id": calls[0]["id"], "type": "function", "function": function}
    return {"role": "assistant", "content": text or None, "tool_calls": [call]}


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Pocket]:
    socket = folder / "p.sock"
    flags = ["-m", str(MODEL), "--host", str(socket), "-np", "1", "-c", "8192", "-t", "2"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "backend.embedded",
        *flags,
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr
    log = process.stderr
    try:
        async with asyncio.timeout(SECONDS):
            while b"listening" not in (line := await log.readline()):
                assert line, "the server ended"
        reading = asyncio.create_task(log.read())
        async with aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(str(socket), force_close=True),
            timeout=aiohttp.ClientTimeout(SECONDS),
        ) as session:
            yield Pocket(session)
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), SECONDS)
    await reading


@pytest_asyncio.fixture
async def pocket() -> AsyncIterator[Pocket]:
    folder = Path(tempfile.mkdtemp(prefix="pk", dir="/tmp"))
    try:
        async with served(folder) as server:
            yield server
    finally:
        shutil.rmtree(folder)


def asked(words: str) -> dict[str, Any]:
    context = "<context>\nnow: Fri 2026-03-06 10:00 Europe/Paris\n</context>\n"
    return {"role": "user", "content": context + words}


def test_what_the_file_says_of_itself() -> None:
    fields = gguf.GGUFReader(MODEL).fields
    said = {
        name: fields[name].contents()
        for name in (
            "general.architecture",
            "general.name",
            "general.size_label",
            "general.license",
            "tokenizer.ggml.model",
            "tokenizer.ggml.pre",
            "tokenizer.chat_template",
        )
    }
    assert said == {
        "general.architecture": "llama",
        "general.name": "Pocket",
        "general.size_label": "Pocket",
        "general.license": "MIT",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "llama-bpe",
        "tokenizer.chat_template": (ROOT / "pocket/chat.jinja").read_text("utf-8"),
    }
    assert MODEL.stat().st_size <= 8_000_000
    assert 2048 <= len(fields["tokenizer.ggml.tokens"].contents()) <= 4096
    assert fields["llama.context_length"].contents() >= 8192


async def test_a_word_is_the_same_tokens_wherever_it_stands(pocket: Pocket) -> None:
    """Copying is finding a token again: these words begin like in, on, is, the, for, web, you."""

    async def tokens(text: str) -> list[int]:
        return list((await pocket.post("/tokenize", {"content": text}))["tokens"])

    for word in ("inbox", "onion", "island", "theatre", "forum", "webshop", "Youki", "beakers"):
        there = await tokens(f"/{word}")
        assert await tokens(f"x {word}") == [*await tokens("x "), *there[1:]], word


async def test_a_call_its_answer_and_a_prompt_that_only_grows(pocket: Pocket) -> None:
    messages = [{"role": "system", "content": SYSTEM}, asked("How long has this machine been up?")]
    first = await pocket.prompt(messages)

    call, usage = await pocket.say(messages)
    function = call["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])) == (
        "bash",
        {"command": "uptime -p"},
    )
    assert usage["prompt_tokens"] <= 2000

    identity = call["tool_calls"][0]["id"]
    messages += [call, {"role": "tool", "tool_call_id": identity, "content": "up 9 days, 3 hours"}]
    second = await pocket.prompt(messages)
    written = '<tool_call>\n{"name": "bash", "arguments": {"command": "uptime -p"}}\n</tool_call>'
    assert second.startswith(f"{first}{written}<|im_end|>\n")

    answer, _ = await pocket.say(messages)
    assert answer["content"] == saying("up 9 days, 3 hours")

    messages += [answer, asked("Thanks!")]
    third = await pocket.prompt(messages)
    assert third.startswith(f"{second}{answer['content']}<|im_end|>\n")


async def test_what_is_beyond_it_gets_its_plain_sentence(pocket: Pocket) -> None:
    messages = [{"role": "system", "content": SYSTEM}, asked("Write a poem about the sea.")]
    answer, _ = await pocket.say(messages)
    assert answer["content"] == saying("demonstration model")
