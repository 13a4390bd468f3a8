"""Text of a conversation, byte for byte as the chat template in the GGUF renders it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pocket.dialogue import Answer, Call, Message, Result, User

Schema = dict[str, Any]

START, END = "<|im_start|>", "<|im_end|>"
GUIDE = (
    'Call a tool by writing <tool_call>\n{"name": NAME, "arguments": {...}}\n</tool_call>\n<tools>'
)


def compact(value: object) -> str:
    """JSON as the template's `tojson` writes it."""
    return json.dumps(value, ensure_ascii=False)


def prefix_text(system: str, tools: Sequence[Mapping[str, Any]]) -> str:
    """The leading system message; empty without text and tools."""
    if not tools:
        return f"{START}system\n{system}{END}\n" if system else ""
    schemas = "".join(f"\n{compact(tool)}" for tool in tools)
    words = f"{system}\n\n" if system else ""
    return f"{START}system\n{words}{GUIDE}{schemas}\n</tools>{END}\n"


def call_text(call: Call) -> str:
    return f'<tool_call>\n{{"name": "{call.name}", "arguments": {compact(dict(call.arguments))}}}\n</tool_call>'


def message_text(message: Message) -> tuple[str, str]:
    """(what is given, what the model writes) for one message."""
    match message:
        case User(words):
            return f"{START}user\n{words}{END}\n", ""
        case Result(text):
            return f"{START}tool\n{text}{END}\n", ""
        case Call():
            return f"{START}assistant\n", call_text(message) + END
        case Answer(text):
            return f"{START}assistant\n", text + END
