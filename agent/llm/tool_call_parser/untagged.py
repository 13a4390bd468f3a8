"""Calls without tags: bare JSON, JSON in a Markdown fence, Python calls, a line of words and JSON.

Ordinary text has these forms as well: only a complete call to a known tool counts, or JSON that can be
nothing but a call; whatever turns out to be none is shown.
"""

import re

from agent.llm.tool_call_parser.calls import (
    ARGUMENTS,
    KEYS,
    ParsedCall,
    calls_in,
    is_call,
    python_calls,
)
from agent.llm.tool_call_parser.repair import arguments_of, value_end, value_of
from agent.llm.tool_call_parser.tags import function, tag
from agent.llm.tool_call_parser.view import BROKEN, NOISE, WAIT, Hidden, Outcome, ParserView, Wait

_CALL_FENCES = frozenset(("tool_call", "tool_calls", "tool_code"))  # certainly meant as calls
_FENCES = _CALL_FENCES.union(
    "json json5 jsonc xml python py text plaintext hermes tool tools function function_call".split()
)
_FENCE = re.compile(r"```[ \t]*([\w+-]*)[ \t]*(?:\n|(?=[{\[<]))")
_FENCE_LONGEST = 40
_KEY = re.compile(r"""[\s{\[]*(?:["']([\w.-]*)["']\s*(?::\s*(?:["']([\w.-]*)(["'])?)?)?)?""")
_SECOND_KEY = re.compile(r"\s*,\s*[\"'](\w*)([\"'])?")
_NAME_KEYS = frozenset(("name", "tool", "tool_name", "function_name"))
_PYTHON = re.compile(r"[ \t]*\[?\s*(?:print\()?(?:default_api\.|functions\.)?(\w+)\(")
# What may follow the bracket: a literal, a keyword with one, or as yet a part of that.
_ARGUMENT = re.compile(r"""\s*(?:\w+\s*=\s*)?(?:["'\[\d)]|True|False|\w*\Z)""")
_AFTER_CALL = re.compile(r"[ \t]*(?:[\],);]|\r?\n|\Z)")
_FUNCTIONARY = re.compile(r"(>>>)?[ ]*([\w-]+)\n")
_HEAD = re.compile(
    r"[ \t]*(?:"
    r"(?:assistant)?(?:commentary|analysis) to=(?:functions\.)?([\w-]+)[ \t]*(?:code|json)?\s*(?=\{)"
    r"|Action:[ \t]*([\w-]+)[ \t]*\n+[ \t]*Action Input:[ \t]*(?=\{)"
    r"|Action:\s*```json\n(?=\[)"  # Command R+
    r")"
)
_BEGINNINGS = (
    "assistantcommentary to=",
    "assistantanalysis to=",
    "commentary to=",
    "analysis to=",
    "Action:",
)
_HEAD_LONGEST = 120


def bare_json(view: ParserView, start: int) -> Outcome:
    """A JSON object or array that is a call."""
    if view.final and view.text.startswith("{{", start) and value_end(view.text, start) is None:
        return bare_json(view, start + 1)  # doubled, and closed once
    if not may_be_call(view, start):
        return None
    end = json_end(view, start)
    if end is None:
        return WAIT
    value = value_of(view.text[start:end])
    calls = calls_in(value, view.known)
    if calls and (all(map(view.known.takes, calls)) or (is_call(value) and not view.known.alone)):
        return Hidden(end, tuple(calls))
    if view.known.alone:
        return None
    # A call to a known tool is hidden even where it cannot be read, and half of any call.
    key = _KEY.match(view.text, start)
    if key is None or key[1] not in _NAME_KEYS:
        return None
    second = _SECOND_KEY.match(view.text, key.end()) if value is None else None
    half = second is not None and second[2] and second[1] in ARGUMENTS
    return Hidden(end, (BROKEN,)) if half or key[2] in view.known else None


def may_be_call(view: ParserView, start: int) -> bool:
    """Whether the JSON at `start` may become a call; False as soon as its first keys cannot begin one."""
    key = _KEY.match(view.text, start)
    assert key is not None
    if key[1] is None:  # the text may end within the key
        rest = view.text[key.end() :]
        return not view.final and rest[:1] in ("", '"', "'") and f"_{rest[1:]}".isidentifier()
    if key[1] in _NAME_KEYS and key[3] and key[2].removeprefix("functions.") not in view.known:
        second = _SECOND_KEY.match(view.text, key.end())
        if second is None:
            return not view.final and view.text[key.end() :].strip() in ("", ",")
        expected = (*ARGUMENTS, "type", "id")
        growing = not second[2] and any(name.startswith(second[1]) for name in expected)
        return growing or second[1] in expected
    return key[1] in KEYS or key[1] in view.known


def json_end(view: ParserView, start: int) -> int | None:
    """Where the JSON at `start` ends, at the latest with the text; None while more of it may come."""
    end = value_end(view.text, start)
    return len(view.text) if end is None and view.final else end


def json_call(view: ParserView, name: str, start: int) -> Outcome:
    """A call whose arguments are the JSON object at `start`."""
    end = json_end(view, start)
    if end is None:
        return WAIT
    return Hidden(end, (ParsedCall(name, arguments_of(view.text[start:end])),))


