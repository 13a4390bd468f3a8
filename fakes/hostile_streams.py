"""A model server of raw TCP that answers with whatever a broken or malicious one could send."""

import asyncio
import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any, Self

from backend.protocol import Endpoint
from fakes.hostile_json import mutated

ORDINARY = re.compile(r"ordinary (\d+)")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class HostileModelServer:
    """Answers a person's "ordinary N" with "answer to N", and everything else with `hostile_answer`."""

    def __init__(self, chance: random.Random) -> None:
        self.url = ""
        self.hostile = 0  # answers
        self._chance = chance

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def endpoint(self) -> Endpoint:
        return Endpoint(url=self.url, n_ctx=8192, model="hostile")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = LENGTH.search(head)
            asked = json.loads(await reader.readexactly(int(length[1]) if length else 0))
            for block in self._answer(asked):
                writer.write(block)
                await writer.drain()

    def _answer(self, asked: Any) -> Iterator[bytes]:
        users = [m["content"] for m in asked.get("messages", ()) if m["role"] == "user"]
        if not users:  # tokens of a text, for instance
            return hostile_answer(self._chance)
        if found := ORDINARY.search(str(users[-1])):
            text = f"answer to {found[1]}"
            return iter([HEAD, events([{"choices": [{"delta": {"content": text}}]}]), DONE])
        self.hostile += 1
        return hostile_answer(self._chance)


DONE = b"data: [DONE]\n\n"


def events(values: list[Any]) -> bytes:
    return b"".join(f"data: {json.dumps(value)}\n\n".encode() for value in values)


def chunks(chance: random.Random) -> list[Any]:
    """A sound stream's chunks: thoughts, words, calls, figures."""
    call = {"index": 0, "id": "c1", "type": "function"}
    head = {"name": chance.choice(["echo", "ecko", "bash", ""]), "arguments": ""}
    arguments = chance.choice(['{"words": "x"}', "{}", '{"words": ', "null", "[]", "1" * 5000])
    deltas: list[Any] = [
        {"role": "assistant", "content": None},
        {"reasoning_content": "hm"},
        {"content": chance.choice(TEXTS)},
        {"tool_calls": [{**call, "function": head}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]},
    ]
    some = [delta for delta in deltas if chance.random() < 0.7]
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {}}
    timings = {"cache_n": 1, "prompt_n": 2, "prompt_per_second": 1.5, "predicted_n": 3}
    progress = {"total": 3, "cache": 1, "processed": 2}
    return [
        {"choices": [], "prompt_progress": progress},
        *({"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in some),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": chance.choice(REASONS)}]},
        {"choices": [], "usage": usage, "timings": timings},
    ]


REASONS = ["stop", "tool_calls", "length", None, "", 7, "content_filter"]
TEXTS = [
    "words", "", "\x00", "\u2028\u202e", "\ud800", "<tool_call>", '<tool_call>{"name": "echo"}',
    '<tool_call>{"name": "echo", "arguments": {"words": 5}}</tool_call>', "<think>" * 2000,
    "[TOOL_CALLS]", "<|channel|>analysis", "```json\n" * 300, '{"name":' * 500, "[" * 5000,
    "<function=echo><parameter=words>", "x" * 100_000, "\n" * 5000,
]  # fmt: skip


def hostile_answer(chance: random.Random) -> Iterator[bytes]:
    """The blocks of one answer; some break the JSON, some its lines, some HTTP itself."""
    values = chunks(chance)
    for _ in range(chance.choice((0, 1, 2, 4))):
        place = chance.randrange(len(values))
        values[place] = mutated(values[place], chance)
    body = chance.choice(BROKEN)(events(values) + chance.choice((DONE, b"")), chance)
    head = chance.choice(HEADS) if chance.random() < 0.25 else HEAD
    yield head
    for _ in range(3):
        cut = chance.randrange(len(body) + 1)
        yield body[:cut]
        body = body[cut:]
    yield body


def _flipped(body: bytes, chance: random.Random) -> bytes:
    raw = bytearray(body)
    for _ in range(chance.randrange(1, 20)):
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    return bytes(raw)


BROKEN: list[Callable[[bytes, random.Random], bytes]] = [
    lambda body, _: body,
    lambda body, _: body,
    lambda body, _: body,
    _flipped,
    lambda body, chance: body[: chance.randrange(len(body))],
    lambda body, _: body.replace(b"\n\n", b"\n"),
    lambda body, _: body.replace(b"\n", b"\r"),
    lambda body, _: body.replace(b"\n", b"\r\n"),
    lambda body, _: body.replace(b"data:", b"error:"),
    lambda body, _: body * 50,
    lambda body, _: b"data: " + b"[" * 100_000 + b"\n\n" + body,
    lambda body, _: b"data: " + b'{"a":' * 50_000 + b"\n\n" + body,
    lambda body, _: b"data: " + b"9" * 10_000 + b"\n\n" + body,
    lambda body, _: b": x\n" * 20_000 + body,
    lambda body, _: b"data: x\n" * 20_000 + body,
    lambda body, _: b"data: " + b"x" * 1_000_000 + b"\n\n" + body,
    lambda body, _: b'data: {"error": {"code": 10000000000000000000000, "message": 5}}\n\n' + body,
    lambda body, _: b'data: {"error": null}\n\ndata: NaN\n\ndata: -Infinity\n\n' + body,
    lambda body, _: b'{"choices": [{"message": {"content": "whole"}}]}' + body,
    lambda body, _: b"\xff\xfe\x00" * 1000 + body,
    lambda _, __: b"",
]
HEADS = [
    b"",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-99\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: ;;;\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999999999999\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
    b"HTTP/1.1 99999 ?\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 401 No\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 500 Oops\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 503 Later\r\nRetry-After: 99999999999\r\nConnection: close\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 10,
    b"SSH-2.0-OpenSSH_9.6\r\n",
]
