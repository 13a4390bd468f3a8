"""What the prompt cache gives, on a real server: 60 turns in three interleaved chats.

    python -m bench.cache [--model GGUF] [--turns N] [--json]

Three runs over the same words: Voltaire with its own server flags, Voltaire with
llama-server's default flags, and a naive client (the clock in its system prompt)
with our flags. Printed: prompt tokens, tokens read again although they were known,
and the median of those per turn. The target of the first: at most 1 %, and 16 in
the median turn. What the worst turns are made of stands in docs/architecture.md.
Then the first word after a restart, with prompts saved to the disk and without.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import random
import statistics
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import aiohttp

from agent.approvals import Approvals
from agent.channels import Assignment, NoChannels
from agent.chats.chats import Chats
from agent.context.cache_audit import kept
from agent.context.window import ModelWindow
from agent.events import Emit, Event, TurnFinished
from agent.llm.openai import OpenAIModel
from agent.llm.queued_model import QueuedModel
from agent.messages import Assistant, Message, System, User
from agent.model import Completion, Piece, Request, WrappedModel
from agent.prompt import system_text
from agent.store import Incoming, open_store
from agent.tools.context import ToolContext
from agent.tools.registry import chosen
from agent.tools.tool import Call, Output
from agent.turn.loop import run_turn
from agent.turn.turn import Turn, TurnLimits
from backend.protocol import Endpoint
from backend.server.launch import free_port
from bench.restart import first_words, print_table
from fakes.gpu_queue_local import LocalGpuQueue

POCKET = Path(__file__).parent.parent / "backend/embedded/pocket.gguf"
OURS = ("-np", "1", "-sps", "0.95", "-cram", "2048")
DEFAULTS = ("-np", "1")
RANDOM = "random.gguf"
CHATS = ("tg:1", "tg:2", "tg:3")
REPLY_TOKENS = 48
START_SECONDS = 60.0
SHARE, MEDIAN = 0.01, 16


@dataclass(frozen=True)
class Figures:
    """Tokens over all turns; `reread` were in an earlier request of the conversation, or in the fixed prefix."""

    name: str
    turns: int
    prompt: int
    reread: int
    median: float
    worst: int

    @property
    def share(self) -> float:
        return self.reread / self.prompt


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--context", type=int, default=32768)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    logging.getLogger("agent").setLevel(logging.ERROR)  # the table says it
    with tempfile.TemporaryDirectory() as folder:
        model = asked.model or (POCKET if POCKET.exists() else _random_model(Path(folder)))
        print(f"model: {model.name}", file=sys.stderr)
        figures = asyncio.run(bench(Path(folder), model, asked.turns, asked.context))
        restarts = asyncio.run(first_words(Path(folder), asked.model))
    if asked.json:
        rows = [{**asdict(one), "share": one.share} for one in figures]
        print(json.dumps([*rows, *map(asdict, restarts)], indent=1))
    else:
        _table(figures)
        print_table(restarts)
    return 0 if figures[0].share <= SHARE and figures[0].median <= MEDIAN else 1


async def bench(folder: Path, model: Path, turns: int, context: int) -> list[Figures]:
    figures = []
    for name, flags, client in (
        ("Voltaire", OURS, voltaire),
        ("Voltaire, default flags of the server", DEFAULTS, voltaire),
        ("naive client", OURS, naive),
    ):
        async with server(model, ("-c", str(context), *flags)) as endpoint:
            noise = model.name == RANDOM
            spoken = replace_sampling(endpoint, await digits(endpoint)) if noise else endpoint
            figures.append(await client(name, folder, spoken, turns))
    return figures


def replace_sampling(endpoint: Endpoint, sampling: dict[str, Any]) -> Endpoint:
    return endpoint.model_copy(update={"sampling": sampling})


async def digits(endpoint: Endpoint) -> dict[str, Any]:
    """Sampling by which a model of noise writes digits alone: other noise, read again as a
    prompt, would not be the tokens that were generated."""
    async with aiohttp.ClientSession(endpoint.url) as session:
        ids = []
        for text in (*"0123456789", "<|im_end|>"):
            asked = {"content": text, "parse_special": True, "add_special": False}
            async with session.post("/tokenize", json=asked) as answer:
                ids += (await answer.json())["tokens"]
    return {"logit_bias": [[id, 100.0] for id in ids]}


async def voltaire(name: str, folder: Path, endpoint: Endpoint, turns: int) -> Figures:
    """The real path: store, chats, loop, window, client; tools that answer at once."""
    calls: list[tuple[str, Completion]] = []
    path = folder / f"{len(list(folder.iterdir()))}.db"
    async with open_store(path) as store, OpenAIModel(_fixed(endpoint)) as model:
        queue, ended = LocalGpuQueue(), asyncio.Queue[TurnFinished]()
        tools = [replace(tool, function=answered) for tool in chosen([])]
        schemas = tuple(tool.schema for tool in tools)
        window = ModelWindow(store, model, queue, schemas)

        async def run(assignment: Assignment, emit: Emit) -> TurnFinished:
            queued = QueuedModel(model, queue, assignment.chat, assignment.priority)
            turn = Turn(
                model=Counted(queued, assignment.chat, calls),
                journal=assignment.journal,
                tools=tools,
                schemas=schemas,
                context=ToolContext(sandbox=cast("Any", None)),
                approvals=Approvals(store.approvals, None),
                limits=TurnLimits(reply_tokens=REPLY_TOKENS),
            )
            return await run_turn(turn, emit)

        async with Chats(store, run, window, NoChannels(), Ends(ended)) as chats:
            for number, (chat, words) in enumerate(script(turns)):
                await chats.submit(Incoming(chat, "bench", str(number), words))
                await ended.get()
                calls.append(("turn", _NOTHING))
    return measured(name, calls)


async def naive(name: str, _: Path, endpoint: Endpoint, turns: int) -> Figures:
    """What many clients do: the time stands in the system prompt, ahead of everything."""
    calls: list[tuple[str, Completion]] = []
    history: dict[str, list[Message]] = {chat: [] for chat in CHATS}
    schemas = tuple(tool.schema for tool in chosen([]))
    async with OpenAIModel(_fixed(endpoint)) as model:
        for number, (chat, words) in enumerate(script(turns)):
            now = datetime(2026, 11, 20, 9, number % 60, 7 * number % 60, tzinfo=UTC)
            system = System(f"It is {now:%A %Y-%m-%d %H:%M:%S}.\n{system_text()}")
            history[chat].append(User(words))
            request = Request((system, *history[chat]), schemas, max_tokens=REPLY_TOKENS)
            counted = Counted(model, chat, calls)
            async for piece in counted.stream(request):
                if isinstance(piece, Completion):
                    history[chat].append(Assistant(piece.text))
            calls.append(("turn", _NOTHING))
    return measured(name, calls)


def measured(name: str, calls: list[tuple[str, Completion]]) -> Figures:
    """Of each call what was known to the server's cache: the chat's last call, or another's prefix."""
    known: dict[str, int] = {}
    prefix, prompt, per_turn, reread = 0, 0, [], 0
    for chat, call in calls:
        if chat == "turn":
            per_turn.append(reread)
            reread = 0
            continue
        tokens, cached = call.prompt_tokens or 0, call.cached_tokens or 0
        expected = known.get(chat, prefix)
        reread += max(0, min(expected, tokens) - cached)
        prompt += tokens
        known[chat] = tokens + kept(call)
        prefix = prefix or tokens - FIRST_WORDS
    total = sum(per_turn)
    return Figures(name, len(per_turn), prompt, total, statistics.median(per_turn), max(per_turn))


