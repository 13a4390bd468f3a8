"""Text and its formatting, as Telegram would keep them.

Without the `tdjson` package a `parse_mode` is refused: a text whose markup passed unseen
would be a test that cannot fail. Offsets and lengths count UTF-16 units.
"""

import re
from typing import Any

from bot.localgram import tdlib
from bot.localgram.nesting import STYLES, nested, order, overlap
from bot.localgram.wire import Json, bad_request

RAW_BYTES = 32768
ENTITIES = 100  # a message keeps so many; the rest lose their formatting
KNOWN = frozenset(tdlib.TYPES.values())
SCHEMES = frozenset({"http", "https", "tg", "ton", "tonsite"})
BOUND = 1_000_000
NEEDED = {"text_link": "url", "text_mention": "user", "custom_emoji": "custom_emoji_id"}
KEPT = ("type", "offset", "length", "url", "user", "language", "custom_emoji_id")
FOUND = re.compile(  # without tdjson: what clients mark by themselves, roughly
    r"(?P<bot_command>(?<![\w/<@])/[A-Za-z0-9_]{1,64}(?:@\w{3,32})?)(?![\w/])"
    r"|(?P<url>https?://[^\s<>\"]+[^\s<>\".,;:!?)\]])"
    r"|(?P<email>\b[\w.+-]+@[\w-]+\.[\w.-]*\w)"
    r"|(?P<mention>(?<!\w)@[A-Za-z]\w{3,31})\b"
    r"|(?P<hashtag>(?<!\w)#\w*[^\W\d]\w*)"
)
LINK = re.compile(r"(?:https?://)?[^\s/?#]+\.[^\s/?#]+(?:[/?#].*)?|(?:tg|ton)://\S+")
DROPPED = re.compile("[\r\u2028-\u202e]")


def units(text: str) -> int:
    """The length of a text in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def formatted(text: str, mode: str, given: list[Any]) -> tuple[str, tuple[Json, ...]]:
    """A text and its entities, parsed, repaired and trimmed as a sent message would be.

    Raises: ApiError 400.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise bad_request("strings must be encoded in UTF-8") from None
    if size > RAW_BYTES:
        raise bad_request("text is too long")
    if mode and mode.lower() != "none":
        return _settled(*_parsed(text, mode.lower()))
    return _settled(*_cleaned(text, _checked(text, [_given(entity) for entity in given])))


def _parsed(text: str, mode: str) -> tuple[str, list[Json]]:
    if mode not in tdlib.MODES:
        raise bad_request("unsupported parse_mode")
    if not tdlib.installed():
        raise bad_request("this server needs tdjson to understand parse_mode; send entities")
    try:
        return tdlib.parse(text, mode)
    except tdlib.ParseError as error:
        raise bad_request(str(error)) from None


def _given(entity: Any) -> Json:
    if not isinstance(entity, dict):
        raise bad_request("can't parse MessageEntity: expected an Object")
    kind = entity.get("type")
    for name in ("offset", "length", "type", NEEDED.get(str(kind), "type")):
        if name not in entity:
            raise bad_request(f"can't parse MessageEntity: Can't find field \"{name}\"")
    if not isinstance(kind, str) or kind not in KNOWN:
        raise bad_request("can't parse MessageEntity: Unsupported type specified")
    shown = {key: entity[key] for key in KEPT if key in entity}
    if kind == "text_link":
        shown["url"] = checked_url(str(shown["url"]), "entity")
    return shown


def checked_url(url: str, whose: str) -> str:
    """A URL as Telegram writes it.

    Raises: ApiError 400 when it is none.
    """
    if not url:
        raise bad_request(f"{whose} URL '' is invalid: URL host is empty")
    scheme = url.partition("://")[0] if "://" in url else "http"
    if scheme.lower() not in SCHEMES:
        raise bad_request(f"{whose} URL '{url}' is invalid: Unsupported URL protocol")
    written = tdlib.link(url) if tdlib.installed() else LINK.fullmatch(url) and url
    if not written:
        raise bad_request(f"{whose} URL '{url}' is invalid: Wrong HTTP URL")
    return written


