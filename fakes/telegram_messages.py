"""Messages as Telegram sends them, without a Telegram: parsed by python-telegram-bot, read by the bot's own code."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from telegram import Message, User

from agent.context.user_message import Fetch
from agent.pictures import VisionLimits
from agent.sandbox.sandbox import Sandbox
from agent.store import Incoming, Store
from agent.voice.speech_to_text import SpeechToText
from backend.protocol import PICTURE_PIXELS
from bot.attachments import AttachmentFetcher
from bot.channel import Channel, ChannelLimits
from bot.telegram.incoming_message import incoming_message
from bot.texts import Texts

ME = User(4242, "Bot", is_bot=True, username="bot")
OWNER = {"id": 111, "first_name": "Olga", "is_bot": False}
EVE = {"id": 666, "first_name": "Eve", "is_bot": False}
CHAT = {"id": 111, "type": "private"}
_FILE = {"file_id": "f", "file_unique_id": "u", "file_size": 7}
_NUMBERS = itertools.count(1)


def said_to_the_bot(
    text: str = "",
    *,
    caption: str = "",
    document: dict[str, Any] | None = None,
    photo: bool = False,
    forwarded: bool = False,
    answers: str = "",
) -> Incoming:
    """The owner's message: of Eve's words where `forwarded`, or to hers that it `answers`."""
    number = next(_NUMBERS)
    fields: dict[str, Any] = {
        "message_id": number,
        "date": 1_800_000_000,
        "chat": CHAT,
        "from": OWNER,
    }
    fields |= {"text": text} if text else {"caption": caption}
    if document is not None:
        fields["document"] = {**_FILE, "file_unique_id": f"u{number}", **document}
    if photo:
        fields["photo"] = [{**_FILE, "width": 1, "height": 1}]
    if forwarded:
        fields["forward_origin"] = {"type": "user", "date": 1_800_000_000, "sender_user": EVE}
    if answers:
        fields["reply_to_message"] = {**fields, "message_id": 1 << 20, "from": EVE, "text": answers}
    message = Message.de_json(fields, None)
    return incoming_message(number, message, ME, origin="owner")


@dataclass(frozen=True)
class OneFile:
    """The part of a Channel that fetches: every file has this content."""

    content: bytes

    def limits(self, chat: str) -> ChannelLimits:
        return ChannelLimits(upload=1 << 20, download=1 << 20, update_seconds=1.0)

    async def download(self, file: str) -> bytes:
        return self.content


def fetcher(store: Store, sandbox: Sandbox, content: bytes) -> Fetch:
    """Brings files with this content into the sandbox, before a model that sees pictures."""

    async def of(chat: str) -> Sandbox:
        return sandbox

    async def vision() -> VisionLimits | None:
        return VisionLimits(PICTURE_PIXELS, 4)

    def channel(chat: str) -> Channel:
        return cast(Channel, OneFile(content))

    fetcher = AttachmentFetcher(channel, store, of, vision, lambda: SpeechToText(Path()), Texts())
    return fetcher.fetch
