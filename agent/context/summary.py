"""The summary that stands for what left a prompt, and the sizes of messages."""

import re
import zlib
from collections.abc import Sequence

from agent import prompt
from agent.context.compaction_plan import Measure, WindowBudget
from agent.messages import PICTURE_TOKENS, Assistant, Message, System, ToolResult, User
from agent.model import Completion
from agent.store.transcript import Entry

MARK_TOKENS = 8  # a message's role and end marks in most templates
_BLOCK = re.compile(r"\A<context>\nsummary of what was said before:\n.*?</context>\n", re.DOTALL)


def sent(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """The prompt's messages as the model gets them."""
    return (System(prompt.system_text()), *(entry.message for entry in entries))


def weight(message: Message) -> int:
    """Bytes of a message, which is nearly always an upper bound of its tokens."""
    match message:
        case Assistant(text, calls, raw, thought):
            body = raw or text + "".join(c.name + c.arguments + " " * 24 for c in calls)
            return len((thought + body).encode("utf-8", "replace")) + MARK_TOKENS
        case User(text, images):
            return len(text.encode("utf-8", "replace")) + PICTURE_TOKENS * len(images) + MARK_TOKENS
        case _:
            return len(message.text.encode("utf-8", "replace")) + MARK_TOKENS


def measure(entries: Sequence[Entry], tokens: int) -> Measure:
    """Estimates a message's tokens by its share of the transcript's weight; `tokens` is the exact total."""
    share = tokens / max(1, sum(weight(entry.message) for entry in entries))
    return lambda message: int(weight(message) * share) + 1


def without_newest(
    entries: Sequence[Entry], size: int, budget: WindowBudget, tokens: Measure
) -> list[Entry]:
    """The oldest entries behind which the request for a summary and its answer still fit."""
    kept, excess = list(entries), size + budget.summary - budget.limit
    while excess > 0 and kept:
        excess -= tokens(kept.pop().message)
    while kept and isinstance(kept[-1].message, Assistant) and kept[-1].message.calls:
        kept.pop()
    return kept


def is_usable(completion: Completion) -> bool:
    """Whether a summary reads as notes: no tool call, not broken off, not one word repeated."""
    text = completion.text.strip()
    if completion.finish_reason == "cut" or completion.calls or len(text) < 20:
        return False
    dense = len(zlib.compress(text.encode("utf-8", "replace"))) * 5 > len(text)
    return dense and not re.search(r"<tool_call|<function=|</?tool", text)


def summary_by_rule(before: str, leaving: Sequence[Message], characters: int) -> str:
    """An extract in place of a summary: the end of the older summary, and a line for each leaving message;
    the newest take precedence."""
    lines: list[str] = []
    room = characters
    for message in reversed(leaving):
        line = extract_line(message)
        if not line:
            continue
        if len(line) > room:
            break
        lines.append(line)
        room -= len(line) + 1
    return "\n".join([*last_lines(before, room), *reversed(lines)])


def last_lines(text: str, room: int) -> list[str]:
    kept: list[str] = []
    for line in reversed(text.splitlines()):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def extract_line(message: Message) -> str:
    match message:
        case User(text):
            return f"person: {shortened(text.rpartition('</context>')[2], 160)}"
        case Assistant(text, calls):
            called = ", ".join(f"{call.name}({shortened(call.arguments, 80)})" for call in calls)
            said = shortened(text, 160)
            parts = (said and f"I said: {said}", called and f"I called {called}")
            return " ".join(filter(None, parts))
        case ToolResult(_, name, text):
            return f"{name} gave: {shortened(text, 100)}"
    return ""


def shortened(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 4]} ..."


def with_summary(message: User, summary: str, notes: Sequence[str]) -> User:
    """A person's message with the summary of what came before it, in place of an older summary."""
    words = map(str.strip, summary.replace("</context>", "").splitlines())
    lines = [f"  {line}" for line in words if line]
    block = ["<context>", "summary of what was said before:", *lines]
    if notes:
        block += ["notes:", *notes]
    text = "\n".join([*block, "</context>", without_summary(message.text)])
    return User(text, message.images)


def without_summary(text: str) -> str:
    return _BLOCK.sub("", text)
