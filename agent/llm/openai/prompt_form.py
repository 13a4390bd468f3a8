"""The forms in which chat templates take a conversation, and messages as JSON in such a form."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import Request

Json = dict[str, Any]
ThoughtForm = Literal["none", "whole", "stripped"]
SOUND = "data:audio/wav;base64,"
EMPTY_IMAGE = "data:image/png;base64,AA=="


@dataclass(frozen=True, slots=True)
class PromptForm:
    """`calls`: structured; structured with one a message; or as text in the message's content.

    `results`: in a role of their own, else in the user's. `tools`: in their own field,
    else listed in the system text. `system`: in a role of its own, else in front of the
    first user message. `short_ids`: ids of calls have nine letters and digits, whatever
    their model made of them (Mistral). `thoughts`: whether the template repeats
    thoughts, so that they go back and the template decides how long it keeps them;
    "stripped" where it adds a line break of its own to theirs (Gemma 4, MiniMax, Nemotron).
    `gap` is the white space that the template writes between words and a call, and that is
    therefore left out of what the model wrote there; None where it is not known. `efforts` are
    the values of `reasoning_effort` that the template takes. `pictures`: the model sees; for
    one that does not, each picture becomes a line of text.
    """

    calls: Literal["native", "single", "text"] = "native"
    results: bool = True
    tools: bool = True
    system: bool = True
    short_ids: bool = False
    thoughts: ThoughtForm = "none"
    gap: str | None = None
    efforts: frozenset[str] = frozenset()
    pictures: bool = True


NATIVE = PromptForm()
BLIND = PromptForm(pictures=False)
SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
UNSEEN = "[a picture, which this model cannot see]"
TOOLS_HEAD = """

You can call these tools:
{tools}
To call one, write exactly this, then stop; the result comes in the next message:
<tool_call>
{{"name": "the tool's name", "arguments": {{"an argument": "its value"}}}}
</tool_call>"""


def messages_json(request: Request, form: PromptForm) -> list[Json]:
    """The request's messages in wire form."""
    messages: Sequence[Message] = request.messages
    if form.calls == "single":
        messages = list(one_call_each(messages))
    wire = [message_json(message, form) for message in messages]
    if request.tools and not form.tools and wire[0]["role"] == "system":
        listed = "\n".join(
            json.dumps(tool["function"], ensure_ascii=False) for tool in request.tools
        )
        wire[0]["content"] += TOOLS_HEAD.format(tools=listed)
    if not form.system and len(wire) > 1 and wire[0]["role"] == "system":
        wire = [{**wire[0], "role": "user"}, *wire[1:]]
    return wire if form.results and form.system else merged(wire)


def images_of(request: Request) -> list[str]:
    """The pictures and recordings of a request, in order, as data URLs."""
    return [url for each in request.messages if isinstance(each, User) for url in each.images]


def with_empty_images(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with tiny pictures: templates look into none, so megabytes of them need not be sent."""
    return tuple(
        replace(each, images=(EMPTY_IMAGE,) * len(each.images)) if isinstance(each, User) else each
        for each in messages
    )


def media_part(url: str) -> Json:
    """The content part for a data URL of a picture, or of a recording as WAV."""
    if url.startswith(SOUND):
        return {"type": "input_audio", "input_audio": {"data": url[len(SOUND) :], "format": "wav"}}
    return {"type": "image_url", "image_url": {"url": url}}


def shown_content(text: str, images: Sequence[str], form: PromptForm) -> str | list[Json]:
    """The content of a person's message: its text, or parts where there are pictures or recordings."""
    if not images:
        return text
    if not (form.pictures or images[0].startswith(SOUND)):
        return "\n".join([text, *[UNSEEN] * len(images)])
    return [{"type": "text", "text": text}, *map(media_part, images)]


def message_json(message: Message, form: PromptForm = NATIVE) -> Json:
    match message:
        case System(text):
            return {"role": "system", "content": text}
        case User(text, images):
            return {"role": "user", "content": shown_content(text, images, form)}
        case ToolResult(call, name, text) if form.results:
            id = wire_id(call, form)
            return {"role": "tool", "tool_call_id": id, "name": name, "content": text}
        case ToolResult(_, _, text):
            return {"role": "user", "content": f"<tool_response>\n{text}\n</tool_response>"}
        case Assistant(text, calls, raw, thought, words):
            wire: Json = {"role": "assistant"}
            if thought and form.thoughts != "none":
                stripped = form.thoughts == "stripped"
                wire["reasoning_content"] = thought.rstrip("\n") if stripped else thought
            if form.calls == "text" and calls and "<" in raw and "```" not in raw:
                return {**wire, "content": raw}  # the tags that this model was trained on
            if form.calls == "text":
                parts = filter(None, [text, *map(call_text, calls)])
                return {**wire, "content": "\n".join(parts)}
            functions = [
                {
                    "id": wire_id(call.id, form),
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
            known = bool(words) and form.gap is not None
            wire["content"] = words.removesuffix(form.gap or "") if known else text
            return {**wire, "tool_calls": functions} if functions else wire


def wire_id(id: str, form: PromptForm) -> str:
    """The call's id as the template takes it, which is the same in every request."""
    if not form.short_ids or SHORT_ID.fullmatch(id):
        return id
    return hashlib.sha256(id.encode()).hexdigest()[:9]


def call_text(call: ToolCall) -> str:
    name = json.dumps(call.name)
    return f'<tool_call>\n{{"name": {name}, "arguments": {call.arguments}}}\n</tool_call>'


def one_call_each(messages: Sequence[Message]) -> Iterator[Message]:
    """Divide each message with several calls into messages of one call, each with its result behind it."""
    results = {m.call: m for m in messages if isinstance(m, ToolResult)}
    several: set[str] = set()
    for message in messages:
        if isinstance(message, Assistant) and len(message.calls) > 1:
            for place, call in enumerate(message.calls):
                several.add(call.id)
                first = replace(message, calls=(call,), raw="")
                yield Assistant("", (call,)) if place else first
                if call.id in results:
                    yield results[call.id]
        elif not (isinstance(message, ToolResult) and message.call in several):
            yield message


def merged(wire: Sequence[Json]) -> list[Json]:
    """The messages with neighbours of one role joined, for templates whose roles must alternate."""
    out: list[Json] = []
    for message in wire:
        if out and out[-1]["role"] == message["role"] and message["role"] in ("user", "assistant"):
            out[-1] = {**out[-1], "content": joined(out[-1]["content"], message["content"])}
        else:
            out.append(message)
    return out


def joined(first: str | list[Json], second: str | list[Json]) -> str | list[Json]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = [[{"type": "text", "text": p}] if isinstance(p, str) else p for p in (first, second)]
    return [*parts[0], *parts[1]]
