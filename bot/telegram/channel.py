"""Telegram as a channel: texts in parts, files, edits, reactions."""

import logging
import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from telegram import InputFile, InputMediaAudio, InputMediaDocument, InputMediaPhoto, Message
from telegram.error import BadRequest, EndPointNotFound, InvalidToken, TelegramError

from agent.leaks import LeakDetector
from bot.attachments import MIB
from bot.channel import (
    ANSWER_FILE,
    MOST_PARTS,
    Channel,
    ChannelLimits,
    Keyboard,
    LiveView,
    MessageRefused,
    NamedFile,
    OutgoingMessage,
    VoiceSound,
    refuse_secret,
    refuse_secret_files,
)
from bot.telegram.connection import TooLong
from bot.telegram.live import LiveMessage, LiveMessageStore
from bot.telegram.markdown import render
from bot.telegram.message_calls import (
    PREFIX,
    SOURCE,
    MessageCalls,
    channel_errors,
    chat_arguments,
    inline_keyboard,
    parse,
)
from bot.telegram.styled import (
    CAPTION_UNITS,
    TEXT_UNITS,
    Styled,
    entities,
    fits,
    head,
    join,
    plain,
    prose,
    split,
)
from bot.texts import TEXTS

if TYPE_CHECKING:
    from markdown_it.renderer import RendererHTML

log = logging.getLogger(__name__)

PHOTO_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
PHOTO_BYTES = 10 * MIB
SOUND_SUFFIXES = (".mp3", ".m4a", ".ogg", ".opus", ".flac", ".wav")
FileKind = Literal["photo", "audio", "document"]
UPLOAD_SECONDS = 120.0
NAME_SECONDS = 3.0


