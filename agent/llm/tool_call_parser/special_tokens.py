"""The special tokens of gpt-oss, Mistral and thinking models, when they arrive as text."""

import re

from agent.llm.tool_call_parser.calls import ParsedCall, calls_in
from agent.llm.tool_call_parser.repair import arguments_of, value_end, value_of
from agent.llm.tool_call_parser.view import (
    BROKEN,
    NOISE,
    WAIT,
    Hidden,
    Outcome,
    ParserView,
    Thinking,
    Wait,
)

THOUGHTS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<|channel>thought": "<channel|>",
    "<seed:think>": "</seed:think>",
    "<mm:think>": "</mm:think>",
    "<think:opensource>": "</think:opensource>",
    "<|start_thinking|>": "<|end_thinking|>",
    "[think]": "[/think]",
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",  # Kimi K3
}
# Gemma's is also written without a thought; Apriel's begins with no sign at all.
LONE_ENDS = (*(end for end in THOUGHTS.values() if end != "<channel|>"), "[begin final response]")
# Tokens that mean nothing where they stand in an answer.
STRAY = (
    "</tools> <tool_response> </tool_response> </tool_call> <tool_call|> <|im_end|> <|im_start|> <|eot_id|> <|eom_id|> <|eot|> <|eom|> <|endoftext|>"
    " <|end|> <|call|> <|calls|> <|return|> <|message|> <|constrain|> <|content|> <|start_response|>"
    " <|end_response|> <|start_text|> <|end_text|> <|tool_calls|> <|tool_calls_section_begin|>"
    " <|tool_calls_section_end|> <｜tool▁calls▁begin｜> <｜tool▁calls▁end｜> <tool_calls:opensource>"
    " </tool_calls:opensource> <|open|>response<|sep|> <|close|>response<|sep|> <|open|>tools<|sep|>"
    " <|close|>tools<|sep|> <|close|>message<|sep|>"
).split()
CHANNELS = ("<|channel|>", "<|start|>")
MISTRAL = ("[tool_calls]",)
_HEADER = re.compile(r"<\|(?:channel|start)\|>(.{0,200}?)<\|message\|>", re.DOTALL)
_RECIPIENT = re.compile(r"to=(?:functions\.)?([\w-]+)")
_ADDRESS = re.compile(r"\s*(to=[\w.-]+(?:<\|(?:channel|constrain)\|>[^<]{0,40}){0,2})<\|message\|>")
_ADDRESS_LONGEST = 160
CHANNEL_ENDS = tuple(
    f"<|{name}|>" for name in ("end", "eom", "eot", "start", "return", "call", "channel")
)
_CHANNEL_END = re.compile("|".join(map(re.escape, CHANNEL_ENDS)))
_K3_CALL = re.compile(
    r'<\|open\|>call tool="([^"]+)"[^<]*<\|sep\|>(.*?)<\|close\|>call<\|sep\|>', re.DOTALL
)
_K3_ARGUMENT = re.compile(
    r'<\|open\|>argument key="([^"]+)"(?: type="(\w+)")?<\|sep\|>(.*?)<\|close\|>argument<\|sep\|>',
    re.DOTALL,
)
_MISTRAL_HEAD = re.compile(r"\s*([\w-]+)\s*(?:\[CALL_ID\]\s*(\w+)\s*)?(?:\[ARGS\])?\s*(?=\{)")


def thought(view: ParserView, start: int) -> Outcome:
    """Reasoning, up to its closing tag or to the end."""
    opening = view.literal(start, THOUGHTS)
    if not isinstance(opening, str):
        return opening
    closing, begin = THOUGHTS[opening], start + len(opening)
    if end := re.compile(re.escape(closing), re.IGNORECASE).search(view.text, begin):
        return Hidden(end.end(), thought=slice(begin, end.start()))
    if view.final:
        return Hidden(len(view.text), thought=slice(begin, len(view.text)))
    return Thinking(begin, (closing,))


def opened_thought(prompt: str) -> str:
    """The mark of a thought with which a prompt ends, so that the completion begins within it; or ""."""
    end = prompt.rstrip().lower()
    return next((opening for opening in THOUGHTS if end.endswith(opening)), "")


