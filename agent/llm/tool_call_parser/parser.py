"""Reads a model's text as it streams in: shows what is safe to show, keeps calls and thoughts back."""

import re
import time

from agent.llm.tool_call_parser.calls import KnownTools, ParsedCall
from agent.llm.tool_call_parser.special_tokens import (
    CHANNELS,
    MISTRAL,
    STRAY,
    THOUGHTS,
    addressed,
    channel,
    kimi_k3,
    mistral,
    response,
    stray,
    thought,
    thought_end,
)
from agent.llm.tool_call_parser.tags import CLOSING, SURE, function, named_tag, tag
from agent.llm.tool_call_parser.untagged import (
    bare_json,
    fence,
    functionary,
    functools,
    headed,
    python_call,
)
from agent.llm.tool_call_parser.view import Hidden, Outcome, ParserView, Thinking, Wait

# Tokens within calls.
_INNER = (
    '<|"|> [args] [call_id] <｜tool▁sep｜> <|tool_call_argument_begin|> <|tool_call:name|> <|tool_call:args|>'
    " <|open|> <|close|> <|sep|> ｜DSML｜ <|channel>"
).split()
_LITERALS = {*SURE, *CLOSING, *STRAY, *CHANNELS, *MISTRAL, *THOUGHTS, *THOUGHTS.values(), *_INNER}
# A model has either spelling as one token of its vocabulary, or neither.
SPECIAL_TOKENS = tuple(sorted({*_LITERALS, *(token.upper() for token in _LITERALS)}))
MOST_SECONDS = 0.5  # of CPU time for one completion: 200 KB of `{"name":` took minutes
_RECOGNISERS = {
    "<": (tag, function, named_tag, kimi_k3, thought, thought_end, channel, stray, response),
    "`": (fence,),
    "[": (mistral, python_call, bare_json, thought, thought_end),
    "{": (bare_json,),
    "]": (stray,),
    ">": (functionary,),
}
_LINES = (python_call, headed, addressed, functionary, functools)
_SIGN = re.compile(r"[<`{]|\[|\](?=<|\Z)|>(?=>|\Z)|(?m:^)[ \t]*(?=[A-Za-z_])|(?<= )(?=functools\[)")
_BEGUN = re.compile(r"(?m:^)[ \t]+\Z")


class ToolCallParser:
    """Parses one completion's text. `feed` and `close` return what may be shown, in order.

    What may be the beginning of a call is held back. It is parsed again whenever it has
    grown by a sixteenth, so that a long call costs little.
    """

    def __init__(self, known: KnownTools) -> None:
        self._known = known
        self._text = ""
        self._place = 0  # up to here the text is decided
        self._again = 0  # the length of the text at which it is parsed again
        self._shown: list[str] = []
        self._thoughts: list[tuple[int, int]] = []
        self._reasoning: list[str] = []  # the thoughts without their marks
        self._fresh_thought: list[str] = []  # what `new_thought` has not returned yet
        self._thinking: Thinking | None = None  # the unfinished thought, less what was returned
        self._spent = 0.0  # seconds of CPU time
        self._blank = ""  # white space, to be shown before what follows it
        self.calls: list[ParsedCall] = []

    @property
    def visible(self) -> str:
        """What a person may see of the text, without white space around it."""
        return "".join(self._shown).strip()

    @property
    def generated(self) -> str:
        """The text as generated without reasoning, which is what later requests repeat."""
        kept, place = [], 0
        for start, end in self._thoughts:
            kept.append(self._text[place:start])
            place = end
        text = "".join([*kept, self._text[place:]])
        return text.lstrip() if self._thoughts else text

    @property
    def thought(self) -> str:
        """The thoughts that have ended."""
        return "".join(self._reasoning).lstrip("\n")

    def new_thought(self) -> str:
        """Thoughts that were not returned yet, without what may be the beginning of a closing mark."""
        if self._thinking:
            begin, closing = self._thinking.begin, self._thinking.closing
            end = begin
            while not any(begins(self._text, end, mark) for mark in closing):
                end += 1
            self._fresh_thought.append(self._text[begin:end])
            self._thinking = Thinking(end, closing)
        fresh, self._fresh_thought = "".join(self._fresh_thought), []
        return fresh

    def feed(self, piece: str) -> str:
        self._text += piece
        if len(self._text) < self._again:
            return ""
        return self._read(final=False)

    def close(self) -> str:
        return self._read(final=True)

    def _read(self, *, final: bool) -> str:
        view = ParserView(self._text, final, self._known)
        fresh: list[str] = []
        while self._place < len(self._text):
            sign = _SIGN.search(self._text, self._place)
            start = sign.start() if sign else self._line_start(final=final)
            fresh.append(self._text[self._place : start])
            self._place = start
            if sign is None or not self._decide(view, sign, fresh):
                break
        return self._show("".join(fresh))

    def _line_start(self, *, final: bool) -> int:
        """The end of the text, less the indentation of a line that has only begun."""
        begun = None if final else _BEGUN.search(self._text, self._place)
        return begun.start() if begun else len(self._text)

    def _decide(self, view: ParserView, sign: re.Match[str], fresh: list[str]) -> bool:
        """Settle what stands at the sign; False where more text must come first.

        Once MOST_SECONDS are used up, the rest counts as plain text.
        """
        outcome: Outcome = None
        if self._spent < MOST_SECONDS:
            began = time.thread_time()
            outcome = recognise(view, sign)
            self._spent += time.thread_time() - began
        if isinstance(outcome, Wait):
            if isinstance(outcome, Thinking) and not self._thinking:
                self._thinking = outcome
            held = len(self._text) - sign.start()
            self._again = len(self._text) + held // 16
            return False
        if outcome is None:
            end = max(sign.end(), sign.start() + 1)
            fresh.append(self._text[sign.start() : end])
            self._place = end
        else:
            self._hide(outcome, sign.start(), fresh)
        return True

    def _hide(self, hidden: Hidden, start: int, fresh: list[str]) -> None:
        self.calls += hidden.calls
        self._place = hidden.end
        if hidden.drops:
            self._thoughts, self._reasoning = [(0, hidden.end)], [self._text[:start]]
            self._shown.clear()
            fresh.clear()
        elif hidden.thought:
            self._thoughts.append((start, hidden.end))
            self._reasoning.append(self._text[hidden.thought])
            told = self._thinking.begin if self._thinking else hidden.thought.start
            self._fresh_thought.append(self._text[told : hidden.thought.stop])
            self._thinking = None

    def _show(self, text: str) -> str:
        """Return text to show; white space at its end is held back until text follows, and none is shown at first."""
        text = self._blank + text
        shown = text.rstrip()
        self._blank = text[len(shown) :]
        if not any(self._shown):
            shown = shown.lstrip()
        self._shown.append(shown)
        return shown


def begins(text: str, place: int, mark: str) -> bool:
    """Whether the mark stands at `place`, or may be beginning there."""
    there = text[place : place + len(mark)].lower()
    return there == mark or (place + len(there) >= len(text) and mark.startswith(there))


def recognise(view: ParserView, sign: re.Match[str]) -> Outcome:
    letter = view.text[sign.start()]
    outcomes = [one(view, sign.start()) for one in _RECOGNISERS.get(letter, _LINES)]
    found = [outcome for outcome in outcomes if outcome is not None]
    surest = sorted(found, key=lambda one: (not isinstance(one, Hidden), type(one) is Wait))
    return surest[0] if surest else None
