"""Our messages as JSON: one form, one key order, so that a prompt repeats byte for byte.

Measured with llama.cpp build 11434: the arguments of a structured call arrive as
they were generated, white space included, and a template writes them again in
the form of `tojson` (", " and ": " between parts). So a call in that form is
rendered token for token as it was generated, with words before it as well; one
in another form is read again from its arguments on, a few dozen tokens.
"""

import json
from collections.abc import Mapping
from typing import Any

from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import Request

Json = dict[str, Any]

# What only llama-server takes; others may refuse a field that they do not know.
EXTRAS: Json = {"cache_prompt": True, "return_progress": True, "timings_per_token": True}


def message_json(message: Message, *, calls_as_text: bool = False) -> Json:
    """One message in wire form.

    With `calls_as_text`, calls that came as text go back as that text: the
    template then renders the very tokens that were generated. Without it they go
    back as structured calls, for templates that show a result only behind one.
    """
    match message:
        case System(text):
            return {"role": "system", "content": text}
        case User(text, images) if images:
            pictures = [{"type": "image_url", "image_url": {"url": url}} for url in images]
            return {"role": "user", "content": [{"type": "text", "text": text}, *pictures]}
        case User(text):
            return {"role": "user", "content": text}
        case ToolResult(call, name, text):
            return {"role": "tool", "tool_call_id": call, "name": name, "content": text}
        case Assistant(text, calls, raw):
            if raw and (calls_as_text or not calls):
                return {"role": "assistant", "content": raw}
            functions = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
            wire = {"role": "assistant", "content": text}
            return {**wire, "tool_calls": functions} if functions else wire


def prompt_json(
    request: Request, *, calls_as_text: bool = False, template: Mapping[str, Any] | None = None
) -> Json:
    """What the template renders: messages, then tools (left out where there are none).

    `template` are a profile's values for its template; thinking is switched on where it is wanted.
    """
    messages = [message_json(m, calls_as_text=calls_as_text) for m in request.messages]
    prompt: Json = {"messages": messages}
    if request.tools:
        prompt["tools"] = list(request.tools)
    values = {**(template or {}), **({"enable_thinking": True} if request.thinking else {})}
    if values:
        prompt["chat_template_kwargs"] = values
    return prompt


def request_json(
    request: Request,
    model: str,
    *,
    extras: bool,
    calls_as_text: bool = False,
    sampling: Mapping[str, Any] | None = None,
    template: Mapping[str, Any] | None = None,
) -> Json:
    """A streamed chat completion. `sampling` and `template` are the profile's own fields.

    What is thought comes on top of `max_tokens`, so that it leaves the answer its room.
    """
    prompt = prompt_json(request, calls_as_text=calls_as_text, template=template)
    wire: Json = {"model": model, **prompt}
    wire |= {"stream": True, "stream_options": {"include_usage": True}}
    if request.tools:
        wire["tool_choice"] = request.tool_choice
    if request.max_tokens is not None:
        wire["max_tokens"] = request.max_tokens + request.thinking
    wire |= {**(sampling or {}), **request.sampling}
    if extras and (budget := request.thinking):
        # Versions of llama-server differ in which of the two they read; neither minds the other.
        wire |= {"thinking_budget_tokens": budget, "reasoning_budget_tokens": budget}
    return wire | EXTRAS if extras else wire


def encode(wire: Json) -> bytes:
    """The request's bytes. Lone surrogates, which UTF-8 cannot hold, become question marks."""
    text = json.dumps(wire, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def estimate(wire: Json) -> int:
    """Tokens of a prompt on the safe side: English takes about 4 bytes each, here it gets 3."""
    return len(encode(wire)) // 3 + 8 * len(wire["messages"])


TEXT_CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
TEXT_RESULT = "the very result"


def text_call_probe(template: Mapping[str, Any] | None) -> tuple[Json, Json]:
    """Two prompts, before and behind a call as text, that show what a template makes of one."""
    asked = (User("What is here?"),)
    call = ToolCall("call00001", "bash", '{"command": "ls"}')
    answered = (Assistant("", (call,), TEXT_CALL), ToolResult(call.id, call.name, TEXT_RESULT))
    return (
        prompt_json(Request(asked), template=template),
        prompt_json(Request((*asked, *answered)), calls_as_text=True, template=template),
    )


def takes_text_calls(before: str, behind: str) -> bool:
    """Whether the second prompt repeats the first, then the call as it was, then its result."""
    generated = before + TEXT_CALL
    return behind.startswith(generated) and TEXT_RESULT in behind[len(generated) :]
