"""Files: sendPhoto and its like, albums, getFile."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from bot.localgram.files import PHOTO_LIMIT, StoredFile
from bot.localgram.message import Media, Message
from bot.localgram.methods import Methods
from bot.localgram.methods.targets import caption_of, keyboard_of, outgoing, sent, with_content
from bot.localgram.methods.texts import changed, editable
from bot.localgram.pictures import dimensions
from bot.localgram.wire import Call, Json, Upload, bad_request, integer
from bot.localgram.world import World

ALBUM = 10
SIDES, RATIO = 10_000, 20  # a photo's width and height together, in pixels; and their ratio
DETAILS = {
    "voice": ("duration",),
    "audio": ("duration", "performer", "title"),
    "video": ("width", "height", "duration"),
    "animation": ("width", "height", "duration"),
    "video_note": ("length", "duration"),
}
NAMES = {
    "photo": "photo.jpg",
    "voice": "voice.ogg",
    "audio": "audio.mp3",
    "sticker": "sticker.webp",
}


def file_of(world: World, call: Call, field: str, given: str) -> StoredFile:
    """The file a call brings or names: an upload, attach://NAME, or a file id.

    Raises: ApiError 400.
    """
    upload = call.uploads.get(given.removeprefix("attach://") if given else field)
    if upload is not None:
        return _uploaded(world, upload, field)
    if not given:
        raise bad_request(f"there is no {field.replace('_', ' ')} in the request")
    if given.startswith(("http://", "https://")):
        raise bad_request("failed to get HTTP URL content")
    stored = world.files.find(given)
    if stored is None:
        raise bad_request("wrong file identifier/HTTP URL specified")
    return stored


def _uploaded(world: World, upload: Upload, field: str) -> StoredFile:
    if not upload.content:
        raise bad_request("file must be non-empty")
    if field == "photo" and len(upload.content) > PHOTO_LIMIT:
        size = len(upload.content)
        raise bad_request(
            f"file of size {size} bytes is too big for a photo; the maximum size is {PHOTO_LIMIT} bytes"
        )
    named = upload.name or NAMES.get(field, field)
    mime = "" if upload.mime in {"", "application/octet-stream"} else upload.mime
    return world.files.keep(named, upload.content, mime)


def media_of(kind: str, stored: StoredFile, number: Callable[[str], str]) -> Media:
    """`number` gives a call's or an album item's own fields."""
    if kind == "photo":
        return Media(kind, stored, _picture(stored))
    details: Json = {name: number(name) for name in DETAILS.get(kind, ()) if number(name)}
    for name in DETAILS.get(kind, ()):
        if name not in {"performer", "title"}:
            details[name] = integer(details.get(name))
    if kind == "sticker":
        details = {"width": 512, "height": 512, "type": "regular"}
        details |= {"is_animated": False, "is_video": False}
    return Media(kind, stored, details)


def _picture(stored: StoredFile) -> Json:
    sides = dimensions(stored.content)
    if sides is None:
        raise bad_request("IMAGE_PROCESS_FAILED")
    width, height = sides
    if width + height > SIDES or max(sides) > RATIO * min(sides):
        raise bad_request("PHOTO_INVALID_DIMENSIONS")
    return {"width": width, "height": height}


def send_media(kind: str, world: World, call: Call) -> Json:
    chat, message = outgoing(world, call)
    media = media_of(kind, file_of(world, call, kind, call.text(kind)), call.text)
    text, entities = caption_of(call)
    return sent(world, chat, replace(message, media=media, text=text, entities=entities))


def send_media_group(world: World, call: Call) -> list[Json]:
    chat, message = outgoing(world, call)
    items = [_item(world, call, item) for item in call.sequence("media", "media")]
    _check_album(items)
    if len(items) > 1:
        message = replace(message, album=str(world.next_album()))
    return [sent(world, chat, with_content(message, item)) for item in items]


def _check_album(items: list[Message]) -> None:
    if not items:
        raise bad_request("there are no messages to send")
    if len(items) > ALBUM:
        raise bad_request("too many messages to send as an album")
    kinds = {item.media.kind for item in items if item.media is not None}
    if len(kinds) > 1 and kinds & {"document", "audio"}:
        raise bad_request("document can't be mixed with other media types")


def _item(world: World, call: Call, item: Json) -> Message:
    """One InputMedia as a message that is not posted yet."""
    if not isinstance(item, dict):
        raise bad_request("can't parse InputMedia: expected an Object")
    kind = str(item.get("type", ""))
    if kind not in {"photo", "document", "audio", "video", "animation"}:
        raise bad_request("can't parse InputMedia: type must be non-empty")
    stored = file_of(world, call, kind, str(item.get("media") or ""))
    text, entities = caption_of(call, item)
    media = media_of(kind, stored, lambda name: str(item.get(name) or ""))
    return Message(sender=world.bot, media=media, text=text, entities=entities)


def edit_message_media(world: World, call: Call) -> Json:
    chat, old = editable(world, call)
    new = _item(world, call, call.mapping("media", "input media"))
    return changed(world, chat, old, replace(with_content(old, new), keyboard=keyboard_of(call)))


def get_file(world: World, call: Call) -> Json:
    return world.files.link(call.text("file_id"))


METHODS: Methods = {
    "sendPhoto": partial(send_media, "photo"),
    "sendDocument": partial(send_media, "document"),
    "sendVoice": partial(send_media, "voice"),
    "sendAudio": partial(send_media, "audio"),
    "sendVideo": partial(send_media, "video"),
    "sendAnimation": partial(send_media, "animation"),
    "sendVideoNote": partial(send_media, "video_note"),
    "sendSticker": partial(send_media, "sticker"),
    "sendMediaGroup": send_media_group,
    "editMessageMedia": edit_message_media,
    "getFile": get_file,
}
