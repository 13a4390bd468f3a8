"""The bot's reactions, which show on a message whether it was seen and how its turn ended."""

import asyncio
from collections.abc import Iterable
from typing import Literal

from agent.events import Reason
from agent.store import Incoming
from bot.channel import Channel

ShownReactions = Literal["done", "seen", "off"]
SEEN = "👀"
# Telegram accepts only some emoji, and neither ⚠️ nor ✅.
DONE, FAILED, NONE = "👌", "😢", ""
FEEDBACK = {"👍": True, "👎": False}  # a person's, on an answer


class Reactions:
    """A message gets SEEN, and then DONE, FAILED or, where the turn was stopped, nothing."""

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
        """The turn that answered those messages has ended."""
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
