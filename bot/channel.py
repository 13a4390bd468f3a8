"""What a messaging app is to the agent; Telegram and the terminal are two of them.

A chat is named by the app's key (`tg:111`, `tg:-100222:7`, `cli`), a message by
the text that the app made of its id. Texts are Markdown. The next app is one
new folder with one more Channel in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Limits:
    """`text` and `caption` in characters, files in bytes, `pause` in seconds between live views."""

    text: int
    caption: int
    upload: int
    download: int
    photo: int
    pause: float


@dataclass(frozen=True, slots=True)
class Choice:
    """A button: `key` comes back when it is pressed, at most 40 characters."""

    key: str
    label: str


Rows = Sequence[Sequence[Choice]]


@dataclass(frozen=True, slots=True)
class Step:
    """A tool call as a person sees it: `what` is one line, `detail` its output so far."""

    id: str
    name: str
    what: str
    state: Literal["running", "ok", "failed"] = "running"
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class View:
    """What is to be seen of a running turn; `status` is a line about what it waits for."""

    steps: tuple[Step, ...] = ()
    text: str = ""
    status: str = ""
    thoughts: str = ""


class Channel(Protocol):
    """A messaging app. Every method may raise ChannelError; what only decorates never does.

    `ask` returns the key that was pressed where the app can wait for it itself,
    else None: the press comes back as an update of its own.
    """

    def limits(self, chat: str) -> Limits: ...

    async def send(
        self, chat: str, text: str, *, quiet: bool = False, reply_to: str = "", rows: Rows = ()
    ) -> list[str]:
        """Send a text, in as many messages as it needs; their ids, the first one first."""
        ...

    async def edit(self, chat: str, message: str, text: str, rows: Rows = ()) -> None:
        """Replace a message of ours. May be repeated freely."""
        ...

    async def show(self, chat: str, view: View, message: str) -> str:
        """Show a turn's newest view; `message` is what the last call returned, "" at first."""
        ...

    async def settle(self, chat: str, view: View, message: str) -> None:
        """The turn has ended: leave what is worth keeping of its view."""
        ...

    async def react(self, chat: str, message: str, emoji: str) -> None: ...

    async def typing(self, chat: str) -> None: ...

    async def ask(self, chat: str, question: str, rows: Rows) -> str | None: ...

    async def file(self, chat: str, file: BinaryIO, name: str, caption: str) -> list[str]: ...


class ChannelError(Exception):
    """Something was not sent.

    ChannelError
    ├── Uncertain    no answer came: it may have arrived
    ├── Away         it certainly did not arrive, and may be tried again
    ├── Refused      the app will never take it
    └── Gone         the chat is no more, or its person blocked us
        └── Moved    it goes on under another key
    """


class Uncertain(ChannelError):
    """`sent` are the ids of the messages before the one in doubt."""

    def __init__(self, why: str, sent: Sequence[str] = ()) -> None:
        super().__init__(why)
        self.sent = list(sent)


class Away(ChannelError):
    pass


class Refused(ChannelError):
    pass


class Gone(ChannelError):
    pass


class Moved(Gone):
    def __init__(self, to: str) -> None:
        super().__init__(f"moved to {to}")
        self.to = to
