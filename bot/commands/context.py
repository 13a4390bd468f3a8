"""What handlers of any app work with: the context, a command as it was sent, a button that was pressed."""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agent.aio import BackgroundTasks
from agent.approvals import Approvals
from agent.budgets import DailyBudgets
from agent.chats.chats import Chats
from agent.language import ENGLISH, speaking
from agent.llm.selftest import SelftestStore
from agent.sandbox.sandbox import Sandbox
from agent.schedule.planner import Planner
from agent.store import Store
from agent.timezones import known_zone, local_time
from backend.client import BackendClient
from backend.protocol import Status
from bot.access import Access, AccessLevel, Sender
from bot.channel import Channel, Keyboard, OutgoingMessage
from bot.delivery import Delivery
from bot.reactions import Reactions
from bot.texts import Texts
from bot.voice.replies import SpokenReplies

if TYPE_CHECKING:  # loaded where servers are configured
    from agent.mcp.servers import ToolServers


@dataclass(frozen=True, slots=True)
class ModelOffer:
    """A model that fits this machine. `line` says how; `size` in bytes; `command`, for a file that lies
    here, is what tries it."""

    name: str
    line: str
    size: int | None = None
    command: str = ""


class ModelSource(Protocol):
    """Where models come from; `running` names the downloads that go on."""

    running: set[str]

    async def offers(self, report: Status) -> Sequence[ModelOffer]:
        """Models that are no profile's in use here, the best first."""
        ...

    def download(self, name: str) -> AsyncGenerator[tuple[int, int | None]]:
        """Fetch a profile's model: bytes so far and in all, every few seconds. Raises AgentError."""
        ...


@dataclass(frozen=True)
class Services:
    """The running agent. What is None is not there, and its commands say so.

    `tokens` counts a chat's tokens by part, summing up to the window.
    """

    chats: Chats
    approvals: Approvals | None = None
    backend: BackendClient | None = None
    tokens: Callable[[str], Awaitable[Mapping[str, int]]] | None = None
    planner: Callable[[str], Awaitable[Planner]] | None = None
    selftests: SelftestStore | None = None
    sandbox: Callable[[str], Awaitable[Sandbox]] | None = None
    state: Path | None = None
    budgets: DailyBudgets | None = None
    models: ModelSource | None = None
    skills: Callable[[], Sequence[tuple[str, str]]] = tuple  # names and descriptions
    servers: "ToolServers | None" = None
    voice: SpokenReplies | None = None


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command as somebody sent it; `argument` is what follows its name."""

    chat: str
    sender: Sender
    level: AccessLevel
    argument: str = ""


@dataclass(frozen=True, slots=True)
class ButtonPress:
    """A press on a button of that message; `argument` is what follows the kind in the button's key."""

    chat: str
    message: str
    sender: Sender
    level: AccessLevel
    argument: str


@dataclass(frozen=True, slots=True)
class PressResult:
    """`toast` answers the press; `text` replaces the message, its buttons becoming `keyboard`.

    `later` gives both where they take time; it is awaited once the press is answered.
    """

    toast: str = ""
    text: str | None = None
    keyboard: Keyboard = ()
    later: Callable[[], Awaitable[tuple[str, Keyboard]]] | None = None


@dataclass
class HandlerContext:
    """One messaging app's handlers have one. `problem` says why updates do not come in.

    `demo`: the app itself is on this machine, too. `timezone` (IANA) is that of chats without one of their own; `started_at` is in
    seconds since the epoch; `tasks` is to be open while handlers run. `language` is that of fixed texts,
    "" where it is each sender's own. `page` is the HTTPS address of the owner's page, "" where it has none, None where
    the app cannot open it.
    """

    channel: Channel
    access: Access
    store: Store
    delivery: Delivery
    texts: Texts
    services: Services
    started_at: float
    timezone: str = "UTC"
    repos: tuple[str, ...] = ()
    problem: Callable[[], str | None] = lambda: None
    _: KW_ONLY
    reactions: Reactions
    demo: bool = False
    language: str = ""
    page: str | None = None
    backlog: Counter[str] = field(
        default_factory=Counter
    )  # messages from before the start, by chat
    decisions_shown: set[tuple[str, str]] = field(default_factory=set)  # approval and message
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)

    async def send(
        self, chat: str, text: str, keyboard: Keyboard = (), *, silent: bool = False
    ) -> None:
        """Put a text of the program's own into the outbox."""
        payload = OutgoingMessage(text, keyboard).to_json()
        await self.store.outbox.add(chat, [payload], silent=silent)

    def speaking_to(self, tag: str = "") -> AbstractContextManager[None]:
        """Speak to whoever's app is in that language (a tag such as "ru")."""
        return speaking(self.language, tag, ENGLISH)

    async def chosen_language(self, chat: str) -> str:
        """What /settings says of the chat; "" for nothing."""
        known = await self.store.chats.get(chat)
        return known.chosen_language if known else ""

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something slow beside the updates; what it must not lose is durable already."""
        self.tasks.start(work, "a handler's task")

    async def local_time(self, chat: str, at: float | None = None) -> datetime:
        """An instant (seconds since the epoch; now) in the chat's time zone."""
        known = await self.store.chats.get(chat)
        zone = known_zone(known.timezone) if known and known.timezone else ""
        return local_time(self.store.clock() if at is None else at, zone or self.timezone)


def whole_number(text: str) -> int:
    """The number of decimal digits; of more than 40 those, as Python refuses a message that is full of them."""
    return int(text[:40])
