"""Our messages as JSON: one form, one key order, so that a prompt repeats byte for byte.

Measured with llama.cpp build 11434: the arguments of a structured call arrive as
they were generated, white space included, and a template writes them again in
the form of `tojson` (", " and ": " between parts). So a call in that form is
rendered token for token as it was generated, with words before it as well; one
in another form is read again from its arguments on, a few dozen tokens.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import UNBOUNDED, Request

Json = dict[str, Any]
ThoughtForm = Literal["none", "whole", "stripped"]
UNBOUNDED_ROOM = 16_384  # tokens, on top of the answer's, for thought without a budget

# What only llama-server takes; others may refuse a field that they do not know.
EXTRAS: Json = {"cache_prompt": True, "return_progress": True, "timings_per_token": True}


def message_json(
    message: Message, *, calls_as_text: bool = False, thoughts: ThoughtForm = "none"
) -> Json:
    """One message in wire form, with what was thought before it.

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
        case Assistant(text, calls, raw, thought):
            wire: Json = {"role": "assistant"}
            if thought and thoughts != "none":
                wire["reasoning_content"] = (
                    thought.rstrip("\n") if thoughts == "stripped" else thought
                )
            if raw and (calls_as_text or not calls):
                return {**wire, "content": raw}
            functions = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
            wire["content"] = text
            return {**wire, "tool_calls": functions} if functions else wire


@dataclass(frozen=True, slots=True)
class PromptForm:
    """How a server's template wants prompts, as probes of it have shown.

    `calls_as_text`: as in `message_json`. `thoughts`: whether it repeats what was thought, so
    that thoughts go back, and the template itself decides how long it keeps them; "stripped"
    where it ends them with a line break of its own behind theirs (Gemma 4, MiniMax, Nemotron).
    `efforts` are the values of `reasoning_effort` that it takes.
    """

    calls_as_text: bool = False
    thoughts: ThoughtForm = "none"
    efforts: frozenset[str] = frozenset()


PLAIN = PromptForm()


def prompt_json(
    request: Request,
    form: PromptForm = PLAIN,
    template: Mapping[str, Any] | None = None,
) -> Json:
    """What the template renders: messages, then tools (left out where there are none).

    `template` are a profile's values for its template; the request's wish about thinking
    goes before them.
    """
    messages = [
        message_json(m, calls_as_text=form.calls_as_text, thoughts=form.thoughts)
        for m in request.messages
    ]
    prompt: Json = {"messages": messages}
    if request.tools:
        prompt["tools"] = list(request.tools)
    values = {**(template or {}), **thinking_values(request, form.efforts)}
    if values:
        prompt["chat_template_kwargs"] = values
    return prompt


NO_EFFORT = ("none", "no_think")
EFFORTS = (*NO_EFFORT, "low", "medium", "high")
NONSENSE = "-"  # an effort that no template knows


def thinking_values(request: Request, efforts: frozenset[str]) -> Json:
    """What the families' templates read of a request's wish about thinking.

    `enable_thinking` is read by Qwen's, GLM's, Gemma's and Nemotron's, `thinking` by
    DeepSeek's and Granite's, `reasoning_effort` by gpt-oss's, which knows nothing below
    "low", Mistral's, which takes "none" and "high" alone, and Hunyuan's. An effort stands
    ahead of everything, so that another one for a single call would cost the cached prompt.
    """
    tokens = request.thinking
    thinks = tokens != 0 and not request.brief
    values: Json = {"enable_thinking": thinks, "thinking": thinks}
    if tokens is None:
        return values if request.brief else {}
    if tokens == 0:
        near = [*NO_EFFORT, "low"]
    elif 0 < tokens <= 1024:
        near = ["low", "high"]
    else:
        near = ["medium", "high"] if 0 < tokens <= 4096 else ["high"]
    effort = next((name for name in near if name in efforts), None)
    return values if effort is None else {**values, "reasoning_effort": effort}


def request_json(
    request: Request,
    model: str,
    *,
    extras: bool,
    form: PromptForm = PLAIN,
    sampling: Mapping[str, Any] | None = None,
    template: Mapping[str, Any] | None = None,
) -> Json:
    """A streamed chat completion. `sampling` and `template` are the profile's own fields.

    What is thought comes on top of `max_tokens`, so that it leaves the answer its room.
    """
    prompt, budget = prompt_json(request, form, template), 0 if request.brief else request.thinking
    wire: Json = {"model": model, **prompt}
    wire |= {"stream": True, "stream_options": {"include_usage": True}}
    if request.tools:
        wire["tool_choice"] = request.tool_choice
    if request.max_tokens is not None:
        thought = UNBOUNDED_ROOM if budget == UNBOUNDED else budget or 0
        wire["max_tokens"] = request.max_tokens + thought
    wire |= {**(sampling or {}), **request.sampling}
    if extras and budget is not None and budget != UNBOUNDED:
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
THOUGHT = "the very thought\n"
CALL = ToolCall("call00001", "bash", '{"command": "ls"}')
ASKED = (User("What is here?"),)
ANSWERED = ToolResult(CALL.id, CALL.name, TEXT_RESULT)
TEXT_CALLED = Request((*ASKED, Assistant("", (CALL,), TEXT_CALL), ANSWERED))
THOUGHT_CALLED = Request((*ASKED, Assistant("", (CALL,), thought=THOUGHT), ANSWERED))


def thought_form(prompt: str) -> ThoughtForm:
    """How thoughts go back to a template that made this of THOUGHT_CALLED."""
    if f"{THOUGHT}\n" in prompt:
        return "stripped"
    return "whole" if THOUGHT.strip() in prompt else "none"


def takes_text_calls(before: str, behind: str) -> bool:
    """Whether the prompt of TEXT_CALLED repeats that of ASKED, then the call as it was, then its result."""
    generated = before + TEXT_CALL
    return behind.startswith(generated) and TEXT_RESULT in behind[len(generated) :]
