"""Telegram's own parser, offline, where the `tdjson` package is installed."""

import functools
import html
import importlib
import json
from typing import Any

from bot.localgram.wire import Json

tdjson: Any
try:
    tdjson = importlib.import_module("tdjson")
except ImportError:  # a development dependency
    tdjson = None

MODES: dict[str, Json] = {
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


class ParseError(Exception):
    """TDLib's words about a markup it cannot read."""


def installed() -> bool:
    return tdjson is not None


def parse(text: str, mode: str) -> tuple[str, list[Json]]:
    """The text without its markup, and its entities. `mode` is a key of MODES.

    Raises: ParseError.
    """
    answer = _execute({"@type": "parseTextEntities", "text": text, "parse_mode": MODES[mode]})
    if answer["@type"] == "error":
        raise ParseError(answer["message"])
    return answer["text"], _known(answer["entities"])


def found(text: str) -> list[Json]:
    """What clients mark by themselves: links, commands, mentions, tags."""
    return _known(_execute({"@type": "getTextEntities", "text": text})["entities"])


@functools.lru_cache(maxsize=4096)
def link(url: str) -> str | None:
    """The URL as Telegram writes it; None when it is none."""
    _, entities = parse(f'<a href="{html.escape(url)}">x</a>', "html")
    return next((entity.get("url", url) for entity in entities), None)


def _known(entities: list[Json]) -> list[Json]:
    return [_entity(entity) for entity in entities if entity["type"]["@type"] in TYPES]


def _entity(entity: Json) -> Json:
    kind = entity["type"]
    shown: Json = {
        "type": TYPES[kind["@type"]],
        "offset": entity["offset"],
        "length": entity["length"],
    }
    shown.update({key: kind[key] for key in ("language", "url") if kind.get(key)})
    if "user_id" in kind:
        name = str(kind["user_id"])
        shown["user"] = {"id": kind["user_id"], "is_bot": False, "first_name": name}
    if "custom_emoji_id" in kind:
        shown["custom_emoji_id"] = str(kind["custom_emoji_id"])
    return shown


def _execute(query: Json) -> Json:
    _quiet()
    answer: Json = json.loads(tdjson.td_execute(json.dumps(query).encode()))
    return answer


@functools.cache
def _quiet() -> None:
    tdjson.td_execute(b'{"@type":"setLogVerbosityLevel","new_verbosity_level":0}')
