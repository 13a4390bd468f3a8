"""Our messages as JSON: one form, one key order, so that a prompt repeats byte for byte."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import Request

Json = dict[str, Any]

# What only llama-server takes; others may refuse a field that they do not know.
EXTRAS: Json = {"cache_prompt": True, "return_progress": True, "timings_per_token": True}


def message_json(message: Message, *, raw: bool = True) -> Json:
    """One message in wire form.

    With `raw`, calls that came as text go back as that text: the template then
    renders the very tokens that were generated. Without it they go back as
    structured calls, for servers that take a tool result only after one.
    """
    match message:
        case System(text):
            return {"role": "system", "content": text}
        case User(text, images):
            return {"role": "user", "content": _content(text, images)}
        case ToolResult(call, name, text):
            return {"role": "tool", "tool_call_id": call, "name": name, "content": text}
        case Assistant():
            return _assistant(message, raw=raw)


def _content(text: str, images: Sequence[str]) -> str | list[Json]:
    if not images:
        return text
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in images]
    return [{"type": "text", "text": text}, *pictures]


def _assistant(message: Assistant, *, raw: bool) -> Json:
    if raw and message.raw:
        return {"role": "assistant", "content": message.raw}
    wire: Json = {"role": "assistant", "content": message.text}
    if message.calls:
        wire["tool_calls"] = [_call(call) for call in message.calls]
    return wire


def _call(call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def prompt_json(request: Request, *, raw: bool = True) -> Json:
    """What the template renders: messages, then tools (left out where there are none)."""
    prompt: Json = {"messages": [message_json(m, raw=raw) for m in request.messages]}
    if request.tools:
        prompt["tools"] = list(request.tools)
    return prompt


def request_json(
    request: Request,
    model: str,
    *,
    extras: bool,
    raw: bool = True,
    sampling: Mapping[str, Any] | None = None,
    template: Mapping[str, Any] | None = None,
) -> Json:
    """A streamed chat completion. `sampling` and `template` are the profile's own fields."""
    wire: Json = {"model": model, **prompt_json(request, raw=raw)}
    wire |= {"stream": True, "stream_options": {"include_usage": True}}
    if request.tools:
        wire["tool_choice"] = request.tool_choice
    if request.max_tokens is not None:
        wire["max_tokens"] = request.max_tokens
    wire |= {**(sampling or {}), **request.sampling}
    if template:
        wire["chat_template_kwargs"] = dict(template)
    return wire | EXTRAS if extras else wire


def encode(wire: Json) -> bytes:
    """The request's bytes. Lone surrogates, which UTF-8 cannot hold, become question marks."""
    text = json.dumps(wire, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def estimate(wire: Json) -> int:
    """Tokens of a prompt on the safe side: English takes about 4 bytes each, here it gets 3."""
    return len(encode(wire)) // 3 + 8 * len(wire["messages"])