def fence(view: ParserView, start: int) -> Outcome:
    """A fenced block that holds nothing but calls."""
    head = _FENCE.match(view.text, start)
    if head is None:
        rest = view.text[start : start + _FENCE_LONGEST]
        growing = view.ends_in(start, rest) and len(rest) < _FENCE_LONGEST and "\n" not in rest
        return WAIT if growing and "```".startswith(rest[:3]) else None
    if head[1] and head[1].lower() not in _FENCES:
        return None
    place = view.space(head.end())
    inner = call_inside(view, place)
    if inner is None and head[1].lower() in _CALL_FENCES:
        end = view.text.find("```", place)
        return view.unfinished() if end < 0 else Hidden(end + 3, (BROKEN,))
    return fence_end(view, inner) if isinstance(inner, Hidden) else inner


def call_inside(view: ParserView, place: int) -> Outcome:
    letter = view.text[place : place + 1]
    if not letter:
        return None if view.final else WAIT
    if letter in "{[":
        outcome = bare_json(view, place)
        return python_call(view, place) if outcome is None else outcome
    if letter == "<":
        outcome = tag(view, place)
        return function(view, place) if outcome is None else outcome
    if letter == "]":
        return WAIT if view.literal(place, (NOISE,)) is WAIT else None
    return python_call(view, place)


def fence_end(view: ParserView, inner: Hidden) -> Outcome:
    """Parse further calls in the same fence, then its end."""
    calls, place = list(inner.calls), inner.end
    while True:
        end = view.after(place, ("```",))
        if isinstance(end, Wait):
            return WAIT
        if end != place or view.space(place) >= len(view.text):
            return Hidden(end, tuple(calls))
        more = call_inside(view, view.space(place))
        if not isinstance(more, Hidden):
            return WAIT if isinstance(more, Wait) else Hidden(place, tuple(calls))
        calls, place = calls + list(more.calls), more.end


def python_call(view: ParserView, start: int) -> Outcome:
    """Parse `bash(command="ls")`, alone or in a list, with literal arguments only."""
    head = _PYTHON.match(view.text, start)
    if head is None or head[1] not in view.known:
        return WAIT if name_growing(view, start) else None
    argument = _ARGUMENT.match(view.text, head.end())
    if argument is None:
        return None
    end = value_end(view.text, start)
    if end is None:
        return view.unfinished(ParsedCall(head[1], None))
    if not view.final and not view.text[end:].lstrip(" \t"):
        return WAIT  # whether it is one depends on what follows
    if not _AFTER_CALL.match(view.text, end):
        return None
    calls = python_calls(view.text[start:end], view.known)
    return Hidden(end, tuple(calls)) if calls else None


def name_growing(view: ParserView, start: int) -> bool:
    rest = view.text[start:].lstrip(" \t[")
    if view.final or len(rest) > 64 or "\n" in rest:
        return False
    return any(beginning.startswith(rest) for beginning in view.known.beginnings)


def headed(view: ParserView, start: int) -> Outcome:
    """Parse `commentary to=functions.NAME json{...}`, or `Action: NAME` over `Action Input: {...}`."""
    head = _HEAD.match(view.text, start)
    if head is None:
        return WAIT if _growing(view, start) else None
    name = head[1] or head[2]
    if name is None:
        return fence(view, view.text.rindex("```", start, head.end()))
    return json_call(view, name, head.end()) if head[2] or name in view.known else None


def _growing(view: ParserView, start: int) -> bool:
    rest = view.text[start : start + _HEAD_LONGEST].lstrip(" \t")
    if not view.ends_in(start, view.text[start : start + _HEAD_LONGEST]) or "{" in rest:
        return False
    return any(b.startswith(rest) or rest.startswith(b) for b in _BEGINNINGS)


def functionary(view: ParserView, start: int) -> Outcome:
    """Parse functionary 3.2's `>>>NAME` or, at the beginning, `NAME` on a line, then JSON; `all` stands for words."""
    head = _FUNCTIONARY.match(view.text, start)
    if head is None:
        rest = view.text[start : start + 64]
        growing = view.ends_in(start, rest) and "\n" not in rest.strip(" ")
        names = [*view.known.tools, "all"]
        begun = start == 0 or rest.startswith(">>>"[: len(rest)])
        name = rest.lstrip("> ")
        return WAIT if growing and begun and any(n.startswith(name) for n in names) else None
    if start and not head[1]:
        return None
    if head[2] == "all":
        return Hidden(head.end())
    if head[2] not in view.known:
        return None
    place = view.space(head.end())
    if place >= len(view.text) and not view.final:
        return WAIT
    return json_call(view, head[2], place) if view.text[place : place + 1] == "{" else None


def functools(view: ParserView, start: int) -> Outcome:
    """Parse firefunction's `functools[{"name": NAME, "arguments": {...}}]`."""
    opening = view.literal(start, ("functools[",))
    if not isinstance(opening, str):
        return opening
    return bare_json(view, start + len(opening) - 1)
