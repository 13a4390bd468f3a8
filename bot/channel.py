"""What a messaging app is to the agent; Telegram and the terminal are two of them.

A chat is named by the app's key (`tg:111`, `tg:-100222:7`, `cli`), a message by
the text that the app made of its id. Texts are Markdown. The next app is one
new folder with one more Channel in it.
"""

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
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
Enclosed = tuple[BinaryIO, str]  # an open file and its name


@dataclass(frozen=True, slots=True)
class Asked:
    """`message` shows the question; `choice` is None where the press comes later, as an update."""

    message: str
    choice: str | None = None


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


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A text on its way, in as many messages as it needs; `part` of them are delivered.

    Only letters with sound ring: finals, approvals, alerts.
    """

    text: str
    rows: Rows = ()
    quiet: bool = False
    reply_to: str = ""
    part: int = 0

    def written(self) -> str:
        """The outbox's payload."""
        rows = [[[choice.key, choice.label] for choice in row] for row in self.rows]
        fields = {"text": self.text, "rows": rows, "part": self.part, "to": self.reply_to}
        return json.dumps({k: v for k, v in fields.items() if v}, ensure_ascii=False)

    @classmethod
    def read(cls, payload: str, *, quiet: bool = False) -> "OutgoingMessage":
        fields = json.loads(payload)
        rows = [[Choice(*choice) for choice in row] for row in fields.get("rows", ())]
        return cls(fields["text"], rows, quiet, fields.get("to", ""), fields.get("part", 0))


class Live(Protocol):
    """What a person sees of one running turn. Its methods never raise ChannelError."""

    async def show(self, view: View) -> None:
        """Show the newest view; calling again refreshes what the app lets fade."""
        ...

    def close(self, view: View) -> None:
        """The final text comes now: what `show` has not sent yet is dropped. May come twice."""
        ...

    async def settle(self, view: View) -> None:
        """The turn has ended: leave what is worth keeping of its view."""
        ...


class Channel(Protocol):
    """A messaging app. Methods may raise ChannelError, but for `react` and `typing`, which only decorate."""

    def limits(self, chat: str) -> Limits: ...

    def turn(self, chat: str) -> AbstractAsyncContextManager[None]:
        """Waits until something final may be sent there; `post` is called inside."""
        ...

    async def post(self, chat: str, letter: OutgoingMessage) -> tuple[str, OutgoingMessage | None]:
        """Send the letter's next message: its id, and what is left of the letter."""
        ...

    async def send(self, chat: str, letter: OutgoingMessage) -> list[str]:
        """Send a whole letter when its turn comes; the ids of its messages."""
        ...

    async def edit(self, chat: str, message: str, text: str, rows: Rows = ()) -> None:
        """Replace a message of ours. May be repeated freely."""
        ...

    def live(self, chat: str) -> Live:
        """A turn's live view; nothing is shown before its first `show`."""
        ...

    async def react(self, chat: str, message: str, emoji: str) -> None: ...

    async def typing(self, chat: str) -> None: ...

    async def ask(self, chat: str, question: str, rows: Rows) -> Asked:
        """Show a question with buttons."""
        ...

    async def file(self, chat: str, file: BinaryIO, name: str, caption: str) -> str: ...

    async def album(self, chat: str, files: Sequence[Enclosed], caption: str) -> list[str]:
        """Several files as one, at most 10; the caption stands under the first."""
        ...


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
    pass


class Away(ChannelError):
    """`after` is in how many seconds the app wants to be asked again, 0 where it did not say."""

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.after = after


class Refused(ChannelError):
    pass


class Gone(ChannelError):
    pass


class Moved(Gone):
    """`to` is the chat's new key."""

    def __init__(self, to: str) -> None:
        super().__init__(f"moved to {to}")
        self.to = to