class TelegramChannel(Channel):
    """One bot. `leaks` knows what must not be sent; `own_server` is a Bot API server of one's own, with
    its larger limits; `rich`: tables and headings go out as rich messages."""

    source = SOURCE
    prefix = PREFIX

    def __init__(
        self,
        calls: MessageCalls,
        unfinished: LiveMessageStore,
        leaks: LeakDetector,
        *,
        own_server: bool = False,
        rich: bool = False,
    ) -> None:
        self._calls = calls
        self._bot = calls.bot
        self._unfinished = unfinished
        self._leaks = leaks
        self._own_server = own_server
        self._rich = rich
        self._newest: dict[str, int] = {}

    def user_of(self, chat: str) -> str | None:
        key = parse(chat)
        return str(key.chat_id) if key.private else None

    async def name(self, chat: str) -> str:
        with suppress(TelegramError):
            found = await self._bot.get_chat(parse(chat).chat_id, read_timeout=NAME_SECONDS)
            return found.effective_name or ""
        return ""

    def limits(self, chat: str) -> ChannelLimits:
        """The Bot API's limits (https://core.telegram.org/bots/api#sending-files and #getfile)."""
        seconds = 0.9 if parse(chat).private else 4.0
        upload = 2000 * MIB if self._own_server else 50 * MIB
        return ChannelLimits(upload, download_limit(self._own_server), seconds)

    def received(self, chat: str, message: str) -> None:
        self._newest[chat] = max(self._newest.get(chat, 0), int(message))

    def permit(self, chat: str) -> AbstractAsyncContextManager[None]:
        return self._calls.pacer(chat).permit()

    async def send_part(
        self, chat: str, message: OutgoingMessage
    ) -> tuple[str, OutgoingMessage | None]:
        refuse_secret(self._leaks, message.text)
        if message.sound is not None:
            with suppress(MessageRefused):  # who forbids voice messages gets the text
                return await self._send_voice(chat, message, message.sound)
        rich = self._rich and not message.keyboard and not message.part
        if rich and (id := await self._send_rich(chat, message)):
            return id, None
        parts = message_parts(message.text)
        part, last = parts[message.part], message.part + 1 >= len(parts)
        keyboard = message.keyboard if last else ()
        with self._calls.pausing(chat):
            if isinstance(part, str):
                id = await self._send_document(chat, part, keyboard, silent=message.silent)
            else:
                id = await self._send_text(chat, part, keyboard, message)
        return id, None if last else replace(message, part=message.part + 1)

    async def _send_rich(self, chat: str, message: OutgoingMessage) -> str:
        """The message's id; "" where it gains nothing, or the server does not accept it."""
        if (html := rich_html(message.text)) is None:
            return ""
        reply_to = self._quoted(chat, message)
        with self._calls.pausing(chat):
            try:
                return await self._calls.send_rich(
                    chat, html, silent=message.silent, reply_to=reply_to
                )
            except EndPointNotFound:
                self._rich = False
            except BadRequest as refusal:
                log.warning("a rich message was refused: %s", refusal)
        return ""

    async def _send_voice(
        self, chat: str, message: OutgoingMessage, sound: VoiceSound
    ) -> tuple[str, OutgoingMessage | None]:
        """With the text as its caption where that is short enough, else followed by the text."""
        styled = render(message.text)
        whole = fits(styled, CAPTION_UNITS)
        with self._calls.pausing(chat):
            sent = await self._bot.send_voice(
                voice=InputFile(sound.ogg, filename="voice.ogg"),
                duration=max(1, round(sound.seconds)),
                disable_notification=message.silent,
                reply_markup=inline_keyboard(message.keyboard) if whole else None,
                write_timeout=UPLOAD_SECONDS,
                read_timeout=UPLOAD_SECONDS,
                **chat_arguments(chat),
                **(caption_fields(styled) if whole else {}),
            )
        rest = None if whole else replace(message, voice=False, sound=None)
        return str(sent.message_id), rest

    async def _send_text(
        self, chat: str, part: Styled, keyboard: Keyboard, message: OutgoingMessage
    ) -> str:
        options: dict[str, Any] = {
            "silent": message.silent,
            "reply_to": self._quoted(chat, message, keyboard),
        }
        try:
            return await self._calls.send_text(chat, part, keyboard, **options)
        except BadRequest:  # perhaps of the formatting
            if not part.spans:
                raise
            return await self._calls.send_text(chat, plain(part.text), keyboard, **options)

    def _quoted(self, chat: str, message: OutgoingMessage, keyboard: Keyboard = ()) -> str:
        """In a private chat the answer to the newest message needs no quote of it; a question does."""
        if message.part or not message.reply_to:
            return ""
        newest = int(message.reply_to) >= self._newest.get(chat, 0)
        return "" if newest and parse(chat).private and not keyboard else message.reply_to

    async def _send_document(
        self, chat: str, text: str, keyboard: Keyboard, *, silent: bool
    ) -> str:
        sent = await self._bot.send_document(
            document=InputFile(text.encode(), filename=ANSWER_FILE),
            disable_notification=silent,
            reply_markup=inline_keyboard(keyboard),
            write_timeout=UPLOAD_SECONDS,
            **chat_arguments(chat),
        )
        return str(sent.message_id)

    async def send_files(
        self, chat: str, files: Sequence[NamedFile], caption: str, *, silent: bool = False
    ) -> list[str]:
        """Send photos and sound as such; if they are not all of one of these kinds, all as documents."""
        refuse_secret(self._leaks, caption)
        await refuse_secret_files(self._leaks, files)
        pacer, kind = self._calls.pacer(chat), kind_of(files)
        with channel_errors():
            try:
                sent = await pacer.run(lambda: self._upload(chat, files, caption, kind, silent))
            except BadRequest:
                if kind == "document":
                    raise
                # Telegram cannot show or play it; a document may be anything.
                sent = await pacer.run(
                    lambda: self._upload(chat, files, caption, "document", silent)
                )
        return [str(message.message_id) for message in sent]

    async def _upload(
        self, chat: str, files: Sequence[NamedFile], caption: str, kind: FileKind, silent: bool
    ) -> Sequence[Message]:
        under = caption_fields(head(render(caption), CAPTION_UNITS))
        options = {
            **chat_arguments(chat),
            "disable_notification": silent or None,
            "write_timeout": UPLOAD_SECONDS,
            "read_timeout": UPLOAD_SECONDS,
        }
        methods: dict[FileKind, tuple[Any, Any]] = {
            "photo": (InputMediaPhoto, self._bot.send_photo),
            "audio": (InputMediaAudio, self._bot.send_audio),
            "document": (InputMediaDocument, self._bot.send_document),
        }
        media_type, send = methods[kind]
        if len(files) == 1:
            return [await send(**{kind: input_file(files[0])}, **options, **under)]
        media = [
            media_type(input_file(file, attach=True), **(under if number == 0 else {}))
            for number, file in enumerate(files)
        ]
        return await self._bot.send_media_group(media=media, **options)

    async def edit(self, chat: str, message: str, text: str, keyboard: Keyboard = ()) -> None:
        refuse_secret(self._leaks, text)
        styled = head(render(text), TEXT_UNITS)
        with channel_errors():
            await self._calls.pacer(chat).run(
                lambda: self._calls.edit_text(chat, message, styled, keyboard)
            )

    def live_view(self, chat: str) -> LiveView:
        return LiveMessage(self._calls, chat, self._unfinished)

    async def react(self, chat: str, message: str, emoji: str) -> None:
        await self._calls.unless_paused(
            "reaction",
            chat,
            lambda key: self._bot.set_message_reaction(key.chat_id, int(message), emoji or None),
        )

    async def typing(self, chat: str) -> None:
        await self._calls.unless_paused(
            "typing",
            chat,
            lambda key: self._bot.send_chat_action(key.chat_id, "typing", key.thread_id),
        )

    async def download(self, file: str) -> bytes:
        with channel_errors():
            found = await self._bot.get_file(file)
            try:
                return bytes(await found.download_as_bytearray())
            except InvalidToken:  # what python-telegram-bot makes of a 404
                raise MessageRefused("its link is no longer valid") from None
            except TooLong:  # whatever size its message named
                raise MessageRefused("it is larger than what can be received here") from None


