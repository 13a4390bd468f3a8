"""What the handlers work with, and the few things that all of them do."""

from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from telegram import Bot, Message, Update, User

from agent.aio import BackgroundTasks
from agent.approvals import Approvals
from agent.chats.chats import Chats
from agent.llm.selftest import SelftestStore
from agent.sandbox.sandbox import Sandbox
from agent.schedule.planner import Planner
from agent.store import Store
from backend.client import BackendClient
from bot.channel import OutgoingMessage, Rows
from bot.delivery import Delivery
from bot.telegram.access import Access, Speaker, Standing
from bot.telegram.channel import TelegramChannel
from bot.telegram.chat_key import Place
from bot.telegram.config import TelegramConfig
from bot.telegram.words import place_of
from bot.texts import Texts


@dataclass(frozen=True)
class Services:
    """The agent, once it runs. What is None is not there, and its commands say so.

    `context` gives a chat's tokens by part, the window's free ones last;
    `planner` the jobs of a chat; `sandbox` the sandbox of a chat; `trials` what
    models did when they were first used.
    """

    chats: Chats
    approvals: Approvals | None = None
    backend: BackendClient | None = None
    context: Callable[[str], Awaitable[Mapping[str, int]]] | None = None
    planner: Callable[[str], Awaitable[Planner]] | None = None
    sandbox: Callable[[str], Sandbox] | None = None
    trials: SelftestStore | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """A message that somebody may send: who, where, and for a command what stands behind it."""

    update_id: int
    message: Message
    speaker: Speaker
    standing: Standing
    argument: str = ""

    @property
    def chat(self) -> str:
        return place_of(self.message).key

    @property
    def place(self) -> Place:
        return place_of(self.message)


@dataclass
class HandlerContext:
    config: TelegramConfig
    store: Store
    bot: Bot
    post: TelegramChannel
    door: Access
    delivery: Delivery
    texts: Texts
    services: Services
    me: User
    started_at: float
    problem: Callable[[], str | None] = lambda: None  # why updates do not come, in a sentence
    backlog: Counter[str] = field(default_factory=Counter)  # messages from before the start
    crew: BackgroundTasks = field(default_factory=BackgroundTasks)

    async def say(self, chat: str, text: str, rows: Rows = (), *, quiet: bool = False) -> None:
        """Put a text of the program's own into the outbox."""
        await self.store.outbox.add(chat, [OutgoingMessage(text, rows).written()], silent=quiet)

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something slow beside the updates; what it must not lose is durable already."""
        self.crew.start(work, "a handler's task")

    def clock(self, at: float | None = None) -> str:
        """A time of day in the owner's zone."""
        zone = ZoneInfo(self.config.timezone)
        return f"{datetime.fromtimestamp(self.store.clock() if at is None else at, zone):%H:%M}"


def heard(room: HandlerContext, update: Update) -> Heard | None:
    """Who speaks in a message, edited or not; None where nobody does."""
    message = update.message or update.edited_message
    if message is None or message.from_user is None:
        return None
    group = message.chat.id if message.chat.id < 0 else None
    speaker = Speaker(message.from_user.id, message.from_user.full_name, group)
    argument = (message.text or "").partition(" ")[2].strip()
    return Heard(update.update_id, message, speaker, room.door.standing(speaker), argument)
