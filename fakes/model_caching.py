"""A model in process with the prompt cache of a real server: it counts what it has to read again.

A token is four bytes of the rendered prompt. Like llama-server with one slot and
a cache in host memory, it keeps the prompts of its last calls and reuses the
longest common beginning. `reads` are (prompt, cached) of each call, in tokens.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

from agent.errors import ContextFull
from agent.messages import Assistant, Message, System, ToolResult, User
from agent.model import Ahead, Completion, Piece, PrefillProgress, Request, TextPiece

TOKEN = 4
KEPT = 16


@dataclass
class CachingModel:
    """`answer` makes the assistant's message of a request; `n_ctx` is in tokens."""

    answer: Callable[[Request], Assistant]
    n_ctx: int = 8192
    requests: list[Request] = field(default_factory=list)
    reads: list[tuple[int, int]] = field(default_factory=list)
    cache: list[bytes] = field(default_factory=list)
    before: Callable[[Request], object] | None = None

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        self.requests.append(request)
        prompt = rendered(request)
        tokens = len(prompt) // TOKEN
        if tokens > self.n_ctx:
            raise ContextFull(f"{tokens} tokens are more than {self.n_ctx}")
        if self.before:
            self.before(request)
        cached = max((common(prompt, old) for old in self.cache), default=0) // TOKEN
        self.reads.append((tokens, cached))
        await asyncio.sleep(0)
        yield PrefillProgress(tokens, tokens, cached)
        message = self.answer(request)
        if message.text:
            yield TextPiece(message.text)
        produced = line(message)
        if request.max_tokens != 1:
            self.cache = [prompt + produced, *self.cache[: KEPT - 1]]
        else:
            self.cache = [prompt, *self.cache[: KEPT - 1]]
        yield Completion(
            message.text,
            message.calls,
            "",
            "tool_calls" if message.calls else "stop",
            tokens,
            cached,
            len(produced) // TOKEN,
        )

    async def window(self) -> int:
        return self.n_ctx

    async def count(self, request: Request) -> int:
        return len(rendered(request)) // TOKEN

    async def ahead(self, _: Request, *, changed: bool = False) -> Ahead | None:
        return None


def rendered(request: Request) -> bytes:
    tools = "".join(f"{tool}\n" for tool in request.tools).encode()
    return tools + b"".join(line(message) for message in request.messages)


def line(message: Message) -> bytes:
    match message:
        case System(text):
            form = f"<system>{text}"
        case User(text):
            form = f"<user>{text}"
        case Assistant(text, calls, raw):
            form = f"<assistant>{raw or text}" + "".join(
                f"{c.id}{c.name}{c.arguments}" for c in calls
            )
        case ToolResult(call, name, text):
            form = f"<tool>{call}{name}{text}"
    return (form + "<end>\n").encode()


def common(a: bytes, b: bytes) -> int:
    """Length of the common beginning."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
