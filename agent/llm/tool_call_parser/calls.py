"""The known tools, and the calls in a parsed value, in the layouts that models write."""

import ast
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agent.llm.tool_call_parser.repair import arguments_of

_NAMES = ("name", "tool", "tool_name", "function_name", "function", "recipient_name", "action")
ARGUMENTS = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input")
_WRAPPERS = ("tool_calls", "tool_call", "function_call", "function")
KEYS = frozenset((*_NAMES, *ARGUMENTS, *_WRAPPERS, "type", "id"))
_DEEPEST = 4


@dataclass(frozen=True)
class KnownTools:
    """The arguments of each tool in order, with the JSON type of each. `alone`: what looks like a call of another tool,
    or has none of a tool's arguments, is none."""

    tools: Mapping[str, Mapping[str, str]]
    alone: bool = False

    @classmethod
    def of(cls, schemas: Iterable[Mapping[str, Any]]) -> "KnownTools":
        tools = {}
        for function in (schema["function"] for schema in schemas):
            arguments = function.get("parameters", {}).get("properties", {})
            types = {name: str(each.get("type", "string")) for name, each in arguments.items()}
            tools[function["name"]] = types
        return cls(tools)

    @cached_property
    def beginnings(self) -> tuple[str, ...]:
        """The ways in which a Python call of a tool may begin."""
        before = ("", "default_api.", "functions.")
        dotted = [b + name + "(" for b in before for name in self.tools]
        return (*dotted, *(f"print({call}" for call in dotted))

    def __contains__(self, name: object) -> bool:
        return name in self.tools

    def takes(self, call: "ParsedCall") -> bool:
        """Whether it is a call to a known tool; where these are alone, with one of its arguments."""
        known = self.tools.get(call.name)
        fits = not (self.alone and call.arguments) or {*call.arguments} & {*(known or ())}
        return known is not None and bool(fits)

    def value(self, tool: str, argument: str, text: str) -> Any:
        """An argument written as plain text, read as JSON or Python where the tool takes no string."""
        if self.tools.get(tool, {}).get(argument, "string") == "string":
            return text
        for read in (json.loads, ast.literal_eval):
            try:
                return read(text.strip())
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
        return text


@dataclass(frozen=True)
class ParsedCall:
    """A call as read from text; `arguments` is None where they cannot be read, `id` the model's own."""

    name: str
    arguments: Mapping[str, Any] | None
    id: str = field(default="", compare=False)


def calls_in(value: Any, known: KnownTools, depth: int = 0) -> list[ParsedCall]:
    """List every call in the value; none where it is something else."""
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


def is_call(value: Any) -> bool:
    """Whether the value can be nothing but calls, known or not: a name, arguments, and no other keys."""
    if isinstance(value, list):
        return bool(value) and all(map(is_call, value))
    if not isinstance(value, dict) or not value.keys() <= KEYS:
        return False
    if inner := next((value[k] for k in _WRAPPERS if isinstance(value.get(k), dict | list)), None):
        return is_call(inner)
    named = any(isinstance(value.get(key), str) for key in _NAMES)
    given = [value[key] for key in ARGUMENTS if key in value]
    return named and any(isinstance(g, dict) or g in (None, []) or encodes_object(g) for g in given)


def encodes_object(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip()[:1] == "{" and arguments_of(value) is not None


def named_calls(name: str, value: dict[str, Any]) -> list[ParsedCall]:
    key = next((key for key in ARGUMENTS if key in value), None)
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


def python_calls(source: str, known: KnownTools) -> list[ParsedCall]:
    """The calls in a text such as `bash(command="ls")`, or a list of these, with literal arguments; else none."""
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    nodes = tree.elts if isinstance(tree, ast.List) else [tree]
    calls = [python_call_of(node, known) for node in nodes]
    return [call for call in calls if call] if all(calls) else []


def python_call_of(node: ast.expr, known: KnownTools) -> ParsedCall | None:
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "print" and len(node.args) == 1:
        return python_call_of(node.args[0], known)
    if name not in known:
        return None
    try:
        return ParsedCall(name, literals(node, list(known.tools[name])))
    except ValueError:
        return None


def literals(node: ast.Call, names: list[str]) -> dict[str, Any]:
    if len(node.args) > len(names):
        raise ValueError
    given = {name: ast.literal_eval(arg) for name, arg in zip(names, node.args, strict=False)}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ValueError
        given[keyword.arg] = ast.literal_eval(keyword.value)
    return given


def unescaped_python_call(source: str, known: KnownTools) -> list[ParsedCall]:
    """One Python call whose strings hold quotes and line breaks as they are, as LFM2.5's template writes them.

    An argument then ends where the next one that the tool knows begins.
    """
    head = re.match(r"\s*\[?\s*(\w+)\((.*)\)\s*\]?\s*\Z", source, re.DOTALL)
    if head is None or head[1] not in known:
        return []
    names = "|".join(map(re.escape, known.tools[head[1]])) or r"(?!)"
    parts = re.split(rf"(?:\A|,)\s*({names})\s*=", head[2])
    arguments = {}
    for name, written in zip(parts[1::2], parts[2::2], strict=True):
        value = written.strip()
        quoted = len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]
        arguments[name] = value[1:-1] if quoted else known.value(head[1], name, value)
    return [] if parts[0].strip() else [ParsedCall(head[1], arguments)]
