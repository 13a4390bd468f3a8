"""Live replies of all turns that run: the listener of the agent's chats."""

import logging
from collections.abc import Callable

from agent.aio import BackgroundTasks
from agent.chats.assignment import Assignment
from agent.events import ApprovalAsked, Event, TurnFinished
from bot.channel import Channel, ChannelError, OutgoingMessage
from bot.reply import Gathering, Pace, Reply
from bot.texts import Texts

log = logging.getLogger(__name__)


class Replies:
    """Each turn's live reply is a task of its own, so that no chat waits for another's app.

    `crew`'s context is to be open while turns run.
    """

    def __init__(self, channel: Channel, texts: Texts) -> None:
        self._channel = channel
        self._texts = texts
        self.decided: Callable[[str], None] = lambda id: None  # of an approval that has ended
        self._paces: dict[str, Pace] = {}
        self._open: dict[str, Reply] = {}
        self.crew = BackgroundTasks()

    async def event(self, assignment: Assignment, event: Event) -> None:
        turn = assignment.turn.id
        if isinstance(event, ApprovalAsked):
            self.decided(event.id)
        reply = self._open.get(turn)
        if reply is None and not isinstance(event, TurnFinished):
            reply = self._open[turn] = self._begin(assignment)
        if reply is not None:
            reply.feed(event)
        if isinstance(event, TurnFinished):
            self._open.pop(turn, None)

    async def waiting(self, chat: str, why: str) -> None:
        self.crew.start(self._say(chat, why), "a notice")

    def final(self, turn: str) -> None:
        """The turn's text is about to be sent: nothing of the live view may come after it."""
        if (reply := self._open.get(turn)) is not None:
            reply.end()

    def _begin(self, assignment: Assignment) -> Reply:
        pace = self._paces.setdefault(assignment.chat, Pace())
        reply = Reply(self._channel, assignment.chat, Gathering(self._texts, pace))
        self.crew.start(reply.run(), "a live reply")
        return reply

    async def _say(self, chat: str, why: str) -> None:
        try:
            await self._channel.send(chat, OutgoingMessage(why, quiet=True))
        except ChannelError as error:
            log.warning("%s was not told that it waits: %s", chat, error)
