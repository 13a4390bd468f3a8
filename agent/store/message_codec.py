"""A message as columns and back, byte for byte.

Columns are (role, text, extra): `extra` is JSON of what is not text (calls, the
call answered, images), or None. A shortened form is JSON [text, extra].
"""

import json
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from agent.messages import Assistant, Message, ToolCall, ToolResult, User

Columns = tuple[str, str, str | None]


@dataclass(frozen=True)
class Extra:
    images: tuple[str, ...] = ()
    calls: tuple[tuple[str, str, str], ...] = ()  # id, name, arguments
    raw: str = ""
    thought: str = ""
    call: str | None = None
    name: str | None = None


EXTRA = TypeAdapter(Extra)
SHORT: TypeAdapter[tuple[str, str | None]] = TypeAdapter(tuple[str, str | None])


def columns(message: Message) -> Columns:
    """The columns of a message; lone surrogates, which no file can hold, become "?"."""
    match message:
        case User(text, images):
            return "user", storable(text), _json({"images": list(images)} if images else {})
        case Assistant(text, calls, raw, thought):
            listed = [[call.id, call.name, call.arguments] for call in calls]
            fields = {"calls": listed, "raw": raw, "thought": thought}
            return "assistant", storable(text), _json({k: v for k, v in fields.items() if v})
        case ToolResult(call, name, text):
            return "tool", storable(text), _json({"call": call, "name": name})
        case _:
            raise ValueError("the system message is not part of a transcript")


def message(role: str, text: str, extra: str | None) -> Message:
    """ValueError for what no message was stored as."""
    fields = EXTRA.validate_json(extra) if extra else Extra()
    if role == "user":
        return User(text, fields.images)
    if role == "tool":
        if fields.call is None or fields.name is None:
            raise ValueError("a tool's result without its call")
        return ToolResult(fields.call, fields.name, text)
    calls = tuple(ToolCall(*call) for call in fields.calls)
    return Assistant(text, calls, fields.raw, fields.thought)


def shortened(message: Message) -> str:
    _, text, extra = columns(message)
    return json.dumps([text, extra], ensure_ascii=False)


def from_short(role: str, short: str) -> Message:
    text, extra = SHORT.validate_json(short)
    return message(role, text, extra)


def storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _json(fields: dict[str, Any]) -> str | None:
    return storable(json.dumps(fields, ensure_ascii=False)) if fields else None
