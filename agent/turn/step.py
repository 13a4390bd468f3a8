"""What one completion says: words for a person, calls to run."""

import json
import re
import secrets
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from agent.llm.tool_call_parser import KnownTools, ParsedCall, ToolCallParser, arguments_of
from agent.messages import Assistant, ToolCall
from agent.model import Completion

NewId = Callable[[], str]
MOST_CALLS = 32  # of one completion; more is noise
_NO_NAME = re.compile(r"[^\w.-]")


def new_call_id() -> str:
    """Nine letters and digits: the strictest template (Mistral's) takes no other form."""
    return secrets.token_hex(5)[:9]


@dataclass(frozen=True)
class Step:
    """`message` is what is stored; its `text` is what a person may see.

    `unreadable` are ids of calls whose arguments were no JSON object. `cut`:
    generation ended at the length limit, so its calls are left out;
    `cut_call` when there were any.
    """

    message: Assistant
    unreadable: frozenset[str] = frozenset()
    cut: bool = False
    cut_call: bool = False

    @property
    def text(self) -> str:
        return self.message.text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.message.calls


def read_step(
    completion: Completion,
    reader: ToolCallParser,
    known: KnownTools,
    taken: Collection[str],
    new_id: NewId = new_call_id,
) -> Step:
    """The step of a completion whose text went through `reader`.

    `taken` are call ids of this turn, which servers sometimes give out twice.
    """
    raw = "" if reader.generated == reader.visible else reader.generated
    if completion.finish_reason == "length":
        called = bool(completion.calls or reader.calls)
        return Step(Assistant(reader.visible, raw=raw), cut=True, cut_call=called)
    if completion.calls:
        raw, found = "", [_structured(call) for call in completion.calls[:MOST_CALLS]]
    else:
        found = [ToolCall("", f.name, _json(f)) for f in reader.calls[:MOST_CALLS]]
    calls = tuple(_numbered(found, known, taken, new_id))
    unreadable = frozenset(call.id for call in calls if not call.arguments)
    readable = tuple(ToolCall(c.id, c.name, c.arguments or "{}") for c in calls)
    return Step(Assistant(reader.visible, readable, raw), unreadable)


def _structured(call: ToolCall) -> ToolCall:
    """The arguments as generated where every server takes them back, repaired where not."""
    if _sound(call.arguments):
        return call
    return ToolCall(call.id, call.name, _json(ParsedCall(call.name, arguments_of(call.arguments))))


def _sound(arguments: str) -> bool:
    """Whether the text is a JSON object to strict parsers as well.

    llama.cpp parses it again with every later request, and answers 500 to NaN or
    half a surrogate pair: one such call would spoil the conversation for good.
    """
    try:
        value = json.loads(arguments, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _json(found: ParsedCall) -> str:
    """The arguments as JSON text; empty when they could not be read."""
    if found.arguments is None:
        return ""
    return json.dumps(found.arguments, ensure_ascii=False, default=str)


def _numbered(
    calls: list[ToolCall], known: KnownTools, taken: Collection[str], new_id: NewId
) -> Iterator[ToolCall]:
    """Each call with an id of its own and a name that a server takes back."""
    seen = set(taken)
    for call in calls:
        id = call.id if call.id and call.id not in seen and len(call.id) <= 64 else new_id()
        seen.add(id)
        yield ToolCall(id, _name(call.name, known), call.arguments)


def _name(name: str, known: KnownTools) -> str:
    """A known tool's name where only its spelling is off."""
    plain = name.strip().removeprefix("functions.")
    for spelling in (name, plain, plain.lower()):
        if spelling in known:
            return spelling
    return _NO_NAME.sub("", name)[:64] or "unknown"
