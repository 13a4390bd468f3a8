"""Calls in tags: Hermes and its relatives, `<function=NAME>`, `<invoke name=NAME>`, GLM, Gemma.

The text in a tag that is surely meant as a call is never shown, readable or not.
"""

import json
import re
from typing import Any

from agent.llm.tool_call_parser.calls import ParsedCall, calls_in
from agent.llm.tool_call_parser.repair import arguments_of, inside_string, value_end, value_of
from agent.llm.tool_call_parser.view import BROKEN, WAIT, Hidden, Outcome, ParserView, Wait

SURE = (
    "<tool_call>",
    "<tool_calls>",
    "<function_call>",
    "<function_calls>",
    "<functioncall>",
    "<|tool_call|>",
    "<|tool_call>",
    "<|python_tag|>",
)
LIKELY = ("<tools>", "<tool>", "<function>")  # shown after all when no call stands in them
FUNCTIONS = ("<function=", "<function name=", "<invoke name=")
CLOSING = (
    "</tool_call>",
    "</tool_calls>",
    "</tools>",
    "</tool>",
    "</function>",
    "</function_call>",
    "</function_calls>",
    "</functioncall>",
    "<|/tool_call|>",
    "<tool_call|>",
    "<|tool_call_end|>",
)
_CLOSING = re.compile("|".join(map(re.escape, CLOSING)), re.IGNORECASE)
_HEAD = re.compile(r"<(?:function|invoke)\s*(?:=|\s+name\s*=)\s*[\"']?([\w.-]+)[\"']?\s*>")
_HEAD_LONGEST = 100
_TAIL = re.compile(r"</(?:function|invoke)>|" + _CLOSING.pattern, re.IGNORECASE)
_PARAMETER = re.compile(
    r"<parameter\s*(?:=|\s+name\s*=)\s*[\"']?([\w.-]+)[\"']?\s*>"
    r"(.*?)(</parameter>|(?=<parameter[\s=])|\Z)",
    re.DOTALL,
)
_GLM = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_NAMED = re.compile(r"<([\w-]+)>(.*?)</\1>", re.DOTALL)
_NAME = re.compile(r"[\w.-]+")
_GEMMA_TEXT = re.compile(r'<\|"\|>(.*?)<\|"\|>', re.DOTALL)


def tag(view: ParserView, start: int) -> Outcome:
    """`<tool_call>` and its relatives, at `start`."""
    opening = view.literal(start, (*SURE, *LIKELY))
    if not isinstance(opening, str):
        return opening
    body = start + len(opening)
    outcome = _body(view, body)
    if outcome is not None or opening in LIKELY:
        return outcome
    return unreadable(view, body)


def _body(view: ParserView, start: int) -> Outcome:
    place = view.space(start)
    letter = view.text[place : place + 1]
    if not letter:
        return None if view.final else WAIT
    if letter in "{[":
        return _json(view, place)
    if letter == "<":
        return function_blocks(view, place)
    return named(view, place)


def unreadable(view: ParserView, body: int) -> Outcome:
    closing = _CLOSING.search(view.text, body)
    if closing:
        return Hidden(closing.end(), (BROKEN,))
    return Hidden(len(view.text), (BROKEN,)) if view.final else WAIT


def _json(view: ParserView, start: int) -> Outcome:
    """One or more JSON values up to the closing tag, which may be missing."""
    calls: list[ParsedCall] = []
    place = start
    while view.text[place : place + 1] in ("{", "["):
        end = _value_end(view, place)
        if end is None:
            return WAIT
        calls += calls_in(value_of(view.text[place:end]), view.known) or [BROKEN]
        place = view.space(end)
        while view.text[place : place + 1] in ("}", "]", ",", ";"):  # one bracket too many
            place = view.space(place + 1)
    return _closed(view, place, calls)


def _value_end(view: ParserView, start: int) -> int | None:
    """Where the JSON at `start` ends: at its last bracket, or at a closing tag that comes before."""
    end = value_end(view.text, start)
    closing = closing_outside(view, start)
    if closing is not None and (end is None or closing < end):
        return closing
    if end is None and view.final:
        first = _CLOSING.search(view.text, start)
        return first.start() if first else len(view.text)
    return end


def closing_outside(view: ParserView, start: int) -> int | None:
    """The first closing tag that is not part of a string."""
    for closing in _CLOSING.finditer(view.text, start):
        if not inside_string(view.text[start : closing.start()]):
            return closing.start()
    return None


