"""Calls behind a line of words: gpt-oss with its special tokens lost, ReAct's `Action:`."""

import re

from agent.llm.tool_call_parser.calls import ParsedCall
from agent.llm.tool_call_parser.repair import arguments_of, value_end
from agent.llm.tool_call_parser.view import WAIT, Hidden, Outcome, ParserView

_HEAD = re.compile(
    r"[ \t]*(?:"
    r"(?:assistant)?(?:commentary|analysis) to=(?:functions\.)?([\w-]+)[ \t]*(?:code|json)?\s*(?=\{)"
    r"|Action:[ \t]*([\w-]+)[ \t]*\n+[ \t]*Action Input:[ \t]*(?=\{)"
    r")"
)
_BEGINNINGS = (
    "assistantcommentary to=",
    "assistantanalysis to=",
    "commentary to=",
    "analysis to=",
    "Action:",
)
_LONGEST = 120


def headed(view: ParserView, start: int) -> Outcome:
    """`commentary to=functions.NAME json{...}`, or `Action: NAME` over `Action Input: {...}`."""
    head = _HEAD.match(view.text, start)
    if head is None:
        return WAIT if _growing(view, start) else None
    name = head[1] or head[2]
    if name not in view.known:
        return None
    end = value_end(view.text, head.end())
    if end is None and not view.final:
        return WAIT
    end = len(view.text) if end is None else end
    return Hidden(end, (ParsedCall(name, arguments_of(view.text[head.end() : end])),))


def _growing(view: ParserView, start: int) -> bool:
    rest = view.text[start : start + _LONGEST].lstrip(" \t")
    if not view.ends_in(start, view.text[start : start + _LONGEST]) or "{" in rest:
        return False
    return any(b.startswith(rest) or rest.startswith(b) for b in _BEGINNINGS)
