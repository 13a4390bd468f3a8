"""The protocol between the bot and a messaging app; Telegram and Matrix implement it.

A chat is known by a key (`tg:111`, `tg:-100222:7`, `cli`), a message by the app's id of it, as text.
Texts are Markdown. docs/channels.md tells how to add an app; examples/channel.py is a small one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, BinaryIO, Generic, Literal, NamedTuple, Protocol, TypeVar

from pydantic import Field, TypeAdapter

from agent.errors import ToolError
from agent.events import Reason
from agent.language import ENGLISH, spoken
from agent.leaks import LeakDetector
from agent.plan import Plan
from agent.store import Incoming
from agent.store.errors import StoreError
from agent.store.key_values import KeyValueTable

APP_PREFIXES = ("tg:", "mx:")  # of the chats of messaging apps; the others are terminals


@dataclass(frozen=True, slots=True)
class ChannelLimits:
    """The largest files in bytes, and the seconds between two updates of a live view."""

    upload: int
    download: int
    update_seconds: float


class Button(NamedTuple):
    """A press sends `key` (at most 64 bytes) back; one with `page`, an HTTPS address, opens that instead, inside the
    app where it can."""

    key: str
    label: str
    page: str = ""


OUTGOING = "outgoing"  # the folder of files to be sent, in the state's; each in one of its own
MOST_PARTS = 4  # messages; of a longer answer the beginning, and the whole as this file
ANSWER_FILE = "answer.md"

Keyboard = Sequence[Sequence[Button]]
NamedFile = tuple[BinaryIO, str]  # an open file and its name


@dataclass(frozen=True, slots=True)
class ToolCallView:
    """A tool call as a person sees it: `summary` is one line, `detail` its output so far."""

    id: str
    name: str
    summary: str
    state: Literal["running", "ok", "failed"] = "running"
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TurnView:
    """What is shown of a running turn. `status` is a line about what it waits for; `buttons` are shown where the app
    can put them under a message."""

    calls: tuple[ToolCallView, ...] = ()
    text: str = ""
    status: str = ""
    thoughts: str = ""
    buttons: Keyboard = ()
    plan: Plan = ()

    @property
    def stays(self) -> bool:
        """Whether a part of it stays when the turn has ended."""
        return bool(self.calls or self.plan)


@dataclass(frozen=True, slots=True)
class VoiceSound:
    """A voice message, OGG/Opus."""

    ogg: bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A text to send, in as many parts as it needs; the first `part` of them are delivered.

    A `silent` one makes no sound; final answers, approvals and alerts do. `transaction` is the same each
    time the same message is sent, by which some apps recognize it. A `voice` message is spoken first:
    `sound` is its recording, and an app that plays it sends the text below. `language` is that of words
    which the program adds when sending; "" is English. `file` is the path of a file of which the text is the
    caption; it is deleted once delivered.
    """

    text: str
    keyboard: Annotated[Keyboard, Field(alias="rows")] = ()
    silent: bool = False
    reply_to: Annotated[str, Field(alias="to")] = ""
    part: int = 0
    transaction: str = ""
    voice: bool = False
    sound: VoiceSound | None = None
    language: str = ""
    file: str = ""

    def to_json(self) -> str:
        """The payload of an outbox row, in the current language; `silent` is a column of its own."""
        beside = {"silent", "transaction", "sound"}
        own = replace(self, language="" if spoken() == ENGLISH else spoken())
        payload = PAYLOAD.dump_json(own, exclude=beside, exclude_defaults=True, by_alias=True)
        return payload.decode()

    @classmethod
    def from_json(cls, payload: str, *, silent: bool = False) -> "OutgoingMessage":
        """Parse the payload of an outbox row. Raises ValueError for one of another version."""
        return replace(PAYLOAD.validate_json(payload), silent=silent)


PAYLOAD = TypeAdapter(OutgoingMessage)


def discard_file(message: OutgoingMessage) -> None:
    """Delete the copy that was sent, and its folder."""
    if message.file:
        with suppress(OSError):
            Path(message.file).unlink()
            Path(message.file).parent.rmdir()


