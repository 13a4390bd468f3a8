"""A parsed value to the calls in it, in the layouts that models have been seen to write."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent.llm.tool_call_parser.known import KnownTools
from agent.llm.tool_call_parser.repair import arguments_of

_NAMES = ("name", "tool", "tool_name", "function_name", "function", "recipient_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input")
_WRAPPERS = ("tool_calls", "tool_call", "function_call", "function")
KEYS = frozenset((*_NAMES, *_ARGUMENTS, *_WRAPPERS, "type", "id"))


@dataclass(frozen=True)
class ParsedCall:
    """A call as read from text. `arguments` None: it was a call, but cannot be read."""

    name: str
    arguments: Mapping[str, Any] | None


def calls_in(value: Any, known: KnownTools) -> list[ParsedCall]:
    """Every call in the value; an empty list when it is something else."""
    return list(_calls(value, known, 0))


def _calls(value: Any, known: KnownTools, depth: int) -> Iterator[ParsedCall]:
    if depth > 4:
        return
    if isinstance(value, list):
        for item in value:
            yield from _calls(item, known, depth + 1)
    elif isinstance(value, dict):
        yield from _call(value, known, depth)


def _call(value: dict[str, Any], known: KnownTools, depth: int) -> Iterator[ParsedCall]:
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    if name is not None:
        yield from _named(name.removeprefix("functions."), value)
        return
    if len(value) == 1 and next(iter(value)) in known:
        [(tool, arguments)] = value.items()
        yield from [ParsedCall(tool, arguments)] if isinstance(arguments, dict) else []
        return
    for key in _WRAPPERS:
        yield from _calls(value.get(key), known, depth + 1)


def _named(name: str, value: dict[str, Any]) -> Iterator[ParsedCall]:
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    if isinstance(given, dict):
        yield ParsedCall(name, given)
    elif isinstance(given, str):
        yield ParsedCall(name, arguments_of(given))
    elif given is None and any(key in value for key in _ARGUMENTS):
        yield ParsedCall(name, {})
    else:
        yield from _flat(name, value)


def _flat(name: str, value: dict[str, Any]) -> Iterator[ParsedCall]:
    """`{"name": "bash", "command": "ls"}`: the arguments stand beside the name."""
    rest = {k: v for k, v in value.items() if k not in (*_NAMES, "type", "id")}
    if rest:
        yield ParsedCall(name, rest)
