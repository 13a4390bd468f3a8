"""What the handlers of commands and buttons work with, in any app."""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
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
from bot.channel import Channel, Keyboard, OutgoingMessage, Reactions
from bot.delivery import Delivery

if TYPE_CHECKING:  # loaded where servers are configured
    from agent.mcp.servers import ToolServers
    from bot.voice.replies import SpokenReplies


@dataclass(frozen=True, slots=True)
class ModelOffer:
    """A model that fits this machine; `line` describes it, `size` is in bytes.

    `command` tries a file that is on this machine already; "" for one to download.
    """

    name: str
    line: str
    size: int | None = None
    command: str = ""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The owner's last turns with another model: tool calls on record, those made again, broken ones, turns that went
    in circles or failed; tokens/s and seconds to the first word where they are known."""

    turns: int
    recorded: int
    same: int
    broken: int
    looped: int
    failed: int
    decode_tok_s: float | None
    first_word_s: float | None


class ModelSource(Protocol):
    """Lists and downloads models; `running` names the downloads in progress."""

    running: set[str]

    async def offers(self, report: Status) -> Sequence[ModelOffer]:
        """Models that no profile here uses, the best first."""
        ...

    def download(self, name: str) -> AsyncGenerator[tuple[int, int | None]]:
        """Fetch a profile's model: bytes so far and in all, every few seconds. Raises AgentError."""
        ...

    async def rehearse(self, name: str) -> Rehearsal:
        """Do the owner's last turns with this profile's model; nothing is executed or sent. Raises AgentError."""
        ...


@dataclass(frozen=True)
class Services:
    """Parts of the running agent.

    `tokens` counts a chat's tokens by part, which add up to the window. `servers` is None where none is configured.
    """

    chats: Chats
    approvals: Approvals
    backend: BackendClient
    tokens: Callable[[str], Awaitable[Mapping[str, int]]]
    planner: Callable[[str], Awaitable[Planner]]
    selftests: SelftestStore
    sandbox: Callable[[str], Awaitable[Sandbox]]
    state: Path
    budgets: DailyBudgets
    models: ModelSource | None = None
    skills: Callable[[], Sequence[tuple[str, str]]] = tuple  # names and descriptions
    servers: "ToolServers | None" = None
    voice: "SpokenReplies | None" = None
    search: str = ""  # the name of the engine of web searches


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command that somebody sent; `argument` is what follows its name."""

    chat: str
    sender: Sender
    level: AccessLevel
    argument: str = ""


@dataclass(frozen=True, slots=True)
class ButtonPress:
    """A press on a button of `message`; `argument` is the button's key after its kind."""

    chat: str
    message: str
    sender: Sender
    level: AccessLevel
    argument: str


@dataclass(frozen=True, slots=True)
class PressResult:
    """What a press on a button changes. `toast` answers the press; `text` and `keyboard` replace the message.

    Where these take time, `later` returns them; it is awaited once the press is answered."""

    toast: str = ""
    text: str | None = None
    keyboard: Keyboard = ()
    later: Callable[[], Awaitable[tuple[str, Keyboard]]] | None = None


@dataclass
class HandlerContext:
    """What the handlers of one messaging app share.

    `started_at` is in seconds since the epoch. `timezone` (IANA) is for chats without one of their own.
    `problem` says why updates do not come in. `demo`: the app itself runs on this machine, too. `language`
    is that of fixed texts, "" for each sender's own. `page` is the HTTPS address of the owner's page, "" where
    it has none, None where the app cannot open it. `tasks` must be open while handlers run.
    """

    channel: Channel
    access: Access
    store: Store
    delivery: Delivery
    services: Services
    started_at: float
    timezone: str
    repos: tuple[str, ...]
    problem: Callable[[], str | None]
    reactions: Reactions
    demo: bool
    language: str
    page: str | None = None
    # Messages from before the start, by chat.
    backlog: Counter[str] = field(default_factory=Counter)
    decisions_shown: set[tuple[str, str]] = field(default_factory=set)  # approval and message
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)

    async def send(
        self, chat: str, text: str, keyboard: Keyboard = (), *, silent: bool = False
    ) -> None:
        """Put a text of the program's own into the outbox."""
        payload = OutgoingMessage(text, keyboard).to_json()
        await self.store.outbox.add(chat, [payload], silent=silent)

    def speaking_to(self, tag: str = "") -> AbstractContextManager[None]:
        """Texts in the block are for somebody whose app has that language (a tag such as "ru")."""
        return speaking(self.language, tag, ENGLISH)

    async def chosen_language(self, chat: str) -> str:
        """The language chosen in /settings; "" where none was."""
        known = await self.store.chats.get(chat)
        return known.chosen_language if known else ""

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Do slow work in the background. What must not be lost has to be stored before."""
        self.tasks.start(work, "a handler's task")

    async def local_time(self, chat: str, at: float | None = None) -> datetime:
        """`at` (seconds since the epoch; None: now) in the chat's time zone."""
        known = await self.store.chats.get(chat)
        zone = known_zone(known.timezone) if known and known.timezone else ""
        return local_time(self.store.clock() if at is None else at, zone or self.timezone)


def whole_number(text: str) -> int:
    """Parse decimal digits, at most the first 40: int() refuses thousands of them."""
    return int(text[:40])