class LiveView(Protocol):
    """Shows one running turn to people. Its methods never raise ChannelError."""

    async def show(self, view: TurnView) -> None:
        """Show the newest view. A repeated call renews what the app lets expire."""
        return

    def close(self, view: TurnView) -> None:
        """The final text is sent next: drop what `show` has not sent yet. May be called twice."""
        return

    async def settle(self, view: TurnView) -> None:
        """Send the lasting parts of the view that were not sent yet, before the final text and within its permit."""
        return

    async def finish(self, view: TurnView) -> None:
        """Remove all but the lasting parts of the view, as the turn has ended."""
        return


class NoLiveView(LiveView):
    """For an app that shows final texts only."""


class Channel(Protocol):
    """One messaging app. All methods but `react` and `typing` may raise ChannelError.

    Methods with a body here are optional for a class that inherits this one.

    Everything that the program says passes through `send_part`, `send_files` and `edit`, including what no
    turn has checked: each begins with `refuse_secret`.
    """

    @property
    def source(self) -> str:
        """The app's name in the database: of inbox rows and of paired people."""
        ...

    @property
    def prefix(self) -> str:
        """What the keys of its chats begin with, such as `tg:`."""
        ...

    @property
    def repeat_seconds(self) -> float:
        """For how long the app recognizes a transaction, so that a send may be repeated; 0: not at all."""
        return 0.0

    def private_chat(self, user: str) -> str:
        """The key of a user's private chat."""
        return self.prefix + user

    def user_of(self, chat: str) -> str | None:
        """The user of a private chat; None for a group."""
        ...

    async def name(self, chat: str) -> str:
        """The name of the person or group; "" where the app does not say. Raises nothing."""
        return ""

    def limits(self, chat: str) -> ChannelLimits:
        return ChannelLimits(upload=0, download=0, update_seconds=1.0)

    def received(self, chat: str, message: str) -> None:
        """A message came in: answers to older ones are shown as replies from now on."""
        return

    def permit(self, chat: str) -> AbstractAsyncContextManager[None]:
        """Wait until the app's rate limits allow a final message there, to be sent in the block."""
        return nullcontext()

    async def send_part(
        self, chat: str, message: OutgoingMessage
    ) -> tuple[str, OutgoingMessage | None]:
        """Send the next part; return its id and the rest of the message."""
        ...

    async def send_files(
        self, chat: str, files: Sequence[NamedFile], caption: str, *, silent: bool = False
    ) -> list[str]:
        """Send 1 to 10 files together, within permits of its own; the caption is that of the first."""
        raise MessageRefused("files cannot be sent here")

    async def edit(self, chat: str, message: str, text: str, keyboard: Keyboard = ()) -> None:
        """Replace the text and buttons of a message of ours. May be repeated."""
        ...

    def live_view(self, chat: str) -> LiveView:
        """A turn's live view; nothing is shown before its first `show`."""
        return NoLiveView()

    async def react(self, chat: str, message: str, emoji: str) -> None:
        return

    async def typing(self, chat: str) -> None:
        return

    async def download(self, file: str) -> bytes:
        """The content of a file that came with a message, by the app's id of it."""
        raise MessageRefused("files cannot be received here")


async def send(channel: Channel, chat: str, message: OutgoingMessage) -> list[str]:
    """Send all parts of a message; return their ids."""
    sent: list[str] = []
    rest: OutgoingMessage | None = message
    while rest is not None:
        async with channel.permit(chat):
            id, rest = await channel.send_part(chat, rest)
        sent.append(id)
    return sent


def refuse_secret(leaks: LeakDetector, text: str) -> None:
    """Raise MessageRefused where a text to be sent contains a configured secret."""
    leak = leaks.find(text)
    if leak and leak.secret:
        raise MessageRefused(f"it contained {leak.what}")


async def refuse_secret_files(leaks: LeakDetector, files: Sequence[NamedFile]) -> None:
    """Raise MessageRefused where a file or its name contains a configured secret."""
    for file, name in files:
        refuse_secret(leaks, name)
        leak = await asyncio.to_thread(leaks.find_in_file, file)
        if leak and leak.secret:
            raise MessageRefused(f"it contained {leak.what}")


@dataclass(frozen=True)
class ChannelFileSender:
    """Sends the agent's files to one chat (agent.tools.context.FileSender), each after `before(chat)`."""

    channel: Channel
    chat: str
    before: Callable[[str], Awaitable[None]]

    @property
    def upload_limit(self) -> int:
        return self.channel.limits(self.chat).upload

    async def send_files(self, files: Sequence[NamedFile], caption: str) -> None:
        await self.before(self.chat)
        try:
            await self.channel.send_files(self.chat, files, caption)
        except ChannelError as error:
            names = ", ".join(name for _, name in files)
            raise ToolError(f"{names} was not sent: {error}") from error


