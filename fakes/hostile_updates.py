"""Updates of every kind that the Bot API knows, for campaigns that mutate them (hostile_json).

The kinds and their fields are read from python-telegram-bot's classes, so that a new version
brings its new ones along.
"""

import datetime
import importlib
import inspect
import pkgutil
import random
import time
import types
import typing
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import telegram
from telegram import InaccessibleMessage, Message, TelegramObject, Update
from telegram.warnings import PTBDeprecationWarning

DEPTH = 3  # of objects within objects; the optional fields of the outermost alone are filled
NEVER = {"api_kwargs", "return"}


def everyday_updates(sender: int, chance: random.Random) -> list[tuple[str, dict[str, Any]]]:
    """An update of each kind, and a message with each field, from that person: (kind, body)."""
    warnings.simplefilter("ignore", PTBDeprecationWarning)
    found = []
    for kind, hint in hints_of(Update).items():
        if kind == "update_id" or kind in NEVER:
            continue
        if _without_none(hint) is not Message:
            found.append((kind, fitted(as_json(built(hint, DEPTH, chance)), sender)))
        elif kind in ("message", "edited_message"):
            for name, field in hints_of(Message).items():
                if name not in NEVER:
                    body = {name: as_json(built(field, DEPTH, chance)), **message(sender)}
                    found.append((kind, fitted(body, sender)))
    press = {"id": "1", "from": person(sender), "message": {**message(sender), "text": "a"}}
    for data in ("st:", "ok:x:o", "held:1:all", "rev:x", "cont:", ":", "unknown:"):
        found.append(("callback_query", {**press, "data": data, "chat_instance": "1"}))
    found.append(("stopped_message_generation", {"chat": message(sender)["chat"], "draft_id": 1}))
    commands = ["/start", "/status", "/jobs 1", "/memory", "/stop", "/resume", "/schedule daily x"]
    for text in [*commands, "/timezone", "/summary x", "/approve", "/retry", "/new", "/forget 1"]:
        found.append(("message", {**message(sender), "text": text}))
    return found


def person(id: int) -> dict[str, Any]:
    return {"id": id, "is_bot": False, "first_name": "Olga", "language_code": "en"}


def message(sender: int) -> dict[str, Any]:
    """The fields that every private message has."""
    chat = {"id": sender, "type": "private", "first_name": "Olga"}
    return {"message_id": 9, "date": int(time.time()), "chat": chat, "from": person(sender)}


def fitted(value: Any, sender: int) -> Any:
    """The JSON with that person wherever a user or a chat stands, so that handlers go on."""
    if isinstance(value, list):
        return [fitted(each, sender) for each in value]
    if not isinstance(value, dict):
        return value
    known = {"from": person(sender), "user": person(sender), "chat": message(sender)["chat"]}
    return {key: known.get(key, fitted(each, sender)) for key, each in value.items()}


def built(hint: Any, depth: int, chance: random.Random) -> Any:
    """A value of a field's type; optional fields of what lies deeper are left out."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return built(_without_none(hint), depth, chance)
    if origin is typing.Literal:
        return arguments[0]
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return [built(arguments[0], depth, chance)]
    if hint in PLAIN:
        return PLAIN[hint]
    if not (inspect.isclass(hint) and issubclass(hint, TelegramObject)):
        return {}
    if kinds := [kind for kind in hint.__subclasses__() if kind is not InaccessibleMessage]:
        hint = chance.choice(kinds) if hint is not Message else hint
    required, optional = fields_of(hint)
    names = required + optional if depth == DEPTH else required
    with suppress(TypeError, ValueError):
        return hint(**{name: built(kind, depth - 1, chance) for name, kind in names})
    # Some optional fields are not, and some exclude each other.
    everything = {name: built(kind, depth - 1, chance) for name, kind in required + optional}
    return hint(**everything)


def fields_of(kind: type) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """The required and the optional fields of a class, with their types."""
    hints = hints_of(kind)
    parameters = inspect.signature(kind).parameters.items()
    found = [(n, p) for n, p in parameters if n in hints and n not in NEVER]
    required = [(n, hints[n]) for n, p in found if p.default is inspect.Parameter.empty]
    return required, [(n, hints[n]) for n, p in found if p.default is not inspect.Parameter.empty]


def as_json(value: Any) -> Any:
    """What Telegram would send of it."""
    if isinstance(value, TelegramObject):
        return value.to_dict()
    if isinstance(value, list):
        return [as_json(each) for each in value]
    return int(value.timestamp()) if isinstance(value, datetime.datetime) else value


@cache
def hints_of(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind.__init__, NAMES)  # type: ignore[misc]


def _without_none(hint: Any) -> Any:
    some = [each for each in typing.get_args(hint) if each is not type(None)]
    return some[0] if some else hint


def _names() -> dict[str, Any]:
    """Every name that the hints of the library's classes use."""
    found: dict[str, Any] = {}
    for module in pkgutil.walk_packages(telegram.__path__, "telegram."):
        if ".ext" not in module.name:
            found |= vars(importlib.import_module(module.name))
    return found


PLAIN: dict[Any, Any] = {
    str: "text",
    int: 7,
    float: 1.5,
    bool: True,
    datetime.datetime: datetime.datetime.now(datetime.UTC),
    datetime.timedelta: datetime.timedelta(seconds=5),
}
NAMES = _names()
