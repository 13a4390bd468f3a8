"""The fixed prefix and the form of the tail. Pure; nothing here knows the time or a chat.

The prefix (system text, then tools) is the same bytes for every chat and every
request, so that the model server reads it once. Whatever varies travels with
the person's message, at the tail, and is stored as it was sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files


@cache
def system_text() -> str:
    """The system text, without its closing newline."""
    return files("agent").joinpath("prefix/system.txt").read_text("utf-8").strip()


@dataclass(frozen=True, slots=True)
class ShownNote:
    """One lasting note as the model is shown it."""

    text: str
    saved: str  # date, YYYY-MM-DD


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """What the program adds in front of a person's words.

    `now` is aware and in the chat's zone; `notes` are those that this
    conversation has not been shown yet; `quote` is what the message replies to;
    `files` are lines naming what came with it; `more` are further lines.
    """

    now: datetime
    zone: str
    notes: Sequence[ShownNote] = ()
    quote: str = ""
    files: Sequence[str] = ()
    sender: str = ""
    more: Sequence[str] = ()


def render_message(words: str, tail: ContextBlock) -> str:
    """A person's words behind their context block, as the model receives them."""
    return render_head(tail) + words


def render_head(tail: ContextBlock) -> str:
    """The context block alone, up to where the words begin."""
    return "\n".join(["<context>", *_lines(tail), "</context>", ""])


def note_line(note: ShownNote) -> str:
    return f"- {_one_line(note.text)} ({note.saved})"


def _lines(tail: ContextBlock) -> list[str]:
    lines = [f"now: {tail.now:%a %Y-%m-%d %H:%M} {tail.zone}"]
    if tail.sender:
        lines.append(f"from: {_one_line(tail.sender)}")
    if tail.notes:
        lines.append("notes:")
        lines += [note_line(note) for note in tail.notes]
    if tail.quote:
        lines.append(f"reply to: {_one_line(tail.quote)}")
    lines += [f"file: {_one_line(file)}" for file in tail.files]
    lines += [_one_line(line) for line in tail.more]
    return lines


def _one_line(text: str) -> str:
    # A line break would let the text of others pose as a line of ours.
    return " ".join(text.split())
