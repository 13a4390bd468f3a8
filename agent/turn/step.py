"""Reads a completion as a step: words for a person, calls to run."""

import json
import re
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent.llm.tool_call_parser import KnownTools, ToolCallParser, arguments_of
from agent.messages import Assistant, ToolCall
from agent.model import Completion

NewId = Callable[[], str]
MOST_CALLS = 32  # of one completion; more is noise
_LONGEST_ID = 64  # characters
_NO_NAME = re.compile(r"[^\w.-]")


def new_call_id() -> str:
    """Nine letters and digits: the strictest template (Mistral's) takes no other form."""
    return secrets.token_hex(5)[:9]


@dataclass(frozen=True)
class Step:
    """`message` is what is stored; its `text` is what a person may see.

    `unreadable` are ids of calls whose arguments were no JSON object. `cut`: generation
    ended at the length limit, so calls are left out; `cut_call`: there were some. `repeats`:
    it was stopped because it repeated its last words. `ended`: as in agent.model.Completion.
    """

    message: Assistant
    unreadable: frozenset[str] = frozenset()
    cut: bool = False
    cut_call: bool = False
    repeats: bool = False
    ended: str = ""

    @property
    def text(self) -> str:
        return self.message.text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.message.calls


def read_step(
    completion: Completion,
    parser: ToolCallParser,
    known: KnownTools,
    taken: Collection[str],
    new_id: NewId = new_call_id,
) -> Step:
    """The step of a completion whose text went through `parser`.

    Each call gets a unique id, and a name that servers accept in later requests. `taken` are
    the call ids of the conversation, which servers sometimes give out twice.
    """
    raw = "" if parser.generated == parser.visible else parser.generated
    thought = completion.reasoning
    if completion.finish_reason == "length":
        called = bool(completion.calls or parser.calls)
        message = Assistant(parser.visible, raw=raw, thought=thought)
        return Step(message, cut=True, cut_call=called)
    words = ""
    if completion.calls:
        words = raw if raw.strip() == parser.visible else ""
        raw, found = "", [(call.id, call.name, sound_json(call)) for call in completion.calls]
    else:
        found = [(call.id, call.name, as_json(call.arguments)) for call in parser.calls]
    seen, calls, unreadable = set(taken), [], set()
    # The same call twice in one step is meant once.
    once = {(name, arguments): id for id, name, arguments in reversed(found[:MOST_CALLS])}
    for (name, arguments), id in reversed(once.items()):
        if not id or id in seen or len(id) > _LONGEST_ID:
            id = new_id()
        seen.add(id)
        calls.append(ToolCall(id, known_name(name, known), arguments or "{}"))
        if not arguments:
            unreadable.add(id)
    message = Assistant(parser.visible, tuple(calls), raw, thought, words)
    repeats = completion.finish_reason == "repeats" and not calls
    return Step(message, frozenset(unreadable), repeats=repeats, ended=completion.ended)


def with_calls_of_thought(completion: Completion, known: KnownTools) -> Completion:
    """The completion with the whole calls that its thought ends with, which the server took for thought.

    llama.cpp does so where Qwen3.6 calls a tool before it closes its thought.
    """
    reader = ToolCallParser(known)
    said = completion.reasoning.strip().removeprefix("<think>").strip()
    thought = (reader.feed(said) + reader.close()).strip()
    if not reader.calls or not said.startswith(thought):
        return completion
    if any(call.name not in known or call.arguments is None for call in reader.calls):
        return completion
    calls = tuple(ToolCall("", call.name, as_json(call.arguments)) for call in reader.calls)
    return replace(completion, calls=calls, reasoning=thought, finish_reason="tool_calls")


def call_alone(step: Step) -> Step:
    """The step without the words in front of its calls.

    A model that writes its calls as text announces them ("you can use bash as follows"). With that
    before the result it goes on explaining (Qwen2.5-Coder-1.5B); without, it answers.
    """
    return replace(step, message=replace(step.message, text="", words=""))


def with_words(step: Step, text: str) -> Step:
    """The step with that text for a person."""
    return replace(step, message=replace(step.message, text=text, raw=""))


def sound_json(call: ToolCall) -> str:
    """The arguments as generated where strict parsers read them as an object, else repaired; "" where unreadable.

    llama.cpp parses them again with every later request, and answers 500 to NaN or
    half a surrogate pair: one such call would spoil the conversation for good.
    """
    try:
        value = json.loads(call.arguments)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        if isinstance(value, dict):
            return call.arguments
    except (ValueError, RecursionError):
        pass
    return as_json(arguments_of(call.arguments))


def as_json(arguments: Mapping[str, Any] | None) -> str:
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False, default=str)


def known_name(name: str, known: KnownTools) -> str:
    """The name, corrected where it is another spelling of a known tool's."""
    plain = name.strip().removeprefix("functions.")
    for spelling in (name, plain, plain.lower()):
        if spelling in known:
            return spelling
    return _NO_NAME.sub("", name)[:64] or "unknown"