_NOTHING = Completion("", (), "", "stop")
FIRST_WORDS = 400  # tokens of the very first message at most; the rest of its prompt is the prefix


def script(turns: int) -> Iterator[tuple[str, str]]:
    dice = random.Random(5)
    words = "the disk report shows nine files and four of them are old please check which".split()
    for number in range(turns):
        chat = CHATS[number % 3] if number < 3 else dice.choice(CHATS)
        yield chat, f"{number}: {' '.join(dice.choices(words, k=dice.randint(5, 40)))}"


async def answered(_: Call, **arguments: Any) -> Output:
    """A tool that answers at once."""
    return Output(f"ok: {json.dumps(arguments)[:200]}")


class Ends:
    """Hears the ends of turns alone."""

    def __init__(self, ended: "asyncio.Queue[TurnFinished]") -> None:
        self._ended = ended

    async def event(self, assignment: Assignment, event: Event) -> None:
        if isinstance(event, TurnFinished):
            self._ended.put_nowait(event)

    async def waiting(self, chat: str, why: str) -> None:
        print(f"{chat} waits: {why}", file=sys.stderr)


@dataclass(frozen=True)
class Counted(WrappedModel):
    """A model whose completions are kept."""

    chat: str
    calls: list[tuple[str, Completion]]

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        async with contextlib.aclosing(self.model.stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    self.calls.append((self.chat, piece))
                yield piece


@asynccontextmanager
async def server(model: Path, flags: tuple[str, ...]) -> AsyncIterator[Endpoint]:
    """The embedded llama.cpp server with these flags, ready."""
    port = free_port()
    argv = (
        "-m",
        str(model),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--jinja",
        "--temp",
        "0.3",
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "backend.embedded",
        *argv,
        *flags,
        stderr=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        async with asyncio.timeout(START_SECONDS):
            await _healthy(url, child)
        context = int(flags[flags.index("-c") + 1])
        yield Endpoint(url=url, n_ctx=context, kind="managed", extras=True)
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.terminate()
        await child.wait()


async def _healthy(url: str, child: asyncio.subprocess.Process) -> None:
    async with aiohttp.ClientSession() as session:
        while child.returncode is None:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"{url}/health") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.1)
    raise SystemExit("the server did not start")


def _fixed(endpoint: Endpoint) -> Any:
    async def same() -> Endpoint:
        return endpoint

    return same


def _random_model(folder: Path) -> Path:
    from fakes.gguf_maker import make

    return make(folder / "model" / RANDOM)


def _table(figures: list[Figures]) -> None:
    print(
        f"{'':<40}{'turns':>7}{'prompt':>11}{'read again':>12}{'share':>8}{'median':>8}{'worst':>8}"
    )
    for one in figures:
        print(
            f"{one.name:<40}{one.turns:>7}{one.prompt:>11,}{one.reread:>12,}{one.share:>8.1%}"
            f"{one.median:>8.0f}{one.worst:>8,}"
        )


if __name__ == "__main__":
    sys.exit(main())
