"""A running bot: an app, a database, the real loop, and a scripted model."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generic, TypeVar, cast

from pydantic import SecretStr

from agent.agent import Agent
from agent.approvals import Approvals
from agent.budgets import WORDS, DailyBudgets
from agent.channels import Assignment
from agent.chats.chats import Chats
from agent.context.window import ModelWindow
from agent.documents.library import Library
from agent.events import Emit, TurnFinished
from agent.leaks import LeakDetector
from agent.llm.selftest import SelftestStore
from agent.pictures import VisionLimits
from agent.sandbox.files import WorkspaceTaints
from agent.sandbox.history import WorkspaceHistory
from agent.sandbox.sandbox import Sandbox
from agent.schedule.planner import Planner
from agent.store import Store, open_store
from agent.tools.context import ToolContext
from agent.tools.tool import Tool
from agent.trust import Taint
from agent.turn import texts
from agent.turn.loop import run_turn
from agent.turn.turn import Turn
from agent.voice.speech_to_text import SpeechToText
from backend.client import BackendClient
from bot.attachments import AttachmentFetcher
from bot.commands.context import Services
from bot.connected_terminals import BotChannels, ConnectedTerminals
from bot.messaging_apps import Apps, MessagingApp
from bot.telegram.app import TelegramApp, TelegramConfig, telegram_app
from bot.voice.replies import SpokenReplies
from fakes.gpu_queue_local import LocalGpuQueue
from fakes.localgram import Localgram, Person
from fakes.model_scripted import Script, ScriptedModel, says

TOKEN = "4242:secret"
OWNER = 111

App = TypeVar("App", bound=MessagingApp)


@dataclass
class RunningBot(Generic[App]):
    store: Store
    bot: App
    services: Services
    model: ScriptedModel
    serving: asyncio.Task[None] | None = None


async def planner_of(store: Store, chat: str) -> Planner:
    known = await store.chats.get(chat)
    return Planner(store, chat, (known and known.timezone) or "UTC")


async def no_tokens(chat: str) -> dict[str, int]:
    return {}


class NoFiles:
    """The workspace of a scenario without a sandbox."""

    async def taints(self) -> Sequence[Taint]:
        return ()


async def no_sandbox(chat: str) -> Sandbox:
    nowhere = Path("/nowhere/work")
    history = WorkspaceHistory(nowhere, 0, WorkspaceTaints(nowhere.with_name("taints")))
    return cast(Sandbox, SimpleNamespace(files=NoFiles(), history=history))


class NoDocuments:
    async def documents(self) -> Sequence[object]:
        return ()


@dataclass(kw_only=True)
class ScriptedAgent:
    """What the agent behind an app is like; `script` is what the model says."""

    script: Script = lambda request: says("Hello.")
    tools: Sequence[Tool] = ()
    approval_seconds: float = 300.0
    sandbox: Callable[[str], Awaitable[Sandbox]] | None = None
    vision: VisionLimits | None = None
    library: Callable[[Store, str], Library] | None = None
    speech_to_text: Callable[[], SpeechToText] = lambda: SpeechToText(Path("nowhere"))
    voices: Path | None = (
        None  # of piper; with one, maybe empty, answers are spoken where a chat wishes it
    )
    limits: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(WORDS, 0))
    # in place of the usual ones
    services: Callable[[RunningBot[Any]], dict[str, Any]] = lambda run: {}

    @asynccontextmanager
    async def serving(self, store: Store, app: App) -> AsyncIterator[RunningBot[App]]:
        """The app with the agent behind it, taking updates."""
        model = ScriptedModel(lambda request: self.script(request))
        window = ModelWindow(store, model, LocalGpuQueue(), ())
        apps = Apps([app], look_seconds=0.05)
        approvals = Approvals(
            store.approvals, apps.ask, seconds=self.approval_seconds, clock=store.clock
        )
        schemas = tuple(tool.schema for tool in self.tools)

        async def vision() -> VisionLimits | None:
            return self.vision

        async def blind_words() -> str:
            return "It is blind."

        async def run(assignment: Assignment, emit: Emit) -> TurnFinished:
            sender = apps.file_sender(assignment.chat)
            sandbox = await self.sandbox(assignment.chat) if self.sandbox else None
            context = ToolContext(
                cast(Sandbox, sandbox), file_sender=sender, plans=store.plans, vision=vision
            )
            turn = Turn(model, assignment.journal, self.tools, schemas, context, approvals)
            frozen = "" if await store.freeze.since() is None else texts.FROZEN
            turn = replace(turn, budgets=DailyBudgets(store.budgets, self.limits), frozen=frozen)
            history = sandbox.history if sandbox else None
            stop, answer_now = assignment.stop, assignment.answer_now
            turn = replace(turn, stop=stop, answer_now=answer_now, history=history)
            return await run_turn(turn, emit)

        channels = BotChannels(ConnectedTerminals(store, apps), listeners=(apps,))
        if self.sandbox:
            library = partial(self.library, store) if self.library else lambda chat: NoDocuments()
            agent = SimpleNamespace(
                store=store,
                sandboxes=SimpleNamespace(of=self.sandbox),
                documents=SimpleNamespace(library=library),
                vision=vision,
                speech_to_text=self.speech_to_text,
                blind_words=blind_words,
            )
            fetcher = AttachmentFetcher(cast("Agent", agent), apps)
            channels = replace(channels, attachments=fetcher)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(apps)
            voice = None
            if self.sandbox and self.voices:
                voice = SpokenReplies(self.sandbox, self.voices)
                await stack.enter_async_context(voice)
                channels = replace(channels, listeners=(apps, voice))
            chats = Chats(store, run, window, channels, channels)
            await stack.enter_async_context(chats)
            backend = BackendClient(Path("/nowhere/backend.sock"))
            services = Services(
                chats,
                approvals,
                await stack.enter_async_context(backend),
                tokens=no_tokens,
                planner=partial(planner_of, store),
                selftests=SelftestStore(store, model, LocalGpuQueue(), ()),  # type: ignore[arg-type]
                sandbox=self.sandbox or no_sandbox,
                state=app.store.database.path.parent,
                budgets=DailyBudgets(store.budgets, self.limits),
                voice=voice,
            )
            running = RunningBot(store, app, services, model)
            running.services = replace(services, **self.services(running))
            running.serving = asyncio.create_task(apps.serve(running.services))
            try:
                yield running
            finally:
                running.serving.cancel()
                with suppress(asyncio.CancelledError):
                    await running.serving


@dataclass
class TelegramScenario(ScriptedAgent):
    """A Telegram bot at the local Bot API server; `owner` is a person who may do everything."""

    gram: Localgram
    folder: Path
    owner: Person
    config: dict[str, Any] = field(default_factory=dict)
    leaks: LeakDetector = field(default_factory=LeakDetector)
    late: float = 0.0  # seconds by which the bot's clock is ahead of the messages

    @property
    def telegram(self) -> TelegramConfig:
        fields = {
            "token": SecretStr(TOKEN),
            "base_url": self.gram.url,
            "owners": [self.owner.id],
        }
        return TelegramConfig(**{**fields, **self.config})

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RunningBot[TelegramApp]]:
        """The bot, polling."""
        async with (
            open_store(self.folder / "voltaire.db", lambda: time.time() + self.late) as store,
            telegram_app(self.telegram, store, self.leaks) as bot,
            self.serving(store, bot) as running,
        ):
            yield running
