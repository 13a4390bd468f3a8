"""Where the objects of a program are put together: settings in, a running agent out."""

import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent.approvals import Approvals, Ask
from agent.chats.assignment import Assignment, ChatOptions, Listener
from agent.chats.chats import Chats
from agent.context.token_breakdown import context
from agent.context.window import ModelWindow
from agent.errors import BackendAway, ToolError
from agent.events import Emit, Notice, TurnFinished
from agent.llm.gpu_queue import QueuedModel, backend_queue, profile_held
from agent.llm.openai import OpenAIModel
from agent.llm.openai.wire import message_json
from agent.llm.selftest import SelftestStore
from agent.messages import System
from agent.prompt import system_text
from agent.sandbox.host_report import HostReport
from agent.sandbox.sandboxes import Sandboxes
from agent.store import Store, open_store
from agent.store.chats import Chat
from agent.store.retention import Retention
from agent.tools.context import FileSender
from agent.tools.registry import chosen
from agent.tools.tool import Tool
from agent.turn.loop import run_turn
from agent.turn.turn import Turn, TurnLimits
from backend.client import BackendClient, BackendUnavailable
from backend.protocol import Status
from bot.backend_failover import RETURN_SECONDS, answers, answers_within
from bot.sandboxes import open_sandboxes
from bot.settings import ConfigurationError, Settings
from bot.state import DATABASE, private
from bot.tool_contexts import ToolContexts, zone_of

log = logging.getLogger(__name__)

LOOKED_SECONDS = 5.0  # how old the machine's figures may be when a turn begins


@dataclass(frozen=True)
class Agent:
    """A running agent: everything that the ways in (Telegram, terminal, command line) work with."""

    settings: Settings
    store: Store
    sandboxes: Sandboxes
    backend: BackendClient
    model: OpenAIModel
    window: ModelWindow
    approvals: Approvals
    desks: ToolContexts
    tools: tuple[Tool, ...]
    schemas: tuple[Mapping[str, Any], ...]
    host: HostReport
    _warm: "Warmth"

    async def context(self, chat: str) -> dict[str, int]:
        """A chat's tokens by part, what is free last."""
        found = await context(self.store, self.window, chat)
        return {part.name: part.tokens for part in found.parts}

    async def run(self, assignment: Assignment, emit: Emit) -> TurnFinished:
        """Run or resume one turn of a chat."""
        if self._warm.age() > LOOKED_SECONDS:
            await self.look()
        known = await self.store.chats.get(assignment.chat)

        def waits(why: str) -> None:
            emit(Notice(why))

        chat = assignment.chat
        turn = Turn(
            model=QueuedModel(self.model, self.window.queue, chat, assignment.priority, waits),
            journal=assignment.journal,
            tools=self.tools,
            schemas=self.schemas,
            context=await self.desks.at(assignment.chat, zone_of(known, self.settings)),
            approvals=self.approvals,
            limits=limits(self.settings),
            thinking=thinking_of(known),
            ready=self.ready,
            stop=assignment.stop,
        )
        async with profile_held(self.backend, chat, assignment.stop, waits):
            return await run_turn(turn, emit)

    @property
    def selftests(self) -> SelftestStore:
        """What models did when they were first used."""
        return SelftestStore(self.store, self.model, backend_queue(self.backend), self.schemas)

    async def ready(self) -> None:
        """Return once the model server serves; BackendAway when it has failed or is gone."""
        while True:
            try:
                async for _ in self.backend.ready(limits(self.settings).away_seconds):
                    pass
            except BackendUnavailable as error:
                if await answers(self.backend) or not await answers_within(
                    self.backend, RETURN_SECONDS
                ):
                    raise BackendAway(str(error)) from None
            else:
                return

    async def sees(self) -> bool:
        """Whether the model takes pictures."""
        with suppress(BackendUnavailable):
            return (await self.backend.endpoint()).vision
        return False

    async def look(self) -> Status | None:
        """The backend's newest status, for /host.txt as well; a new backend learns the fixed prefix."""
        try:
            status = await self.backend.status()
            await self._warm.register(self.backend, self.schemas, status)
        except BackendUnavailable:
            status = None
        self.host.status = status
        return status

    async def life(self) -> Hashable | None:
        """What tells the lives of the model server apart.

        None while none serves, or it sleeps; and of a server that does not say what
        it keeps: reading chats in there may cost money and gain nothing.
        """
        status = await self.look()
        if status is None or status.backend.state not in ("ready", "busy"):
            return None
        with suppress(BackendUnavailable):
            if (await self.backend.endpoint()).extras:
                server = status.backend
                return server.pid, server.profile, server.restarts, server.model
        return None


