"""Messages and requests as JSON, in one form and key order, so that a prompt repeats byte for byte.

Measured with llama.cpp build 11434: the arguments of a structured call arrive as
they were generated, white space included, and a template writes them again in
the form of `tojson` (", " and ": " between parts). So a call in that form is
rendered token for token as it was generated, also with words before it. A call in
another form is read again from its arguments on: a few dozen tokens.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent.llm.openai.prompt_form import NATIVE, Json, PromptForm, messages_json
from agent.llm.tool_call_parser import SPECIAL_TOKENS
from agent.messages import PICTURE_TOKENS
from agent.model import UNBOUNDED, Request

UNBOUNDED_ROOM = 16_384  # tokens, on top of the answer's, for thought without a budget

# Base64 of a token's 40 ms of WAV, mono, 16 bits, 16 kHz: the densest of today's encoders (Qwen2-Audio, Gemma 4).
SOUND_CHARACTERS = 16_000 * 2 * 4 // 3 // 25

# Fields for llama-server alone; others may refuse fields that they do not know.
EXTRAS: Json = {"cache_prompt": True, "return_progress": True, "timings_per_token": True}


def prompt_json(
    request: Request,
    form: PromptForm = NATIVE,
    template: Mapping[str, Any] | None = None,
) -> Json:
    """The part of a request that the template renders: messages, then tools, if there are any.

    `template` are a profile's values for its template; the request's own wish about thinking
    overrides them.
    """
    prompt: Json = {"messages": messages_json(request, form)}
    if request.tools and form.tools:
        prompt["tools"] = list(request.tools)
    values = {**(template or {}), **thinking_values(request, form.efforts)}
    if values:
        prompt["chat_template_kwargs"] = values
    return prompt


NO_EFFORT = ("none", "no_think")
EFFORTS = (*NO_EFFORT, "low", "medium", "high")


def thinking_values(request: Request, efforts: frozenset[str]) -> Json:
    """The values from which templates read the request's wish about thinking.

    `enable_thinking` is read by those of Qwen, GLM, Gemma and Nemotron; `thinking` by those of
    DeepSeek and Granite; `reasoning_effort` by those of gpt-oss, which takes nothing below
    "low", Mistral, which takes only "none" and "high", and Hunyuan. An effort stands at the
    beginning of the prompt, so changing it for a single call would cost the cached prompt.
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
    form: PromptForm = NATIVE,
    sampling: Mapping[str, Any] | None = None,
    template: Mapping[str, Any] | None = None,
) -> Json:
    """A streamed chat completion. `sampling` and `template` are fields of the profile.

    Thought comes on top of `max_tokens`, which is left for the answer.
    """
    prompt, budget = prompt_json(request, form, template), 0 if request.brief else request.thinking
    wire: Json = {"model": model, **prompt}
    wire |= {"stream": True, "stream_options": {"include_usage": True}}
    if "tools" in prompt:
        # Where calls go back as text they also come as text, which the server is not to parse.
        auto = "none" if form.calls == "text" else "auto"
        wire["tool_choice"] = "none" if request.tool_choice == "none" else auto
    if request.max_tokens is not None:
        thought = UNBOUNDED_ROOM if budget == UNBOUNDED else budget or 0
        wire["max_tokens"] = request.max_tokens + thought
    wire |= {**(sampling or {}), **request.sampling}
    if extras and budget is not None and budget != UNBOUNDED:
        # Each version of llama-server reads one of the two, and ignores the other.
        wire |= {"thinking_budget_tokens": budget, "reasoning_budget_tokens": budget}
    return wire | EXTRAS if extras else wire


def raw_json(wire: Json, prompt: str, images: Sequence[str] = ()) -> Json:
    """The request for a plain completion, made from that for a chat completion and its rendered prompt.

    The completion's text has its special tokens, which our own parser needs. `images` are data URLs of
    what the markers in the prompt stand for.
    """
    chat = ("messages", "tools", "tool_choice", "chat_template_kwargs")
    budgets = ("thinking_budget_tokens", "reasoning_budget_tokens")
    plain = {name: value for name, value in wire.items() if name not in (*chat, *budgets)}
    whole = plain_prompt(prompt, images)
    return {**plain, "prompt": whole, "preserved_tokens": list(SPECIAL_TOKENS)}


def reading_json(prompt: Sequence[int] | str, images: Sequence[str] = ()) -> Json:
    """A request that only reads a prompt into the cache."""
    fields = {"n_predict": 0, "stream": True, "response_fields": ["stop", "timings"]}
    return {"prompt": plain_prompt(prompt, images), **fields, **EXTRAS}


def plain_prompt(prompt: Sequence[int] | str, images: Sequence[str]) -> Json | str | list[int]:
    """The prompt on the wire: tokens, or a text with what its markers stand for (llama.cpp, tools/server/README.md)."""
    if not isinstance(prompt, str):
        return list(prompt)
    if not images:
        return prompt
    contents = [url.partition(",")[2] for url in images]
    return {"prompt_string": prompt, "multimodal_data": contents}


def prompt_text(wire: Json) -> str:
    """The text of a plain completion's prompt; "" for a chat completion."""
    prompt = wire.get("prompt", "")
    return str(prompt["prompt_string"] if isinstance(prompt, dict) else prompt)


def encode(wire: Json) -> bytes:
    """The request's bytes. Lone surrogates, which UTF-8 cannot encode, become question marks."""
    text = json.dumps(wire, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def estimate(wire: Json) -> int:
    """A safe estimate of a prompt's tokens: 3 bytes each, where English has about 4."""
    media = [part for message in wire["messages"] for part in media_of(message)]
    size = len(encode(wire)) - sum(map(len, media))
    tokens = sum(
        PICTURE_TOKENS if each.startswith("data:") else len(each) // SOUND_CHARACTERS + 1
        for each in media
    )
    return size // 3 + 8 * len(wire["messages"]) + tokens


def media_of(message: Json) -> list[str]:
    """The pictures of a message as data URLs, its recordings as base64."""
    parts = message.get("content")
    if not isinstance(parts, list):
        return []
    pictures = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    sounds = [part["input_audio"]["data"] for part in parts if part["type"] == "input_audio"]
    return pictures + sounds