def _closed(view: ParserView, place: int, calls: list[ParsedCall]) -> Outcome:
    end = view.after(place, CLOSING)
    return end if isinstance(end, Wait) else Hidden(end, tuple(calls))


def function_blocks(view: ParserView, start: int) -> Outcome:
    """`<function=...>` blocks inside a tag."""
    calls: list[ParsedCall] = []
    place = start
    while True:
        outcome = function(view, place)
        if isinstance(outcome, Wait):
            return WAIT
        if outcome is None:
            return _closed(view, place, calls) if calls else None
        calls += outcome.calls
        place = view.space(outcome.end)
        if place >= len(view.text) and not view.final:
            return WAIT


def function(view: ParserView, start: int) -> Outcome:
    """`<function=NAME>{json}</function>`, or with `<parameter=K>` blocks; `<invoke>` likewise."""
    opening = view.literal(start, FUNCTIONS)
    if not isinstance(opening, str):
        return opening
    head = _HEAD.match(view.text, start)
    if head is None:
        growing = len(view.text) - start < _HEAD_LONGEST and not view.final
        return WAIT if growing else None
    tail = _TAIL.search(view.text, head.end())
    if tail is None and not view.final:
        return WAIT
    end = tail.end() if tail else len(view.text)
    body = view.text[head.end() : tail.start() if tail else end]
    return Hidden(end, (ParsedCall(head[1], _arguments(view, head[1], body, closed=bool(tail))),))


def _arguments(view: ParserView, tool: str, body: str, *, closed: bool) -> dict[str, Any] | None:
    if body.lstrip()[:1] == "{":
        return arguments_of(body)
    found = list(_PARAMETER.finditer(body))
    if not found:
        return {} if closed and not body.strip() else None
    if not closed and not found[-1][3]:
        return None  # cut off inside the last value
    return {one[1]: view.known.value(tool, one[1], unwrapped(one[2])) for one in found}


def unwrapped(value: str) -> str:
    """The line breaks that the form itself puts around a value are not part of it."""
    return value.removeprefix("\n").removesuffix("\n")


def named(view: ParserView, start: int) -> Outcome:
    """A name first: `bash {json}`, Gemma's `call:bash{...}`, GLM's `bash` with `<arg_key>`."""
    begin = start + (5 if view.text.startswith("call:", start) else 0)
    name = _NAME.match(view.text, begin)
    if name is None:
        return None
    place = view.space(name.end())
    if view.text[place : place + 1] == "{":
        return named_json(view, name[0], place)
    if view.text.startswith("<arg_key>", place):
        return glm(view, name[0], place)
    return WAIT if place >= len(view.text) and not view.final else None


def named_json(view: ParserView, name: str, start: int) -> Outcome:
    end = _value_end(view, start)
    if end is None:
        return WAIT
    body = _GEMMA_TEXT.sub(lambda text: json.dumps(text[1]), view.text[start:end])
    return _closed(view, end, [ParsedCall(name, arguments_of(body))])


def glm(view: ParserView, name: str, start: int) -> Outcome:
    closing = _CLOSING.search(view.text, start)
    if closing is None:
        return Hidden(len(view.text), (ParsedCall(name, None),)) if view.final else WAIT
    pairs = _GLM.findall(view.text[start : closing.start()])
    arguments = {key.strip(): view.known.value(name, key.strip(), value) for key, value in pairs}
    return Hidden(closing.end(), (ParsedCall(name, arguments),))


def named_tag(view: ParserView, start: int) -> Outcome:
    """`<bash><command>ls</command></bash>`: tags with the names of a tool and of its arguments."""
    opening = view.literal(start, [f"<{name}>" for name in view.known.tools] or ["<"])
    if not isinstance(opening, str):
        return opening
    tool = opening[1:-1]
    body = view.space(start + len(opening))
    first = view.literal(body, [f"<{name}>" for name in view.known.tools.get(tool, ())] or ["<"])
    if first is None:
        return WAIT if body >= len(view.text) and not view.final else None
    closing = view.text.find(f"</{tool}>", body)
    if closing < 0:
        return Hidden(len(view.text), (ParsedCall(tool, None),)) if view.final else WAIT
    pairs = _NAMED.findall(view.text[body:closing])
    arguments = {key: view.known.value(tool, key, unwrapped(value)) for key, value in pairs}
    return Hidden(closing + len(tool) + 3, (ParsedCall(tool, arguments),))
