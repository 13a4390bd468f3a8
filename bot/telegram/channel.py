"""Telegram as a channel: sends, edits, drafts, reactions, files."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import BinaryIO, TypeVar

from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    Message,
    ReplyParameters,
)
from telegram.error import BadRequest, RetryAfter, TelegramError

from bot.channel import Asked, Enclosed, Limits, Live, OutgoingMessage, Rows
from bot.telegram import outgoing_files
from bot.telegram.chat_key import Place
from bot.telegram.live import LiveMessage
from bot.telegram.live_message_store import LiveMessageStore
from bot.telegram.outgoing_files import UPLOAD_SECONDS
from bot.telegram.pacer import Pacer, Pacers, Urgency
from bot.telegram.render import plain, render
from bot.telegram.send_errors import no_such_method, unchanged, understood
from bot.telegram.styled import CAPTION_UNITS, TEXT_UNITS, Styled, entities, head, split

MOST_PARTS = 4  # longer answers come as a document
MIB = 1 << 20
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
# Bot API 10.3: a button under the draft; its press comes as `stopped_message_generation`.
CAN_STOP = {"can_stop": True}

T = TypeVar("T")
Wanted = Callable[[], bool]


class TelegramChannel:
    """A Channel over one bot. `local` is a Bot API server of one's own, with its larger limits."""

    def __init__(
        self,
        bot: Bot,
        pacers: Pacers,
        traces: LiveMessageStore | None = None,
        *,
        local: bool = False,
    ) -> None:
        self._bot = bot
        self._traces = traces
        self._pacers = pacers
        self._local = local
        self._drafts = True
        self._newest: dict[str, int] = {}

    def heard(self, chat: str, message: str) -> None:
        """A message came in: answers to older ones are shown as replies from now on."""
        self._newest[chat] = max(self._newest.get(chat, 0), int(message))

    def limits(self, chat: str) -> Limits:
        """https://core.telegram.org/bots/api#sending-files and #getfile"""
        up, down = (2000 * MIB, 200 * MIB) if self._local else (50 * MIB, 20 * MIB)
        pause = 0.9 if Place.of(chat).private else 4.0
        return Limits(TEXT_UNITS, CAPTION_UNITS, up, down, 10 * MIB, pause)

    def turn(self, chat: str) -> AbstractAsyncContextManager[None]:
        return self._pacer(chat).turn(Urgency.FINAL)

    async def post(self, chat: str, letter: OutgoingMessage) -> tuple[str, OutgoingMessage | None]:
        parts = letter_parts(letter.text)
        last = letter.part + 1 >= len(parts)
        with understood():
            try:
                sent = await self._part(chat, parts[letter.part], letter, last=last)
            except RetryAfter as refusal:
                self._pacer(chat).rest(refusal)
                raise
        return sent, None if last else replace(letter, part=letter.part + 1)

    async def send(self, chat: str, letter: OutgoingMessage) -> list[str]:
        sent: list[str] = []
        left: OutgoingMessage | None = letter
        while left is not None:
            async with self.turn(chat):
                message, left = await self.post(chat, left)
            sent.append(message)
        return sent

    async def edit(self, chat: str, message: str, text: str, rows: Rows = ()) -> None:
        styled = head(render(text), TEXT_UNITS)
        with understood():
            await self._run(chat, lambda: self._replace(chat, message, styled, rows))

    def live(self, chat: str) -> Live:
        return LiveMessage(self, chat, self._traces)

    async def react(self, chat: str, message: str, emoji: str) -> None:
        await self._quietly(
            chat, lambda p: self._bot.set_message_reaction(p.chat_id, int(message), emoji or None)
        )

    async def typing(self, chat: str) -> None:
        await self._quietly(
            chat, lambda p: self._bot.send_chat_action(p.chat_id, "typing", p.thread_id)
        )

    async def ask(self, chat: str, question: str, rows: Rows) -> Asked:
        return Asked((await self.send(chat, OutgoingMessage(question, rows)))[-1])

    async def file(self, chat: str, file: BinaryIO, name: str, caption: str) -> str:
        return (await self.album(chat, [(file, name)], caption))[0]

    async def album(self, chat: str, files: Sequence[Enclosed], caption: str) -> list[str]:
        most = self.limits(chat).photo
        with understood():
            sent = await outgoing_files.send(
                self._bot, partial(self._run, chat), Place.of(chat), files, caption, most
            )
        return [_id(message) for message in sent]

    # -- for the live view -----------------------------------------------------

    @property
    def drafts(self) -> bool:
        """Whether the server knows drafts; an older one does not."""
        return self._drafts

    async def draft(self, chat: str, number: int, text: Styled, wanted: Wanted) -> None:
        """Show a draft, if it is still wanted when its turn comes."""
        place = Place.of(chat)

        async def call() -> None:
            if wanted():
                await self._bot.send_message_draft(
                    place.chat_id,
                    number,
                    text.text,
                    place.thread_id,
                    entities=entities(text),
                    api_kwargs=CAN_STOP,
                )

        try:
            await self._pacer(chat).run(call, Urgency.PROGRESS)
        except TelegramError as error:
            self._drafts = self._drafts and not no_such_method(error)

    async def put(self, chat: str, message: str, text: Styled, wanted: Wanted) -> str:
        """Replace that message of progress, or send it silently where it is ""; its id.

        "" when it was no longer wanted and is not there.
        """

        async def call() -> str:
            if not wanted():
                return message
            if message:
                await self._replace(chat, message, text, ())
                return message
            return await self._message(chat, text, OutgoingMessage("", quiet=True))

        with understood():
            return await self._pacer(chat).run(call, Urgency.PROGRESS)

    async def finish(self, chat: str, message: str, text: Styled) -> None:
        """End a message of progress with that text; without one it goes."""
        if text.text:
            await self.put(chat, message, text, lambda: True)
        else:
            await self.delete(chat, message)

    async def delete(self, chat: str, message: str) -> None:
        await self._quietly(chat, lambda p: self._bot.delete_message(p.chat_id, int(message)))

    # -- calls -----------------------------------------------------------------

    async def _part(
        self, chat: str, part: "Styled | Document", letter: OutgoingMessage, *, last: bool
    ) -> str:
        rows = letter.rows if last else ()
        letter = replace(letter, rows=rows, reply_to=self._answered(chat, letter))
        if isinstance(part, Document):
            return await self._document(chat, part, letter)
        try:
            return await self._message(chat, part, letter)
        except BadRequest:
            if not part.spans:
                raise
            return await self._message(chat, plain(part.text), letter)

    def _answered(self, chat: str, letter: OutgoingMessage) -> str:
        """In a private chat the answer to the newest message needs no quote of it; a question does."""
        newest = self._newest.get(chat, 0)
        if letter.part or not letter.reply_to:
            return ""
        plain_answer = Place.of(chat).private and int(letter.reply_to) >= newest
        return "" if plain_answer and not letter.rows else letter.reply_to

    async def _message(self, chat: str, text: Styled, letter: OutgoingMessage) -> str:
        place = Place.of(chat)
        return _id(
            await self._bot.send_message(
                place.chat_id,
                text.text,
                entities=entities(text),
                message_thread_id=place.thread_id,
                disable_notification=letter.quiet,
                reply_parameters=_replying(letter.reply_to),
                reply_markup=keyboard(letter.rows),
                link_preview_options=NO_PREVIEW,
            )
        )

    async def _document(self, chat: str, document: "Document", letter: OutgoingMessage) -> str:
        place = Place.of(chat)
        return _id(
            await self._bot.send_document(
                place.chat_id,
                InputFile(document.text.encode(), filename="answer.md"),
                message_thread_id=place.thread_id,
                disable_notification=letter.quiet,
                reply_markup=keyboard(letter.rows),
                write_timeout=UPLOAD_SECONDS,
            )
        )

    async def _replace(self, chat: str, message: str, text: Styled, rows: Rows) -> None:
        try:
            await self._bot.edit_message_text(
                text.text,
                Place.of(chat).chat_id,
                int(message),
                entities=entities(text),
                reply_markup=keyboard(rows),
                link_preview_options=NO_PREVIEW,
            )
        except BadRequest as error:
            if not unchanged(error):
                raise

    async def _run(self, chat: str, call: Callable[[], Awaitable[T]]) -> T:
        return await self._pacer(chat).run(call)

    async def _quietly(self, chat: str, call: Callable[[Place], Awaitable[object]]) -> None:
        """A decoration: nothing depends on it."""
        place = Place.of(chat)
        try:
            await self._pacer(chat).hint(lambda: call(place))
        except TelegramError:
            return

    def _pacer(self, chat: str) -> Pacer:
        return self._pacers.of(Place.of(chat).chat_id)


class Document:
    """A text too long for messages, as a file."""

    def __init__(self, text: str) -> None:
        self.text = text


def letter_parts(text: str) -> list[Styled | Document]:
    """The messages of a text: at least one, and where they would be many, a beginning and a file."""
    parts = split(render(text)) or [Styled("…")]
    if len(parts) <= MOST_PARTS:
        return [*parts]
    return [head(render(text), TEXT_UNITS // 2), Document(text)]


def keyboard(rows: Rows) -> InlineKeyboardMarkup | None:
    buttons = [[InlineKeyboardButton(c.label, callback_data=c.key) for c in row] for row in rows]
    return InlineKeyboardMarkup(buttons) if buttons else None


def _replying(message: str) -> ReplyParameters | None:
    return ReplyParameters(int(message), allow_sending_without_reply=True) if message else None


def _id(message: Message) -> str:
    return str(message.message_id)