def thought_end(view: ParserView, start: int) -> Outcome:
    """Take a closing tag alone for a thought's end: the template has opened it, so all before was reasoning."""
    closing = view.literal(start, LONE_ENDS)
    return Hidden(start + len(closing), drops=True) if isinstance(closing, str) else closing


def stray(view: ParserView, start: int) -> Outcome:
    """Hide special tokens that mean nothing in an answer."""
    found = view.literal(start, (*STRAY, NOISE))
    return Hidden(start + len(found)) if isinstance(found, str) else found


def response(view: ParserView, start: int) -> Outcome:
    """Hide `<response>` around words, as small models answer what reads like a document; around tags it is XML."""
    found = view.literal(start, ("<response>", "</response>"))
    if not isinstance(found, str):
        return found
    opening, inside = found.replace("/", ""), view.text.lstrip()
    if inside[: len(opening)].lower() != opening:
        return None
    inside = inside[len(opening) :].lstrip()
    if not inside and not view.final:
        return WAIT
    return None if inside.startswith("<") else Hidden(start + len(found))


def channel(view: ParserView, start: int) -> Outcome:
    """Parse gpt-oss's `<|channel|>commentary to=functions.NAME ...<|message|>{json}<|call|>`."""
    opening = view.literal(start, CHANNELS)
    if not isinstance(opening, str):
        return opening
    header = _HEADER.match(view.text, start)
    if header is None:
        growing = len(view.text) - start < 250 and not view.final
        return WAIT if growing else Hidden(start + len(opening))
    return _addressed(view, header[1], header.end())


def addressed(view: ParserView, start: int) -> Outcome:
    """What follows a generation prompt that ends with the speaker: ` to=NAME<|message|>...`."""
    header = _ADDRESS.match(view.text, start)
    if header is None:
        rest = view.text[start : start + _ADDRESS_LONGEST]
        begun = rest.lstrip().startswith("to="[: len(rest.lstrip())])
        growing = view.ends_in(start, rest) and len(rest) < _ADDRESS_LONGEST
        return WAIT if begun and growing and start == 0 else None
    return _addressed(view, header[1], header.end())


def _addressed(view: ParserView, header: str, start: int) -> Outcome:
    """What the header of a gpt-oss message makes of its body: a call, a thought, or text to show."""
    if recipient := _RECIPIENT.search(header):
        place = view.space(start)
        if place >= len(view.text) and not view.final:
            return WAIT
        if view.text[place : place + 1] == "{":
            return _recipient(view, recipient[1], place)
    if "analysis" in header or (recipient and recipient[1] == "self"):
        end = _CHANNEL_END.search(view.text, start)
        if end is None and not view.final:
            return Thinking(start, CHANNEL_ENDS)
        stop = end.start() if end else len(view.text)
        return Hidden(stop, thought=slice(start, stop))
    return Hidden(start)


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
    """Parse `[TOOL_CALLS]` with a JSON array behind it, or a name and `[ARGS]{json}`."""
    opening = view.literal(start, MISTRAL)
    if not isinstance(opening, str):
        return opening
    place = start + len(opening)
    head = _MISTRAL_HEAD.match(view.text, place)
    begin = head.end() if head else view.space(place)
    end = value_end(view.text, begin) if view.text[begin : begin + 1] in ("{", "[") else None
    if end is None:
        return view.unfinished()
    if head:
        arguments = arguments_of(view.text[begin:end])
        return Hidden(end, (ParsedCall(head[1], arguments, head[2] or ""),))
    calls = calls_in(value_of(view.text[begin:end]), view.known)
    return Hidden(end, tuple(calls) or (BROKEN,))


def kimi_k3(view: ParserView, start: int) -> Outcome:
    """Parse `<|open|>call tool="NAME"<|sep|>`, its arguments in the same form, `<|close|>call<|sep|>`."""
    opening = view.literal(start, ("<|open|>call ",))
    if not isinstance(opening, str):
        return opening
    call = _K3_CALL.match(view.text, start)
    if call is None:
        return view.unfinished()
    arguments = {
        one[1]: one[3] if one[2] == "string" else view.known.value(call[1], one[1], one[3])
        for one in _K3_ARGUMENT.finditer(call[2])
    }
    return Hidden(call.end(), (ParsedCall(call[1], arguments),))
