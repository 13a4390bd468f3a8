"""Somebody who waits for an answer, and presses the button of a notice when the text is not there."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from bot.localgram import Message
from bot.localgram.chat import Chat
from fakes.localgram import Person

GRACE_SECONDS = 2.0  # how long a person looks for the text before pressing the button
LOOK_SECONDS = 5.0
NEWEST = 8  # messages in which a notice is looked for
AGAIN = "Show again"

There = Callable[[Message], object]


@dataclass
class Reader:
    """Of one chat. `loose` are notices about what answers no message."""

    person: Person
    chat: Chat
    notices: int = 0
    pressed: int = 0
    loose: list[Message] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    async def answered(self, said: Message, there: There, seconds: float) -> bool:
        """Wait until `there(said)`; False when that time is over. `there` tells whether the
        answer to a message can be seen."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if notice := self._notice():
                await self._look(notice, there)
            elif there(said):
                return True
            else:
                with suppress(TimeoutError):
                    await self.chat.feed.until(lambda: there(said) or self._notice(), LOOK_SECONDS)
        return False

    async def press(self, notice: Message) -> None:
        self.pressed += 1
        await self.person.press(notice, AGAIN)

    async def _look(self, notice: Message, there: There) -> None:
        """The answer that it asks about may be there already; if not, its button brings it."""
        self.notices += 1
        self._seen.add(notice.id)
        asked = self.chat.messages.get(notice.reply_to or 0)
        if asked is None:
            self.loose.append(notice)
            return
        try:
            await self.chat.feed.until(lambda: there(asked) or None, GRACE_SECONDS)
        except TimeoutError:
            await self.press(notice)

    def _notice(self) -> Message | None:
        fresh = (m for m in list(self.chat.messages.values())[-NEWEST:] if m.buttons == [AGAIN])
        return next((m for m in fresh if m.id not in self._seen), None)
