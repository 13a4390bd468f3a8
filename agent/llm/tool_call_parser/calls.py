"""Tools by name, calls to them, and a parsed value to the calls in it, in the layouts that models write."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agent.llm.tool_call_parser.repair import arguments_of

_NAMES = ("name", "tool", "tool_name", "function_name", "function", "recipient_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input")
_WRAPPERS = ("tool_calls", "tool_call", "function_call", "function")
KEYS = frozenset((*_NAMES, *_ARGUMENTS, *_WRAPPERS, "type", "id"))
_DEEPEST = 4


@dataclass(frozen=True)
class KnownTools:
    """For each tool its arguments in order, with the JSON type of each."""

    tools: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, schemas: Iterable[Mapping[str, Any]]) -> "KnownTools":
        functions = [schema["function"] for schema in schemas]
        return cls({f["name"]: argument_types(f.get("parameters", {})) for f in functions})

    @cached_property
    def beginnings(self) -> tuple[str, ...]:
        """How a Python call of a tool may begin."""
        before = ("", "default_api.", "functions.")
        dotted = [b + name + "(" for b in before for name in self.tools]
        return (*dotted, *(f"print({call}" for call in dotted))

    def __contains__(self, name: object) -> bool:
        return name in self.tools

    def value(self, tool: str, argument: str, text: str) -> Any:
        """An argument written as plain text: JSON where the tool wants no string."""
        if self.tools.get(tool, {}).get(argument, "string") == "string":
            return text
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text


def argument_types(parameters: Mapping[str, Any]) -> dict[str, str]:
    properties = parameters.get("properties", {})
    return {name: str(schema.get("type", "string")) for name, schema in properties.items()}


@dataclass(frozen=True)
class ParsedCall:
    """A call as read from text. `arguments` None: it was a call, but cannot be read."""

    name: str
    arguments: Mapping[str, Any] | None


def calls_in(value: Any, known: KnownTools, depth: int = 0) -> list[ParsedCall]:
    """Every call in the value; an empty list when it is something else."""
    if depth > _DEEPEST:
        return []
    if isinstance(value, list):
        return [call for item in value for call in calls_in(item, known, depth + 1)]
    if not isinstance(value, dict):
        return []
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    if name is not None:
        return named_calls(name.removeprefix("functions."), value)
    if len(value) == 1 and next(iter(value)) in known:
        [(tool, arguments)] = value.items()
        return [ParsedCall(tool, arguments)] if isinstance(arguments, dict) else []
    return [c for key in _WRAPPERS for c in calls_in(value.get(key), known, depth + 1)]


def named_calls(name: str, value: dict[str, Any]) -> list[ParsedCall]:
    key = next((key for key in _ARGUMENTS if key in value), None)
    arguments = value[key] if key else None
    if isinstance(arguments, dict):
        return [ParsedCall(name, arguments)]
    if isinstance(arguments, str):
        return [ParsedCall(name, arguments_of(arguments))]
    if key and arguments is None:
        return [ParsedCall(name, {})]
    # {"name": "bash", "command": "ls"}: the arguments stand beside the name.
    rest = {k: v for k, v in value.items() if k not in (*_NAMES, "type", "id")}
    return [ParsedCall(name, rest)] if rest else []
