"""A bot without an app: real store, real loop, scripted models; whole turns are recorded."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from agent.approvals import Approvals
from agent.channels import Assignment, NoChannels, TurnReply
from agent.chats.chats import Chats
from agent.context.window import ModelWindow
from agent.events import Emit, Event, TurnFinished
from agent.leaks import LeakDetector
from agent.llm.queued_model import QueuedModel
from agent.messages import Assistant, ToolCall, User
from agent.model import Request
from agent.store import Incoming, Store, open_store
from agent.tools.context import ToolContext
from agent.tools.tool import Call, Output, Tool, tool
from agent.turn.loop import run_turn
from agent.turn.turn import Turn, TurnLimits
from fakes.gpu_queue_local import LocalGpuQueue
from fakes.model_caching import CachingModel
from fakes.patience import SECONDS

SOURCE = "test"


@dataclass
class Recognized:
    """A listener that keeps everything; `turn_ended` waits for the n-th end of a chat."""

    events: list[tuple[str, Event]] = field(default_factory=list)
    ended: dict[str, list[TurnFinished]] = field(default_factory=dict)
    waits: list[tuple[str, str]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def event(self, assignment: Assignment, event: Event) -> None:
        self.events.append((assignment.chat, event))
        if isinstance(event, TurnFinished):
            self.ended.setdefault(assignment.chat, []).append(event)
        self.changed.set()

    async def waiting(self, chat: str, why: str) -> None:
        self.waits.append((chat, why))
        self.changed.set()

    def ends(self, chat: str) -> list[TurnFinished]:
        return self.ended.get(chat, [])

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(SECONDS):
            while not true():
                self.changed.clear()
                await self.changed.wait()

    async def replies(self, chat: str, count: int) -> list[str]:
        await self.until(lambda: len(self.ends(chat)) >= count)
        return [end.text for end in self.ends(chat)]


def words_of(request: Request) -> str:
    """The person's words in the newest user message."""
    users = [m.text for m in request.messages if isinstance(m, User)]
    return users[-1].rpartition("</context>\n")[2]


def echo(request: Request) -> Assistant:
    return Assistant(f"you said {words_of(request)}")


def calling(name: str, arguments: str = "{}", id: str = "c1") -> Assistant:
    return Assistant("", (ToolCall(id, name, arguments),))


class Payloads(NoChannels):
    """Channels whose replies are sent."""

    def compose(self, reply: TurnReply) -> Sequence[str]:
        return ['{"text": 1}']


@dataclass
class Bench:
    """What one process of the bot consists of."""

    path: Path
    model: CachingModel = field(default_factory=lambda: CachingModel(echo))
    tools: list[Tool] = field(default_factory=list)
    heard: Recognized = field(default_factory=Recognized)
    queue: LocalGpuQueue = field(default_factory=LocalGpuQueue)
    channels: NoChannels = field(default_factory=Payloads)
    limits: TurnLimits = field(default_factory=TurnLimits)
    zone: str = "UTC"
    leaks: LeakDetector = field(default_factory=LeakDetector)

    @property
    def schemas(self) -> tuple[dict[str, object], ...]:
        return tuple(one.schema for one in self.tools)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Chats]:
        async with open_store(self.path) as store:
            self._store = store
            window = ModelWindow(store, self.model, self.queue, self.schemas)
            of = self.channels, self.heard, self.zone
            async with Chats(store, self._run, window, *of) as chats:
                yield chats

    async def _run(self, assignment: Assignment, emit: Emit) -> TurnFinished:
        model = QueuedModel(self.model, self.queue, assignment.chat, assignment.priority)
        turn = Turn(
            model,
            assignment.journal,
            self.tools,
            self.schemas,
            context=ToolContext(sandbox=cast("Any", None), leaks=self.leaks),
            approvals=Approvals(self._store.approvals, None),
            stop=assignment.stop,
            answer_now=assignment.answer_now,
            limits=self.limits,
        )
        return await run_turn(turn, emit)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "voltaire.db")


@dataclass
class Gate:
    """A tool that waits; `entered` counts how often it began."""

    entered: int = 0
    began: asyncio.Event = field(default_factory=asyncio.Event)
    open: asyncio.Event = field(default_factory=asyncio.Event)

    def tool(self) -> Tool:
        async def gate(call: Call, word: str = "") -> Output:
            "Wait."
            self.entered += 1
            self.began.set()
            await self.open.wait()
            return Output("the gate is open")

        return tool(gate)


def said(words: str, update: str, chat: str = "tg:1", **fields: object) -> Incoming:
    return Incoming(chat, SOURCE, update, words, **fields)  # type: ignore[arg-type]


def prompts(store: Store, model: CachingModel) -> list[list[str]]:
    return [[message.text for message in request.messages] for request in model.requests]
