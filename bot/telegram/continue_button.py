"""[Go on] under the report of a turn that ended at a limit: the next turn, as if the person had said so."""

from agent.store import Incoming
from agent.turn.journal import TurnReply
from bot.channel import Choice, Rows
from bot.telegram.access import SOURCE
from bot.telegram.buttons import Outcome, Press
from bot.telegram.handler_context import HandlerContext
from bot.texts import Texts

GO_ON = "onward"
AT_A_LIMIT = frozenset({"tool_limit", "loop"})


def rows(reply: TurnReply, texts: Texts) -> Rows:
    """The buttons of a finished turn's reply."""
    limited = reply.reason in AT_A_LIMIT
    return [[Choice(f"{GO_ON}:{reply.turn}", texts.go_on)]] if limited else ()


async def press(room: HandlerContext, press: Press) -> Outcome:
    """Once, and only as long as nothing came after that turn."""
    turns = room.store.turns
    last = await turns.last(press.chat)
    if last is None or last[0].id != press.argument or await turns.unfinished(press.chat):
        return Outcome(room.texts.expired)
    said = Incoming(
        press.chat,
        SOURCE,
        f"{GO_ON}:{press.argument}",
        room.texts.go_on,
        sender=press.speaker.name if press.speaker.group else "",
    )
    fresh = await room.services.chats.submit(said)
    return Outcome(room.texts.goes_on if fresh else room.texts.expired)