def _checked(text: str, entities: list[Json]) -> list[Json]:
    """Raises: ApiError 400 for an entity that does not lie in the text."""
    wide = text.encode("utf-16-le")
    for entity in entities:
        first, length = entity["offset"], entity["length"]
        for name, value in (("offset", first), ("length", length)):
            if not isinstance(value, int) or not 0 <= value <= BOUND:
                raise bad_request(f"receive an entity with incorrect {name} {value}")
        if length:
            _check_borders(wide, first, first + length)
    return entities


def _check_borders(wide: bytes, first: int, last: int) -> None:
    beginning = f"entity beginning at UTF-16 offset {first} ends"
    if 2 * first > len(wide):
        raise bad_request(f"entity begins after the end of the text at UTF-16 offset {first}")
    if 2 * last > len(wide):
        raise bad_request(f"{beginning} after the end of the text at UTF-16 offset {last}")
    if _splits(wide, first):
        at = len(wide[: 2 * first - 2].decode("utf-16-le").encode())
        raise bad_request(f"entity begins in a middle of a UTF-16 symbol at byte offset {at}")
    if _splits(wide, last):
        at = len(wide[: 2 * last - 2].decode("utf-16-le").encode())
        raise bad_request(f"{beginning} in a middle of a UTF-16 symbol at byte offset {at}")


def _splits(wide: bytes, at: int) -> bool:
    """Whether a border lies between the two halves of a surrogate pair."""
    unit = wide[2 * at : 2 * at + 2]
    return len(unit) == 2 and 0xDC <= unit[1] <= 0xDF


def _cleaned(text: str, entities: list[Json]) -> tuple[str, list[Json]]:
    """Without the signs that TDLib drops (`clean_input_string`); entities move along."""
    gone = [units(text[: match.start()]) for match in DROPPED.finditer(text)]

    def at(offset: int) -> int:
        return offset - sum(place < offset for place in gone)

    moved = [
        {
            **entity,
            "offset": at(entity["offset"]),
            "length": at(entity["offset"] + entity["length"]) - at(entity["offset"]),
        }
        for entity in entities
    ]
    return DROPPED.sub("", text), moved


def _settled(text: str, explicit: list[Json]) -> tuple[str, tuple[Json, ...]]:
    """Trimmed, with links and commands found, in order, and at most 100 entities."""
    text = "".join(c if c in "\n" or c >= " " else " " for c in text)
    first = min((entity["offset"] for entity in explicit if entity["length"]), default=len(text))
    blank = len(text) - len(text.lstrip())
    start = min(blank, first)  # blanks are one unit each
    trimmed = text[start:].rstrip()
    last = units(trimmed)
    moved = [_clipped(entity, -start, last) for entity in explicit]
    kept = nested([entity for entity in moved if entity["length"] > 0])
    fixed = [
        entity for entity in kept if entity["type"] not in STYLES and "quote" not in entity["type"]
    ]
    found = [entity for entity in _found(trimmed) if not any(overlap(entity, f) for f in fixed)]
    return trimmed, tuple(sorted(kept + found, key=order)[:ENTITIES])


def _clipped(entity: Json, shift: int, end: int) -> Json:
    first = min(max(entity["offset"] + shift, 0), end)
    last = min(max(entity["offset"] + entity["length"] + shift, 0), end)
    return {**entity, "offset": first, "length": last - first}


def _found(text: str) -> list[Json]:
    if tdlib.installed():
        return tdlib.found(text)
    return [
        {
            "type": match.lastgroup,
            "offset": units(text[: match.start()]),
            "length": units(match.group()),
        }
        for match in FOUND.finditer(text)
    ]
