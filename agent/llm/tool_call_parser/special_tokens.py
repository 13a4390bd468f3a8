"""The special tokens of gpt-oss, Mistral and thinking models, when they arrive as text."""

import re

from agent.llm.tool_call_parser.calls import ParsedCall, calls_in
from agent.llm.tool_call_parser.repair import arguments_of, value_end, value_of
from agent.llm.tool_call_parser.view import BROKEN, WAIT, Hidden, Outcome, ParserView, Wait

THOUGHTS = ("<think>", "<thinking>", "<thought>", "<reasoning>", "<|channel>thought")
THOUGHT_ENDS = ("</think>", "</thinking>", "</thought>", "</reasoning>", "<channel|>")
STRAY = (
    "</tool_call>",
    "<tool_call|>",
    "<|im_end|>",
    "<|im_start|>",
    "<|eot_id|>",
    "<|endoftext|>",
    "<|end|>",
    "<|call|>",
    "<|return|>",
    "<|message|>",
    "<|constrain|>",
)
CHANNELS = ("<|channel|>", "<|start|>")
MISTRAL = ("[tool_calls]",)
_HEADER = re.compile(r"<\|(?:channel|start)\|>(.{0,200}?)<\|message\|>", re.DOTALL)
_RECIPIENT = re.compile(r"to=(?:functions\.)?([\w-]+)")
_CHANNEL_END = re.compile(r"<\|(?:end|start|return|call|channel)\|>")
_MISTRAL_HEAD = re.compile(r"\s*([\w-]+)\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\])?\s*(?=\{)")


def thought(view: ParserView, start: int) -> Outcome:
    """Reasoning, up to its closing tag or to the end."""
    opening = view.literal(start, THOUGHTS)
    if not isinstance(opening, str):
        return opening
    closing = THOUGHT_ENDS[THOUGHTS.index(opening)]
    end = view.text.lower().find(closing, start)
    if end >= 0:
        return Hidden(end + len(closing), thought=True)
    return Hidden(len(view.text), thought=True) if view.final else WAIT


def thought_end(view: ParserView, start: int) -> Outcome:
    """A closing tag alone: the template had opened it, so all before was reasoning."""
    closing = view.literal(start, THOUGHT_ENDS[:-1])
    return Hidden(start + len(closing), drops=True) if isinstance(closing, str) else closing


def stray(view: ParserView, start: int) -> Outcome:
    """Special tokens that mean nothing in an answer."""
    found = view.literal(start, STRAY)
    return Hidden(start + len(found)) if isinstance(found, str) else found


def channel(view: ParserView, start: int) -> Outcome:
    """gpt-oss: `<|channel|>commentary to=functions.NAME ...<|message|>{json}<|call|>`."""
    opening = view.literal(start, CHANNELS)
    if not isinstance(opening, str):
        return opening
    header = _HEADER.match(view.text, start)
    if header is None:
        growing = len(view.text) - start < 250 and not view.final
        return WAIT if growing else Hidden(start + len(opening))
    if recipient := _RECIPIENT.search(header[1]):
        return _recipient(view, recipient[1], header.end())
    if "analysis" in header[1]:
        end = _CHANNEL_END.search(view.text, header.end())
        if end is None:
            return Hidden(len(view.text), thought=True) if view.final else WAIT
        return Hidden(end.start(), thought=True)
    return Hidden(header.end())


def _recipient(view: ParserView, name: str, start: int) -> Outcome:
    end = value_end(view.text, start)
    if end is None:
        closing = _CHANNEL_END.search(view.text, start)
        if closing is None and not view.final:
            return WAIT
        end = closing.start() if closing else len(view.text)
    after = view.after(end, ("<|call|>", "<|end|>"))
    if isinstance(after, Wait):
        return WAIT
    return Hidden(after, (ParsedCall(name, arguments_of(view.text[start:end])),))


def mistral(view: ParserView, start: int) -> Outcome:
    """`[TOOL_CALLS]` with a JSON array behind it, or a name and `[ARGS]{json}`."""
    opening = view.literal(start, MISTRAL)
    if not isinstance(opening, str):
        return opening
    place = start + len(opening)
    head = _MISTRAL_HEAD.match(view.text, place)
    begin = head.end() if head else view.space(place)
    end = value_end(view.text, begin) if view.text[begin : begin + 1] in ("{", "[") else None
    if end is None:
        return Hidden(len(view.text), (BROKEN,)) if view.final else WAIT
    if head:
        return Hidden(end, (ParsedCall(head[1], arguments_of(view.text[begin:end])),))
    calls = calls_in(value_of(view.text[begin:end]), view.known)
    return Hidden(end, tuple(calls) or (BROKEN,))