def download_limit(own_server: bool) -> int:
    """The size in bytes of the largest file that can be received."""
    return 200 * MIB if own_server else 20 * MIB


def message_parts(text: str) -> list[Styled | str]:
    """Split a text into messages; of a very long text return a beginning, and the whole as a string, to be sent
    as a file."""
    styled = render(text)
    parts = split(styled) or [Styled("…")]
    if len(parts) <= MOST_PARTS:
        return [*parts]
    below = TEXTS.whole_in_file.format(count=len(text), name=ANSWER_FILE)
    return [join([head(styled, TEXT_UNITS // 2), prose(below).within("italic")], "\n\n"), text]


def kind_of(files: Sequence[NamedFile]) -> FileKind:
    """The kind as which all of these files are sent."""
    if all(n.lower().endswith(PHOTO_SUFFIXES) and f.seek(0, 2) <= PHOTO_BYTES for f, n in files):
        return "photo"
    sound = all(name.lower().endswith(SOUND_SUFFIXES) for _, name in files)
    return "audio" if sound else "document"


def caption_fields(styled: Styled) -> dict[str, Any]:
    return {"caption": styled.text or None, "caption_entities": entities(styled)}


def input_file(named: NamedFile, *, attach: bool = False) -> InputFile:
    file, name = named
    file.seek(0)
    return InputFile(file, filename=name, attach=attach, read_file_handle=False)


# -- rich messages ------------------------------------------------------------


CHARACTERS, BLOCKS, LEVELS, COLUMNS = 32_768, 500, 16, 20
CELL = re.compile(r' style="text-align:(left|center|right)"')
GAINS = {"table_open", "heading_open"}  # what entities cannot show


def rich_html(text: str) -> str | None:
    """The HTML of a rich message; None if entities are enough, or if it would exceed the limits."""
    from bot.markdown_dialect import (
        as_html,
        parser,  # it loads markdown-it, which a start need not wait for
    )

    tokens = parser().parse(text)
    opened = [token.type for token in tokens if token.nesting >= 0]
    columns = opened.count("th_open") + opened.count("td_open")  # of one row at most, mostly less
    rows = opened.count("tr_open")
    if GAINS.isdisjoint(opened) or len(text) > CHARACTERS or len(opened) > BLOCKS:
        return None
    if any(token.level >= LEVELS for token in tokens) or (rows and columns > COLUMNS * rows):
        return None
    html = as_html(text, renderer())
    return CELL.sub(r' align="\1"', html).replace("<br />", "<br>")


@cache
def renderer() -> "RendererHTML":
    from bot.markdown_dialect import html_renderer

    tags = dict.fromkeys(("thead_open", "thead_close", "tbody_open", "tbody_close"), "")
    tags |= {"spoiler_open": "<tg-spoiler>", "spoiler_close": "</tg-spoiler>"}
    return html_renderer({**tags, "table_open": "<table bordered>"})
