"""A running turn as Telegram shows it: tool lines that keep, and text that grows."""

from itertools import accumulate
from typing import Literal

from bot.channel import Step, View
from bot.telegram.render import plain, render
from bot.telegram.styled import TEXT_UNITS, Styled, join, tail, units

_DETAIL = 700  # characters of a tool's output in the quote
_LOG = 3500
_MARKS: dict[Literal["running", "ok", "failed"], str] = {
    "running": "⏳",
    "ok": "✓",
    "failed": "✗",
}


def log(view: View) -> Styled:
    """The tools' lines with their output folded, the newest whole."""
    lines = [_step(step) for step in view.steps]
    sizes = accumulate(units(line.text) for line in reversed(lines))
    whole = sum(size < _LOG for size in sizes)
    short = [_line(step) for step in view.steps[: len(lines) - whole]]
    return tail(join([*short, *lines[len(lines) - whole :]]), TEXT_UNITS)


def draft(view: View, *, with_steps: bool) -> Styled:
    parts = [log(view)] if with_steps else []
    return _fit([*parts, _thoughts(view), render(view.text), _status(view)])


def whole(view: View) -> Styled:
    """All in one message, for chats without drafts."""
    return draft(view, with_steps=True)


def _fit(parts: list[Styled]) -> Styled:
    return tail(join(parts, "\n\n"), TEXT_UNITS)


def _status(view: View) -> Styled:
    return plain(view.status).within("italic")


def _thoughts(view: View) -> Styled:
    return plain(view.thoughts[-_DETAIL:].strip()).within("expandable_blockquote")


def _line(step: Step) -> Styled:
    took = Styled(f"· {step.seconds:.1f} s" if step.seconds >= 0.1 else "")
    mark = Styled(_MARKS[step.state])
    words = [mark, plain(step.name).within("bold"), plain(step.what).within("code"), took]
    return join(words, " ")


def _step(step: Step) -> Styled:
    detail = step.detail.strip()
    if len(detail) > _DETAIL:
        detail = detail[: _DETAIL // 2] + "\n…\n" + detail[-_DETAIL // 2 :]
    return join([_line(step), plain(detail).within("expandable_blockquote")])
