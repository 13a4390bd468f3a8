"""The fixed prefix, and the context block in front of a person's words.

The prefix (system text, then tools) has the same bytes for every chat and every
request, so that the model server reads it once. Whatever varies goes with the
person's message, at the end, and is stored as it was sent.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files as resources

PLAN = "plan:"
_instructions = ""


@cache
def base_text() -> str:
    """The system text as it is shipped, without its closing newline."""
    return resources("agent").joinpath("prefix/system.txt").read_text("utf-8").strip()


def system_text() -> str:
    """The system text with the owner's instructions, which end it."""
    return f"{base_text()}\n\n{_instructions}" if _instructions else base_text()


def use_instructions(text: str) -> None:
    """Set the owner's instructions for all chats of this process. It is done once, before the first request."""
    global _instructions
    _instructions = text


def context_block(
    now: datetime,
    zone: str,
    *,
    sender: str = "",
    notes: Sequence[str] = (),
    plan: Sequence[str] = (),
    quote: str = "",
    files: Iterable[str] = (),
    more: Iterable[str] = (),
) -> str:
    """What the program adds in front of a person's words, up to where the words begin.

    `now` is aware and in the chat's zone; `notes` are lines of `note_line` that this
    conversation has not seen yet; `plan` are the steps of its task; `quote` is what the message
    replies to; `files` are lines that name what came with it; `more` are further lines.
    """
    lines = [f"now: {now:%a %Y-%m-%d %H:%M} {zone}"]
    if sender:
        lines.append(f"from: {one_line(sender)}")
    if notes:
        lines += ["notes:", *notes]
    if plan:
        lines += [PLAN, *plan]
    if quote:
        lines.append(f"reply to: {one_line(quote)}")
    lines += [f"file: {one_line(file)}" for file in files]
    lines += map(one_line, more)
    return "\n".join(["<context>", *lines, "</context>", ""])


def context_and_words(message: str) -> tuple[str, str]:
    """What stands in the context block of a person's message, and the words behind it."""
    block = re.match(r"(?s)<context>\n(.*?)\n</context>\n", message)
    return (block[1], message[block.end() :].strip()) if block else ("", message.strip())


def day_opening(message: str) -> str:
    """How every message of the same day begins as this one does."""
    block = re.match(r"<context>\nnow: \S+ \S+ ", message)
    return block[0] if block else ""


def attached_files(context: str) -> list[tuple[str, str]]:
    """Path and description of each file that a context block names, but for those that could not be fetched."""
    return re.findall(r"(?m)^file: (.+?) \((?!.*not fetched)(.*)\)$", context)


def note_line(text: str, saved: datetime) -> str:
    """One lasting note as the model sees it."""
    return f"- {one_line(text)} ({saved:%Y-%m-%d})"


def one_line(text: str) -> str:
    # With line breaks, other people's text could pass for lines of the program's.
    return " ".join(text.split())
