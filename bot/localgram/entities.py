"""Text and its formatting, as Telegram would keep them. Offsets and lengths count UTF-16 units."""

import re
from typing import Any

from bot.localgram.wire import Json, bad_request

ENTITIES = 100  # a message keeps so many; the rest lose their formatting
NEEDED = {"text_link": "url", "text_mention": "user", "custom_emoji": "custom_emoji_id"}
FOUND = re.compile(  # what clients mark by themselves, roughly
    r"(?P<bot_command>(?<![\w/<@])/[A-Za-z0-9_]{1,64}(?:@\w{3,32})?)(?![\w/])"
    r"|(?P<url>https?://[^\s<>\"]+[^\s<>\".,;:!?)\]])"
    r"|(?P<email>\b[\w.+-]+@[\w-]+\.[\w.-]*\w)"
    r"|(?P<mention>(?<!\w)@[A-Za-z]\w{3,31})\b"
    r"|(?P<hashtag>(?<!\w)#\w*[^\W\d]\w*)"
)
WHOLE = frozenset({"code", "pre", "text_link", "text_mention", "custom_emoji"})  # hold no others


def units(text: str) -> int:
    """The length of a text in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def formatted(text: str, entities: list[Any]) -> tuple[str, tuple[Json, ...]]:
    """A text and its entities, checked and trimmed as a sent message would be, with what clients mark by
    themselves. Raises ApiError 400."""
    try:
        wide = text.encode("utf-16-le")
    except UnicodeEncodeError:
        raise bad_request("strings must be encoded in UTF-8") from None
    checked = [_checked(entity, wide) for entity in entities]
    first = min((entity["offset"] for entity in checked), default=len(text))
    start = min(len(text) - len(text.lstrip()), first)  # blanks are one unit each
    trimmed = text[start:].rstrip()
    kept = [_clipped(entity, -start, units(trimmed)) for entity in checked]
    kept = [entity for entity in kept if entity["length"] > 0]
    kept += [
        found for found in _found(trimmed) if not any(_hides(entity, found) for entity in kept)
    ]
    kept.sort(key=lambda entity: (entity["offset"], -entity["length"]))
    return trimmed, tuple(kept[:ENTITIES])


def _checked(entity: Any, wide: bytes) -> Json:
    """Raises ApiError 400 for an entity that lacks a field or does not lie in the text."""
    if not isinstance(entity, dict):
        raise bad_request("can't parse MessageEntity: expected an Object")
    for name in ("type", "offset", "length", NEEDED.get(str(entity.get("type")), "type")):
        if name not in entity:
            raise bad_request(f"can't parse MessageEntity: Can't find field \"{name}\"")
    first, last = entity["offset"], entity["offset"] + entity["length"]
    if not 0 <= first <= last or 2 * last > len(wide):
        raise bad_request(
            f"entity beginning at UTF-16 offset {first} ends after the end of the text"
        )
    for at in (first, last):
        if 0xDC <= int.from_bytes(wide[2 * at + 1 : 2 * at + 2], "little") <= 0xDF:
            raise bad_request(f"entity border in a middle of a UTF-16 symbol at offset {at}")
    return dict(entity)


def _clipped(entity: Json, shift: int, end: int) -> Json:
    first = min(max(entity["offset"] + shift, 0), end)
    last = min(max(entity["offset"] + entity["length"] + shift, 0), end)
    return {**entity, "offset": first, "length": last - first}


def _hides(entity: Json, found: Json) -> bool:
    beside = found["offset"] >= entity["offset"] + entity["length"]
    return (
        entity["type"] in WHOLE
        and not beside
        and entity["offset"] < found["offset"] + found["length"]
    )


def _found(text: str) -> list[Json]:
    return [
        {
            "type": match.lastgroup,
            "offset": units(text[: match.start()]),
            "length": units(match.group()),
        }
        for match in FOUND.finditer(text)
    ]
