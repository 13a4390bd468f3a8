"""A messaging app in memory, which fails on demand."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.channel import (
    Channel,
    ChannelLimits,
    Keyboard,
    OutgoingMessage,
    TurnView,
)


@dataclass
class MemoryLiveView:
    """`seen` are the calls in order."""

    seen: list[tuple[str, TurnView]] = field(default_factory=list)

    async def show(self, view: TurnView) -> None:
        self.seen.append(("show", view))

    def close(self, view: TurnView) -> None:
        self.seen.append(("close", view))

    async def settle(self, view: TurnView) -> None:
        self.seen.append(("settle", view))

    async def finish(self, view: TurnView) -> None:
        self.seen.append(("finish", view))


@dataclass
class MemoryChannel(Channel):
    """Each send takes the next of `faults`, and raises it where it is no None.

    A text has a part for each stretch between bars. The id of the n-th part is n.
    """

    source: str = "test"
    prefix: str = "tg:"
    faults: deque[Exception | None] = field(default_factory=deque)
    sent: list[tuple[str, OutgoingMessage]] = field(default_factory=list)
    views: list[MemoryLiveView] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # by chat

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Chat and text of each part."""
        return [(chat, message.text.split("|")[message.part]) for chat, message in self.sent]

    def user_of(self, chat: str) -> str:
        return chat.removeprefix(self.prefix)

    async def name(self, chat: str) -> str:
        return self.names.get(chat, "")

    def limits(self, chat: str) -> ChannelLimits:
        return ChannelLimits(upload=0, download=0, update_seconds=0.0)

    @asynccontextmanager
    async def permit(self, chat: str) -> AsyncIterator[None]:
        yield

    async def send_part(
        self, chat: str, message: OutgoingMessage
    ) -> tuple[str, OutgoingMessage | None]:
        if self.faults and (fault := self.faults.popleft()):
            raise fault
        self.sent.append((chat, message))
        rest = OutgoingMessage(
            message.text, message.keyboard, message.silent, message.reply_to, message.part + 1
        )
        return str(len(self.sent)), rest if rest.part <= message.text.count("|") else None

    async def edit(self, chat: str, message: str, text: str, keyboard: Keyboard = ()) -> None: ...

    def live_view(self, chat: str) -> MemoryLiveView:
        self.views.append(MemoryLiveView())
        return self.views[-1]

    async def typing(self, chat: str) -> None:
        self.typed.append(chat)