class ChannelError(Exception):
    """Something was not sent.

    ChannelError
    ├── DeliveryUncertain  no answer came: it may have arrived
    ├── NotSent            it certainly did not arrive, and may be tried again
    ├── MessageRefused     the app will never take it
    └── ChatGone           the chat is no more, or its person blocked us
        └── ChatMoved      it goes on under another key
    """


class DeliveryUncertain(ChannelError):
    pass


class NotSent(ChannelError):
    """The message certainly did not arrive, and may be sent again.

    `after`: seconds to wait before another attempt, as the app demands; 0 where it did not say.
    """

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.after = after


class MessageRefused(ChannelError):
    pass


class ChatGone(ChannelError):
    pass


class ChatMoved(ChatGone):
    """The chat continues under another key. `to` is the chat's new key."""

    def __init__(self, to: str) -> None:
        super().__init__(f"moved to {to}")
        self.to = to


# -- live views ---------------------------------------------------------------


log = logging.getLogger(__name__)

MARKS = {"running": "⏳", "ok": "✓", "failed": "✗"}
DETAIL_CHARACTERS = 700  # of a tool's output

Left = TypeVar("Left")


def plan_steps(plan: Plan) -> list[str]:
    """The steps of a plan as lines for people."""
    return [f"{'☑' if step.done else '☐'} {step.text}" for step in plan]


class UnfinishedViews(Generic[Left]):
    """Stores the live views of unfinished turns, and the text that is to remain of each.

    After a kill the next start finishes them. `prefix` is that of their keys in the database.
    """

    def __init__(self, key_values: KeyValueTable, prefix: str, kind: type[Left]) -> None:
        self._key_values = key_values
        self._prefix = prefix
        self._kind = kind
        self.left: Mapping[str, Left] = {}  # by a killed process

    async def load(self) -> None:
        """Read what a killed process left. Call this before any turn continues."""
        found = await self._key_values.with_prefix(self._prefix, self._kind)
        self.left = {key.removeprefix(self._prefix): left for key, left in found.items()}

    async def keep(self, message: str, left: Left) -> None:
        try:
            await self._key_values.put(self._prefix + message, left)
        except StoreError as error:
            log.warning("the live message %s is not kept: %s", message, error)

    async def remove(self, message: str) -> None:
        try:
            await self._key_values.remove(self._prefix + message)
        except StoreError as error:
            log.warning("the live message %s is not forgotten: %s", message, error)


ShownReactions = Literal["done", "seen", "off"]
SEEN = "👀"
# Telegram accepts only some emoji, and neither ⚠️ nor ✅.
DONE, FAILED, NONE = "👌", "😢", ""
FEEDBACK = {"👍": True, "👎": False}  # a person's, on an answer
TONIGHT = (
    "🌙",
    "🌚",
)  # a person's, on a message that is to be done again at night; Telegram has no 🌙


class Reactions:
    """Reacts to messages: SEEN, then DONE, FAILED or, if the turn was stopped, nothing."""

    def __init__(self, channel: Channel, shown: ShownReactions = "done") -> None:
        self._channel = channel
        self._shown = shown
        self._sending: dict[tuple[str, str], asyncio.Event] = {}

    async def seen(self, chat: str, message: str) -> None:
        if self._shown == "off":
            return
        sent = self._sending[chat, message] = asyncio.Event()
        try:
            await self._channel.react(chat, message, SEEN)
        finally:
            del self._sending[chat, message]
            sent.set()

    async def ended(self, answered: Iterable[Incoming], reason: Reason) -> None:
        """React to the messages of a turn that has ended."""
        if self._shown != "done":
            return
        emoji = {"done": DONE, "cancelled": NONE}.get(reason, FAILED)
        for incoming in answered:
            ours = incoming.source == self._channel.source and incoming.kind != "job"
            if not ours or not incoming.ref:
                continue
            if sending := self._sending.get((incoming.chat, incoming.ref)):
                await sending.wait()  # SEEN must not arrive after this one
            await self._channel.react(incoming.chat, incoming.ref, emoji)
