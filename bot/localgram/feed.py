"""The events that a person sees in a chat, in order, and how to wait for one."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bot.localgram.message import Message

SECONDS = 60.0  # how long a person waits before giving up; a busy machine is slow
KEPT = 20_000  # events


@dataclass(frozen=True, slots=True)
class Posted:
    message: Message


@dataclass(frozen=True, slots=True)
class Drafted:
    """The draft of a message. `text` may be empty ("Thinking...")."""

    chat: int
    id: int
    thread: int | None
    text: str
    entities: tuple[dict[str, object], ...]
    until: float
    can_stop: bool = False


@dataclass(frozen=True, slots=True)
class Acted:
    """A chat action such as "typing", shown until `until` (Unix time)."""

    chat: int
    thread: int | None
    action: str
    until: float


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a pressed button. `text` may be empty."""

    chat: int
    query: str
    user: int
    text: str
    alert: bool
    url: str = ""


@dataclass(frozen=True, slots=True)
class Changed:
    """Any other change of a chat: an edit, a deletion, a reaction, the end of a draft, the bot's commands."""


Event = Posted | Drafted | Acted | Answered | Changed
Found = TypeVar("Found")


class Feed:
    """A chat's events, numbered from 1."""

    def __init__(self) -> None:
        self.last = 0
        self._events: deque[tuple[int, Event]] = deque(maxlen=KEPT)
        self.closed = False
        self._changed = asyncio.Event()

    def publish(self, event: Event) -> None:
        self.last += 1
        self._events.append((self.last, event))
        self.wake()

    def wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def after(self, number: int) -> list[tuple[int, Event]]:
        """Events with a number above `number`, oldest first."""
        newer = []
        for item in reversed(self._events):
            if item[0] <= number:
                break
            newer.append(item)
        return newer[::-1]

    def close(self) -> None:
        self.closed = True
        self.wake()

    async def changed(self) -> None:
        await self._changed.wait()

    async def changed_within(self, seconds: float) -> None:
        """Wait at most `seconds` for the next event."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.changed()

    async def until(self, look: Callable[[], Found | None], seconds: float) -> Found:
        """Wait until `look()` finds something.

        Raises TimeoutError after `seconds`.
        """
        async with asyncio.timeout(seconds):
            while (found := look()) is None or found is False:
                await self.changed()
            return found
