"""Text and its formatting, as Telegram would keep them.

Parsing is TDLib's own, offline, where the `tdjson` package is installed. Without it a
`parse_mode` is refused: a text whose markup passed unseen would be a test that cannot fail.
Offsets and lengths count UTF-16 units.
"""

import functools
import importlib
import importlib.util
import json
import re
from typing import Any

from bot.localgram.wire import Json, bad_request

# A development dependency.
tdjson: Any = importlib.import_module("tdjson") if importlib.util.find_spec("tdjson") else None

RAW_BYTES = 32768
ENTITIES = 100  # a message keeps so many; the rest lose their formatting
MODES = {
    "markdown": {"@type": "textParseModeMarkdown", "version": 1},
    "markdownv2": {"@type": "textParseModeMarkdown", "version": 2},
    "html": {"@type": "textParseModeHTML"},
}
TYPES = {
    "textEntityTypeBankCardNumber": "bank_card_number",
    "textEntityTypeBlockQuote": "blockquote",
    "textEntityTypeBold": "bold",
    "textEntityTypeBotCommand": "bot_command",
    "textEntityTypeCashtag": "cashtag",
    "textEntityTypeCode": "code",
    "textEntityTypeCustomEmoji": "custom_emoji",
    "textEntityTypeEmailAddress": "email",
    "textEntityTypeExpandableBlockQuote": "expandable_blockquote",
    "textEntityTypeHashtag": "hashtag",
    "textEntityTypeItalic": "italic",
    "textEntityTypeMention": "mention",
    "textEntityTypeMentionName": "text_mention",
    "textEntityTypePhoneNumber": "phone_number",
    "textEntityTypePre": "pre",
    "textEntityTypePreCode": "pre",
    "textEntityTypeSpoiler": "spoiler",
    "textEntityTypeStrikethrough": "strikethrough",
    "textEntityTypeTextUrl": "text_link",
    "textEntityTypeUnderline": "underline",
    "textEntityTypeUrl": "url",
}
KNOWN = frozenset(TYPES.values())
FOUND = re.compile(  # without tdjson: what clients mark by themselves, roughly
    r"(?P<bot_command>(?<![\w/<@])/[A-Za-z0-9_]{1,64}(?:@\w{3,32})?)(?![\w/])"
    r"|(?P<url>https?://[^\s<>\"]+[^\s<>\".,;:!?)\]])"
    r"|(?P<email>\b[\w.+-]+@[\w-]+\.[\w.-]*\w)"
    r"|(?P<mention>(?<!\w)@[A-Za-z]\w{3,31})\b"
    r"|(?P<hashtag>(?<!\w)#\w*[^\W\d]\w*)"
)


def units(text: str) -> int:
    """The length of a text in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def formatted(text: str, mode: str, given: list[Any]) -> tuple[str, tuple[Json, ...]]:
    """A text and its entities, parsed, repaired and trimmed as a sent message would be.

    Raises: ApiError 400.
    """
    if len(text.encode("utf-8", "surrogatepass")) > RAW_BYTES:
        raise bad_request("text is too long")
    text = "".join(c for c in text if c in "\n\t" or c >= " ").replace("\t", " ")
    if mode and mode.lower() != "none":
        text, explicit = _parse(text, mode)
    else:
        explicit = [_given(entity) for entity in given if isinstance(entity, dict)]
    return _settled(text, [entity for entity in explicit if entity["type"] in KNOWN])


def _parse(text: str, mode: str) -> tuple[str, list[Json]]:
    if mode.lower() not in MODES:
        raise bad_request("unsupported parse_mode")
    if tdjson is None:
        raise bad_request(
            "this server needs the tdjson package to understand parse_mode; send entities"
        )
    answer = _td({"@type": "parseTextEntities", "text": text, "parse_mode": MODES[mode.lower()]})
    if answer["@type"] == "error":
        raise bad_request(f"can't parse entities: {answer['message']}")
    return answer["text"], [_from_td(entity) for entity in answer["entities"]]


def _td(query: Json) -> Json:
    _quiet()
    answer: Json = json.loads(tdjson.td_execute(json.dumps(query).encode()))
    return answer


@functools.cache
def _quiet() -> None:
    tdjson.td_execute(b'{"@type":"setLogVerbosityLevel","new_verbosity_level":0}')


def _from_td(entity: Json) -> Json:
    kind = entity["type"]
    shown: Json = {
        "type": TYPES.get(kind["@type"], ""),
        "offset": entity["offset"],
        "length": entity["length"],
    }
    if kind.get("language"):
        shown["language"] = kind["language"]
    if kind.get("url"):
        shown["url"] = kind["url"]
    if "user_id" in kind:
        shown["user"] = {"id": kind["user_id"], "is_bot": False, "first_name": str(kind["user_id"])}
    if "custom_emoji_id" in kind:
        shown["custom_emoji_id"] = str(kind["custom_emoji_id"])
    return shown


def _given(entity: Json) -> Json:
    offset, length = entity.get("offset"), entity.get("length")
    if not isinstance(offset, int) or not isinstance(length, int) or "type" not in entity:
        raise bad_request("can't parse MessageEntity: offset, length and type are required")
    if offset < 0:
        raise bad_request("receive an entity with incorrect offset")
    if length < 0:
        raise bad_request("receive an entity with incorrect length")
    kept = ("type", "offset", "length", "url", "user", "language", "custom_emoji_id")
    return {key: entity[key] for key in kept if key in entity}


def _settled(text: str, explicit: list[Json]) -> tuple[str, tuple[Json, ...]]:
    """Trimmed, with links and commands found, in order, and at most 100 entities."""
    start = len(text) - len(text.lstrip())
    trimmed = text.strip()
    shift, end = units(text[:start]), units(trimmed)
    moved = [_clipped(entity, -shift, end) for entity in explicit]
    kept = _nested([entity for entity in moved if entity["length"] > 0])
    taken = [(entity["offset"], entity["offset"] + entity["length"]) for entity in kept]
    found = [entity for entity in _found(trimmed) if not _touches(entity, taken)]
    return trimmed, tuple(sorted(kept + found, key=_order)[:ENTITIES])


def _clipped(entity: Json, shift: int, end: int) -> Json:
    first = min(max(entity["offset"] + shift, 0), end)
    last = min(max(entity["offset"] + entity["length"] + shift, 0), end)
    return {**entity, "offset": first, "length": last - first}


def _order(entity: Json) -> tuple[int, int]:
    return entity["offset"], -entity["length"]


def _nested(entities: list[Json]) -> list[Json]:
    """Entities that cross the border of an earlier one end at that border."""
    kept: list[Json] = []
    ends: list[int] = []
    for entity in sorted(entities, key=_order):
        while ends and ends[-1] <= entity["offset"]:
            ends.pop()
        last = entity["offset"] + entity["length"]
        last = min(last, ends[-1]) if ends else last
        kept.append({**entity, "length": last - entity["offset"]})
        ends.append(last)
    return kept


def _touches(entity: Json, taken: list[tuple[int, int]]) -> bool:
    last = entity["offset"] + entity["length"]
    return any(entity["offset"] < end and start < last for start, end in taken)


def _found(text: str) -> list[Json]:
    if tdjson is not None:
        answer = _td({"@type": "getTextEntities", "text": text})
        return [entity for entity in map(_from_td, answer["entities"]) if entity["type"]]
    return [
        {
            "type": match.lastgroup,
            "offset": units(text[: match.start()]),
            "length": units(match.group()),
        }
        for match in FOUND.finditer(text)
    ]
