"""Approvals: owners are asked with buttons; the first press counts; the question then says who decided."""

from agent.approvals import ApprovalRequest
from agent.events import Decision
from agent.store.approvals import ApprovalTable
from bot.channel import Channel, ChannelError, Rows, Uncertain
from bot.question import KIND, buttons, decision, question, quoted
from bot.telegram.access import Access
from bot.telegram.buttons import Outcome, Press
from bot.telegram.chat_key import Place
from bot.telegram.handler_context import HandlerContext
from bot.texts import Texts

__all__ = ["KIND", "Asking", "buttons", "close", "decide", "question"]

TRIES = 3


class Asking:
    """Shows a question wherever an owner reads it; the answer comes by a press."""

    def __init__(self, channel: Channel, door: Access, texts: Texts, rows: ApprovalTable) -> None:
        self._channel = channel
        self._door = door
        self._texts = texts
        self._rows = rows

    async def __call__(self, request: ApprovalRequest) -> Decision | None:
        if await self._rows.message_of(request.id):
            return None  # asked before a restart: those buttons still hold
        sent: list[str] = []
        for chat in self._places(request.chat):
            asked = question(self._texts, request, elsewhere=chat != request.chat)
            try:
                message = await self._ask(chat, asked, buttons(self._texts, request.id))
            except ChannelError:
                continue  # an owner who has blocked us; the others still read it
            sent.append(f"{chat}/{message}")
            await self._rows.shown(request.id, " ".join(sent))
        return None if sent else "denied"

    def _places(self, chat: str) -> list[str]:
        """The chat itself where an owner reads it, and else the owners' own chats."""
        place = Place.of(chat) if chat.startswith("tg:") else None
        if place is not None and place.chat_id in self._door.owners:
            return [chat]
        private = [Place(owner).key for owner in sorted(self._door.owners)]
        return [chat, *private] if place is not None and not place.private else private

    async def _ask(self, chat: str, asked: str, rows: Rows) -> str:
        """Two copies of one question are harmless, a missing one is not."""
        for _ in range(TRIES - 1):
            try:
                return (await self._channel.ask(chat, asked, rows)).message
            except Uncertain:
                continue
        return (await self._channel.ask(chat, asked, rows)).message


async def decide(room: HandlerContext, press: Press) -> Outcome:
    id, decided = decision(press.argument)
    if press.standing != "owner" or room.services.approvals is None or decided is None:
        return Outcome(room.texts.only_owners)
    request = await room.services.approvals.decide(id, decided, press.speaker.name)
    if request is None:
        return Outcome(room.texts.expired)
    room.spawn(close(room, id))
    return Outcome(room.texts.decided[decided])


async def close(room: HandlerContext, id: str) -> None:
    """The question's messages lose their buttons and say what was decided."""
    decided = await room.store.approvals.decided(id)
    if decided is None:
        return
    state, by, at = decided
    form = room.texts.decisions["expired" if by == "expired" else state]
    told = form.format(by=by, at=room.clock(at))
    request = await room.store.approvals.get(id)
    for shown in (await room.store.approvals.message_of(id)).split():
        chat, _, message = shown.rpartition("/")
        text = f"{quoted(request.what) if request else ''}\n\n{told}"
        try:
            await room.post.edit(chat, message, text)
        except ChannelError:
            continue
