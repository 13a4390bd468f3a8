"""A bot at home: the local Bot API server, a database, the real loop, and a scripted model."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from agent.approvals import Approvals
from agent.chats.assignment import Assignment, ChatOptions
from agent.chats.chats import Chats
from agent.context.window import ModelWindow
from agent.events import Emit, TurnFinished
from agent.sandbox.sandbox import Sandbox
from agent.schedule.planner import Planner
from agent.store import Store, open_store
from agent.tools.context import ToolContext
from agent.tools.tool import Tool
from agent.turn.loop import run_turn
from agent.turn.turn import Turn
from bot.app import Apps
from bot.attachments import AttachmentFetcher
from bot.commands.context import Services
from bot.localgram import Localgram, Person
from bot.telegram.app import TelegramApp, telegram_app
from bot.telegram.config import TelegramConfig
from fakes.gpu_queue_local import LocalGpuQueue
from fakes.model_scripted import Script, ScriptedModel, says

TOKEN = "4242:secret"
OWNER = 111


@dataclass
class House:
    """`script` is what the model says; `owner` a person who may do everything."""

    gram: Localgram
    folder: Path
    owner: Person
    script: Script = lambda request: says("Hello.")
    tools: Sequence[Tool] = ()
    config: dict[str, Any] = field(default_factory=dict)
    approval_seconds: float = 300.0
    plans: bool = False
    sandbox: Callable[[str], Awaitable[Sandbox]] | None = None
    sees: bool = False
    transcribe_url: str = ""
    services: Callable[["Running"], dict[str, Any]] = (
        lambda run: {}
    )  # more than chats and approvals
    late: float = 0.0  # seconds by which the bot's clock is ahead of the messages

    @property
    def telegram(self) -> TelegramConfig:
        base = TelegramConfig(
            TOKEN, self.folder / "run", self.gram.url, owners=frozenset({self.owner.id})
        )
        return replace(base, **self.config)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Running"]:
        """The bot, polling."""
        async with (
            open_store(self.folder / "voltaire.db", lambda: time.time() + self.late) as store,
            telegram_app(self.telegram, store) as bot,
            _agent(self, store, bot) as run,
        ):
            serving = asyncio.create_task(bot.serve(run.services))
            run.serving = serving
            try:
                yield run
            finally:
                serving.cancel()
                with suppress(asyncio.CancelledError):
                    await serving


@dataclass
class Running:
    store: Store
    bot: TelegramApp
    services: Services
    model: ScriptedModel
    serving: asyncio.Task[None] | None = None

    async def planner(self, chat: str) -> Planner:
        known = await self.store.chats.get(chat)
        return Planner(self.store, chat, (known and known.timezone) or "UTC")


@asynccontextmanager
async def _agent(house: House, store: Store, bot: TelegramApp) -> AsyncIterator[Running]:
    model = ScriptedModel(lambda request: house.script(request))
    window = ModelWindow(store, model, LocalGpuQueue(), ())
    apps = Apps([bot])
    approvals = Approvals(store.approvals, apps.ask, seconds=house.approval_seconds)
    schemas = tuple(tool.schema for tool in house.tools)

    async def run(assignment: Assignment, emit: Emit) -> TurnFinished:
        context = ToolContext(cast(Sandbox, None), file_sender=apps.file_sender(assignment.chat))
        turn = Turn(
            model,
            assignment.journal,
            house.tools,
            schemas,
            context,
            approvals,
            stop=assignment.stop,
        )
        return await run_turn(turn, emit)

    async def sees() -> bool:
        return house.sees

    options = ChatOptions(frozenset({bot.channel.source}), compose=apps.compose)
    if house.sandbox:
        url = house.transcribe_url
        fetcher = AttachmentFetcher(apps.channel, store, house.sandbox, sees, url)
        options = replace(options, fetch=fetcher.fetch)
    async with Chats(store, run, window, options, apps) as chats:
        running = Running(store, bot, Services(chats, approvals), model)
        if house.plans:
            running.services = replace(running.services, planner=running.planner)
        running.services = replace(running.services, **house.services(running))
        yield running
