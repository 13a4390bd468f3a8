"""Buttons: each press is checked for its sender, answered, and acted on once."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from telegram import CallbackQuery, Message, Update
from telegram.error import TelegramError

from bot.channel import ChannelError, Rows
from bot.telegram.access import Speaker, Standing
from bot.telegram.chat_key import Place
from bot.telegram.handler_context import HandlerContext
from bot.telegram.words import place_of

# A press keeps its reply to whoever pressed; Telegram forgets it within seconds.
ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Press:
    """`argument` is what stands behind the button's kind."""

    query: CallbackQuery
    speaker: Speaker
    standing: Standing
    place: Place
    message: str
    argument: str

    @property
    def chat(self) -> str:
        return self.place.key


@dataclass(frozen=True, slots=True)
class Outcome:
    """`toast` answers the press; `text` replaces the message, its buttons becoming `rows`.

    `later` gives both where they take time, once the press is answered.
    """

    toast: str = ""
    text: str | None = None
    rows: Rows = ()
    later: Callable[[], Awaitable[tuple[str, Rows]]] | None = None


Handler = Callable[[HandlerContext, Press], Awaitable[Outcome]]


async def pressed(handlers: Mapping[str, Handler], room: HandlerContext, update: Update) -> None:
    """Decide at once (what lasts is committed), then answer and edit beside the updates."""
    query = update.callback_query
    assert query
    press = _press(room, query)
    handler = handlers.get((query.data or "").partition(":")[0])
    if press is None or handler is None or press.standing == "stranger":
        room.spawn(_answer(room, query, room.texts.not_yours if press else room.texts.expired))
        return
    outcome = await handler(room, press)
    room.spawn(_show(room, press, outcome))


def _press(room: HandlerContext, query: CallbackQuery) -> Press | None:
    """None for a message too old to be known."""
    if not isinstance(query.message, Message):
        return None
    place = place_of(query.message)
    group = place.chat_id if place.chat_id < 0 else None
    speaker = Speaker(query.from_user.id, query.from_user.full_name, group)
    argument = (query.data or "").partition(":")[2]
    standing = room.door.standing(speaker)
    return Press(query, speaker, standing, place, str(query.message.message_id), argument)


async def _show(room: HandlerContext, press: Press, outcome: Outcome) -> None:
    await _answer(room, press.query, outcome.toast)
    text, rows = await outcome.later() if outcome.later else (outcome.text, outcome.rows)
    if text is not None:
        try:
            await room.post.edit(press.chat, press.message, text, rows)
        except ChannelError:
            return  # the decision stands; only its message is as it was


async def _answer(room: HandlerContext, query: CallbackQuery, toast: str) -> None:
    try:
        await room.bot.answer_callback_query(
            query.id, toast[:200] or None, read_timeout=ANSWER_SECONDS
        )
    except TelegramError:
        return  # too late, or answered already: no error
