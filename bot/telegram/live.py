"""The live view of a turn: a draft in private chats, an edited message in groups.

The tools' lines are a silent message that stays. A send of progress that got no
answer is not repeated: that part of the view is given up for the turn.
"""

import secrets
from typing import TYPE_CHECKING

from bot.channel import ChannelError, Step, View
from bot.telegram import view as views
from bot.telegram.chat_key import Place
from bot.telegram.live_message_store import LiveMessageStore
from bot.telegram.styled import Styled

if TYPE_CHECKING:
    from bot.telegram.channel import TelegramChannel


class LiveMessage:
    def __init__(self, post: "TelegramChannel", chat: str, traces: LiveMessageStore | None) -> None:
        self._post = post
        self._chat = chat
        self._traces = traces
        self._kept: tuple[Step, ...] | None = None
        self._draft = secrets.randbelow(2**31 - 1) + 1
        self._message = ""
        self._lost = False
        self._steps: tuple[Step, ...] = ()
        self._open = True

    async def show(self, view: View) -> None:
        if not (Place.of(self._chat).private and self._post.drafts):
            await self._put(views.whole(view))
            await self._keep(view)
            return
        if view.steps != self._steps:
            self._steps = view.steps
            await self._put(views.log(view))
            await self._keep(view)
        text = views.draft(view, with_steps=self._lost)
        if text.text:
            await self._post.draft(self._chat, self._draft, text, lambda: self._open)

    def close(self, view: View) -> None:
        self._open = False

    async def settle(self, view: View) -> None:
        self._open = True
        if not self._message:
            return  # what was too quick to be shown is not put behind its own answer
        ended = True
        if view.steps:
            ended = await self._put(views.log(view))
        else:
            await self._post.delete(self._chat, self._message)
        if ended and self._traces:
            await self._traces.settled(self._chat, self._message)

    async def _put(self, text: Styled) -> bool:
        """Whether it is shown now."""
        if self._lost or not text.text:
            return False
        try:
            self._message = await self._post.put(
                self._chat, self._message, text, lambda: self._open
            )
        except ChannelError:
            self._lost = not self._message
            return False
        return True

    async def _keep(self, view: View) -> None:
        """How the message is to end should nobody be there to settle it."""
        if self._traces and self._message and self._kept != view.steps:
            self._kept = view.steps
            await self._traces.keep(self._chat, self._message, view)
