"""Files on their way out: a picture, a document, or several of them as an album."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, BinaryIO

from telegram import Bot, InputFile, InputMediaDocument, InputMediaPhoto, Message
from telegram.error import BadRequest

from bot.channel import Enclosed
from bot.telegram.chat_key import Place
from bot.telegram.render import render
from bot.telegram.styled import CAPTION_UNITS, entities, head

PHOTO_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
UPLOAD_SECONDS = 120.0

# A call that is made when the chat's turn comes, and again after a 429.
Run = Callable[[Callable[[], Awaitable[Sequence[Message]]]], Awaitable[Sequence[Message]]]


async def send(
    bot: Bot, run: Run, place: Place, files: Sequence[Enclosed], caption: str, most: int
) -> Sequence[Message]:
    """Pictures of at most `most` bytes are shown as such; with anything else among them all are documents."""
    if all(_picture(file, name, most) for file, name in files):
        try:
            return await run(lambda: _send(bot, place, files, caption, photos=True))
        except BadRequest:
            pass  # not a picture that Telegram can show: a document takes anything
    return await run(lambda: _send(bot, place, files, caption, photos=False))


def _picture(file: BinaryIO, name: str, most: int) -> bool:
    return name.lower().endswith(PHOTO_SUFFIXES) and file.seek(0, 2) <= most


async def _send(
    bot: Bot, place: Place, files: Sequence[Enclosed], caption: str, *, photos: bool
) -> Sequence[Message]:
    words = head(render(caption), CAPTION_UNITS)
    told: dict[str, Any] = {"caption": words.text or None, "caption_entities": entities(words)}
    where: dict[str, Any] = {
        "chat_id": place.chat_id,
        "message_thread_id": place.thread_id,
        "write_timeout": UPLOAD_SECONDS,
        "read_timeout": UPLOAD_SECONDS,
    }
    if len(files) > 1:
        kind: Any = InputMediaPhoto if photos else InputMediaDocument
        captions = [told, *[{}] * (len(files) - 1)]
        media = [
            kind(_input(each, attach=True), **more)
            for each, more in zip(files, captions, strict=True)
        ]
        return await bot.send_media_group(media=media, **where)
    content = _input(files[0])
    if photos:
        return [await bot.send_photo(photo=content, **where, **told)]
    return [await bot.send_document(document=content, **where, **told)]


def _input(enclosed: Enclosed, *, attach: bool = False) -> InputFile:
    file, name = enclosed
    file.seek(0)
    return InputFile(file, filename=name, attach=attach, read_file_handle=False)
