"""Calls in tags. Each family of models has tags of its own; what stands in them has a few forms.

These are JSON, a list of Python calls, blocks of `<function=NAME>` or `<invoke name=NAME>`, and a name
with JSON (DeepSeek, Kimi, Solar), with Gemma's own notation, or with GLM's `<arg_key>`. The text in a
tag that is certainly meant as a call (SURE) is never shown, readable or not.
"""

import json
import re
from typing import Any

from agent.llm.tool_call_parser.calls import (
    ParsedCall,
    calls_in,
    python_calls,
    unescaped_python_call,
)
from agent.llm.tool_call_parser.repair import arguments_of, inside_string, value_end, value_of
from agent.llm.tool_call_parser.view import (
    BROKEN,
    NOISE,
    WAIT,
    Hidden,
    Outcome,
    ParserView,
    Wait,
)

# Tags that are certainly meant as calls, with what closes each; "" where nothing does.
SURE = {
    "<tool_call>": "</tool_call>",
    "<tool_calls>": "</tool_calls>",
    "<function_call>": "</function_call>",
    "<function_calls>": "</function_calls>",
    "<functioncall>": "</functioncall>",
    "<|tool_call|>": "<|/tool_call|>",
    "<|tool_call>": "<tool_call|>",  # Gemma 4
    "<|python_tag|>": "",
    "<toolcall>": "</toolcall>",  # Nemotron v2
    "<|tools_prefix|>": "<|tools_suffix|>",  # Apertus
    "<|tool_call_start|>": "<|tool_call_end|>",  # LFM2
    "<|start_action|>": "<|end_action|>",  # Command R7B
    "<|function_call|>": "",  # GigaChat
    "<|message_sep|>\n\nfunction call<|role_sep|>\n": "",
    "<seed:tool_call>": "</seed:tool_call>",
    "<minimax:tool_call>": "</minimax:tool_call>",
    "<atem:function_calls>": "</atem:function_calls>",
    "<｜dsml｜function_calls>": "</｜dsml｜function_calls>",  # DeepSeek V3.2
    "<｜dsml｜tool_calls>": "</｜dsml｜tool_calls>",
    "<｜tool▁call▁begin｜>": "<｜tool▁call▁end｜>",
    "<|tool_call_begin|>": "<|tool_call_end|>",  # Kimi K2
    "<|tool_call:begin|>": "<|tool_call:end|>",  # Solar
    "<tool_call:opensource>": "</tool_call:opensource>",  # Hunyuan
}
# Shown after all where no call stands in them.
LIKELY = {"<tools>": "</tools>", "<tool>": "</tool>", "<function>": "</function>"}
CLOSING = tuple(filter(None, dict.fromkeys([*SURE.values(), *LIKELY.values()])))
_SPACED = r"<(?:｜DSML｜|atem:)?"
FUNCTIONS = tuple(
    prefix + name
    for prefix in ("<", "<atem:", "<｜dsml｜")
    for name in ("function=", "function name=", "invoke name=", "tool_call name=")
)
_CLOSING = re.compile("|".join(map(re.escape, CLOSING)), re.IGNORECASE)
_HEAD = re.compile(
    _SPACED + r"(?:function|invoke|tool_call)\s*(?:=|\s+name\s*=)\s*[\"']?([\w.-]+)[\"']?\s*>",
    re.IGNORECASE,
)
_HEAD_LONGEST = 100
_TAIL = re.compile(r"</(?:｜DSML｜|atem:)?(?:function|invoke)>|" + _CLOSING.pattern, re.IGNORECASE)
_PARAMETER = re.compile(
    _SPACED + r"param(?:eter)?\s*(?:=|\s+name\s*=)\s*[\"']?([\w.-]+)[\"']?"
    r"(?:\s+string\s*=\s*\"(true|false)\")?\s*>"
    r"(.*?)(</(?:｜DSML｜|atem:)?param(?:eter)?>|(?=<(?:｜DSML｜|atem:)?param(?:eter)?[\s=])|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_ITEM = re.compile(r"<item>(.*?)</item>", re.DOTALL)
_CDATA = re.compile(r"\A\s*<!\[CDATA\[(.*)\]\]>\s*\Z", re.DOTALL)
_GLM = re.compile(
    r"<arg_key(?::\w+)?>(.*?)</arg_key(?::\w+)?>\s*"
    r"<arg_value(?::\w+)?>(.*?)</arg_value(?::\w+)?>",
    re.DOTALL,
)
_FENCE_END = re.compile(r"\s*```")
_NAMED = re.compile(r"<([\w-]+)>(.*?)</\1>", re.DOTALL)
_IN_TAGS = re.compile(
    r"<name>\s*([\w.-]+)\s*</name>\s*<(arguments|parameters)>(.*?)</\2>", re.DOTALL
)
_IN_ATTRIBUTES = re.compile(
    r"""<function\s+name\s*=\s*["']([\w.-]+)["']\s+(arguments|parameters)\s*=\s*'(\{.*?\})'\s*/?>""",
    re.DOTALL,
)
# An id (Solar) or a kind (DeepSeek R1) may stand before the name, a number (Kimi) behind it.
_NAME = re.compile(
    r"(?:call:|(?P<id>[\w-]+)<\|tool_call:name\|>|function<｜tool▁sep｜>)?"
    r"(?:functions\.)?(?P<name>[\w.-]+)(?::\d+)?\s*"
    r"(?:<\|tool_call_argument_begin\|>|<\|tool_call:args\|>|<｜tool▁sep｜>|<tool_sep:\w+>)?"
    r"\s*(?:```json\s*)?"
)
_PYTHON_LIST = re.compile(r"\[\s*(\w+)\(")
_GEMMA = re.compile(
    r'<\|"\|>(?P<text>.*?)<\|"\|>|"(?:[^"\\]|\\.)*"|(?P<key>[\w-]+):|(?P<closing>'
    + _CLOSING.pattern
    + ")",
    re.DOTALL | re.IGNORECASE,
)


def tag(view: ParserView, start: int) -> Outcome:
    """Parse `<tool_call>` and its relatives at `start`."""
    opening = view.literal(start, (*SURE, *LIKELY))
    if not isinstance(opening, str):
        return opening
    body = start + len(opening)
    outcome = _body(view, body)
    if outcome is None and opening == "<tools>":
        return _without_call(view, body)
    if outcome is not None or opening in LIKELY:
        return outcome
    closing = _CLOSING.search(view.text, body)
    return Hidden(closing.end(), (BROKEN,)) if closing else view.unfinished()


def _without_call(view: ParserView, body: int) -> Outcome:
    """`<tools>` before what is no call in its usual form: the mark means nothing to a person, nor do the tags that it
    holds, which small models write to call, too."""
    if view.text[view.space(body) :][:1] != "<":
        return Hidden(body)
    closing = view.text.find("</tools>", body)
    if closing < 0:
        return Hidden(body) if view.final else WAIT
    inside = view.text[body:closing]
    calls = [
        ParsedCall(name, _arguments(view, name, given, closed=True))
        for name, _, given in (*_IN_TAGS.findall(inside), *_IN_ATTRIBUTES.findall(inside))
    ]
    if not calls and "<function" in inside:
        calls = [BROKEN]
    return Hidden(closing + len("</tools>"), tuple(calls))


def _body(view: ParserView, start: int) -> Outcome:
    place = view.space(start)
    letter = view.text[place : place + 1]
    if not letter:
        return None if view.final else WAIT
    if letter == "[" and (python := _PYTHON_LIST.match(view.text, place)):
        return _python(view, place) if python[1] in view.known else None
    if letter in "{[":
        return _json(view, place)
    if letter == "<":
        return function_blocks(view, place)
    return named(view, place)


def _python(view: ParserView, start: int) -> Outcome:
    """Parse the calls of LFM2, which it writes as a list of Python calls."""
    closing = closing_outside(view, start) or _CLOSING.search(view.text, start)
    if closing is None and not view.final:
        return WAIT
    end = len(view.text) if closing is None else closing.start()
    source = view.text[start:end]
    calls = python_calls(source, view.known) or unescaped_python_call(source, view.known)
    return _closed(view, end, calls or [BROKEN])


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
            if view.ends_in(place, "]"):
                return WAIT  # or the beginning of NOISE
            if view.text.startswith(NOISE[:2], place):
                break
            place = view.space(place + 1)
    return _closed(view, place, calls)


def _value_end(view: ParserView, start: int) -> int | None:
    """Where the JSON at `start` ends: at its last bracket, or at a closing tag that comes before."""
    end = value_end(view.text, start)
    closing = closing_outside(view, start)
    if closing is not None and (end is None or closing.start() < end):
        return closing.start()
    if end is None and view.final:
        first = _CLOSING.search(view.text, start)
        return first.start() if first else len(view.text)
    return end


def closing_outside(view: ParserView, start: int) -> re.Match[str] | None:
    """The first closing tag that is not part of a string."""
    for closing in _CLOSING.finditer(view.text, start):
        if not inside_string(view.text[start : closing.start()]):
            return closing
    return None


def _closed(view: ParserView, place: int, calls: list[ParsedCall]) -> Outcome:
    end = view.after(place, CLOSING)
    return end if isinstance(end, Wait) else Hidden(end, tuple(calls))


def function_blocks(view: ParserView, start: int) -> Outcome:
    """Parse the `<function=...>` blocks inside a tag."""
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
    """Parse the call `<function=NAME>{json}</function>`; it may hold `<parameter=K>` blocks, or be an `<invoke>`."""
    opening = view.literal(start, FUNCTIONS)
    if not isinstance(opening, str):
        return opening
    head = _HEAD.match(view.text, start)
    if head is None:
        growing = len(view.text) - start < _HEAD_LONGEST and not view.final
        return WAIT if growing else None
    if view.known.alone and head[1] not in view.known:
        return None
    tail = _TAIL.search(view.text, head.end())
    if tail is None and not view.final:
        return WAIT
    end = tail.end() if tail else len(view.text)
    body = view.text[head.end() : tail.start() if tail else end]
    return Hidden(end, (ParsedCall(head[1], _arguments(view, head[1], body, closed=bool(tail))),))


def _arguments(view: ParserView, tool: str, body: str, *, closed: bool) -> dict[str, Any] | None:
    if body.lstrip()[:1] == "{":
        return arguments_of(body)
    body = body.replace(NOISE, "")
    found = list(_PARAMETER.finditer(body))
    if not found and (pairs := _NAMED.findall(body)):  # MiniMax M3: tags named as the arguments
        return {
            key: _ITEM.findall(value) or view.known.value(tool, key, unwrapped(value))
            for key, value in pairs
        }
    if not found:
        return {} if closed and not body.strip() else None
    if not closed and not found[-1][4]:
        return None  # cut off inside the last value
    return {
        one[1]: unwrapped(one[3])
        if one[2] == "true"
        else view.known.value(tool, one[1], unwrapped(one[3]))
        for one in found
    }


def unwrapped(value: str) -> str:
    """The value without CDATA, or without the line breaks that the form puts around it."""
    if inside := _CDATA.match(value):
        return inside[1]
    return value[1:].removesuffix("\n") if value.startswith("\n") else value


def named(view: ParserView, start: int) -> Outcome:
    """A name, then arguments: `bash {json}`, Gemma's `call:bash{...}`, GLM's `bash` with `<arg_key>`."""
    head = _NAME.match(view.text, start)
    if head is None:
        return None
    name, place = head["name"], head.end()
    if not view.final and _CLOSING.search(view.text, place) is None:
        return WAIT
    if view.text[place : place + 1] == "{":
        return named_json(view, name, place, head["id"] or "")
    if view.text.startswith("<arg_key", place):
        return glm(view, name, place)
    return None


def named_json(view: ParserView, name: str, start: int, id: str) -> Outcome:
    if view.text.startswith("call:", start - len(name) - 5):
        return _gemma(view, name, start)
    end = _value_end(view, start)
    if end is None:
        return WAIT
    closing = _FENCE_END.match(view.text, end)
    arguments = arguments_of(view.text[start:end])
    return _closed(view, closing.end() if closing else end, [ParsedCall(name, arguments, id)])


def _gemma(view: ParserView, name: str, start: int) -> Outcome:
    """Gemma 4's notation: keys without quotes, `<|"|>` around strings."""
    place, end, written = start, None, []
    for part in _GEMMA.finditer(view.text, start):
        if part["closing"]:
            end = part.start()
            break
        written.append(view.text[place : part.start()])
        text, key = part["text"], part["key"]
        written.append(json.dumps(text) if text is not None else f'"{key}":' if key else part[0])
        place = part.end()
    if end is None and not view.final:
        return WAIT
    end = len(view.text) if end is None else end
    arguments = arguments_of("".join([*written, view.text[place:end]]))
    return _closed(view, end, [ParsedCall(name, arguments)])


def glm(view: ParserView, name: str, start: int) -> Outcome:
    closing = _CLOSING.search(view.text, start)
    if closing is None:
        return view.unfinished(ParsedCall(name, None))
    pairs = _GLM.findall(view.text[start : closing.start()])
    arguments = {key.strip(): view.known.value(name, key.strip(), value) for key, value in pairs}
    return Hidden(closing.end(), (ParsedCall(name, arguments),))


def named_tag(view: ParserView, start: int) -> Outcome:
    """Parse `<bash><command>ls</command></bash>`: tags with the names of a tool and of its arguments."""
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
        return view.unfinished(ParsedCall(tool, None))
    pairs = _NAMED.findall(view.text[body:closing])
    arguments = {key: view.known.value(tool, key, unwrapped(value)) for key, value in pairs}
    return Hidden(closing + len(tool) + 3, (ParsedCall(tool, arguments),))