@dataclass
class Warmth:
    """Tells each backend once what to keep warm."""

    known: float | None = None  # uptime of the backend that was told
    looked_at: float = -math.inf  # on the monotonic clock

    def age(self) -> float:
        """Seconds since the backend was last looked at."""
        return time.monotonic() - self.looked_at

    async def register(
        self, backend: BackendClient, schemas: Sequence[Mapping[str, Any]], status: Status
    ) -> None:
        if self.known is None or status.uptime_s < self.known:
            await backend.warm([message_json(System(system_text()))], schemas)
        self.known = status.uptime_s
        self.looked_at = time.monotonic()


def thinking_of(known: Chat | None) -> int:
    """How many tokens the model may think in a chat; 0: as its profile has it."""
    return int(known.settings.get("thinking", 0)) if known else 0


@asynccontextmanager
async def open_agent(
    settings: Settings,
    backend: BackendClient,
    store: Store,
    *,
    ask: Ask | None = None,
    file_sender: Callable[[str], FileSender | None] | None = None,
) -> AsyncIterator[Agent]:
    """The agent over a backend; without `ask` nobody can be asked, and approvals are denied."""
    host = HostReport(settings.state_dir, settings.agent.timezone)
    async with AsyncExitStack() as stack:
        sandboxes = await stack.enter_async_context(open_sandboxes(settings, host))
        model = await stack.enter_async_context(OpenAIModel(backend.endpoint))
        tools = _tools(settings)
        schemas = tuple(tool.schema for tool in tools)
        window = ModelWindow(
            store,
            model,
            backend_queue(backend),
            schemas,
            partial(_spill, sandboxes),
            model.useful,
        )
        desks = ToolContexts(sandboxes, store, settings, file_sender)
        approvals = Approvals(store.approvals, ask)
        yield Agent(
            settings,
            store,
            sandboxes,
            backend,
            model,
            window,
            approvals,
            desks,
            tools,
            schemas,
            host,
            Warmth(),
        )


async def _spill(sandboxes: Sandboxes, chat: str, text: str) -> str:
    """Keep an old output in the chat's workspace; empty where it has no room."""
    try:
        return await (await sandboxes.of(chat)).files.save_output(text.encode("utf-8", "replace"))
    except ToolError:
        return ""


def _tools(settings: Settings) -> tuple[Tool, ...]:
    try:
        return chosen(settings.agent.tools)
    except ValueError as error:
        raise ConfigurationError(f"agent.tools: {error}") from None


@asynccontextmanager
async def stored_agent(settings: Settings, backend: BackendClient) -> AsyncIterator[Agent]:
    """The agent with its own opening of the database, for one command's duration."""
    private(settings.state_dir)
    async with (
        open_store(settings.state_dir / DATABASE) as store,
        open_agent(settings, backend, store) as agent,
    ):
        yield agent


@asynccontextmanager
async def open_chats(
    agent: Agent, service: ChatOptions, listener: Listener
) -> AsyncIterator[Chats]:
    """The workers of an agent's chats."""
    async with Chats(agent.store, agent.run, agent.window, service, listener) as chats:
        yield chats


def retention_of(settings: Settings) -> Retention:
    kept = settings.state
    return Retention(kept.keep_days, kept.records_days, kept.usage_days, kept.keep_mib << 20)


def limits(settings: Settings) -> TurnLimits:
    return TurnLimits(settings.agent.max_tool_calls, settings.agent.turn_seconds)
