"""The summary of what leaves a prompt: by the model, else an extract made by rule; and its place in a message."""

import asyncio
import logging
import re
import zlib
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from agent.errors import AgentError
from agent.messages import Assistant, Message, ToolResult, User
from agent.model import Completion, Model, ModelRefused, Request

log = logging.getLogger(__name__)

ASK = (
    "<context>\n</context>\n"
    "[The program: this conversation is about to be shortened. Write the notes you need to go on from: "
    "what the person wants and decided, names, numbers, paths and results that matter, what is done, "
    "what is open. Plain lines, at most {words} words, nothing else.]"
)
_WORDS_PER_TOKEN = 0.6
_BLOCK = re.compile(r"\A<context>\nsummary of what was said before:\n.*?</context>\n", re.DOTALL)


async def by_model(
    model: Model,
    messages: Sequence[Message],
    schemas: tuple[Mapping[str, Any], ...],
    tokens: int,
    seconds: float,
) -> tuple[str, Completion | None]:
    """The model's own summary of the messages, which it has in its cache; "" when there is none in time.

    It is asked as a suffix of the same prompt, with the same tools, so that
    nothing but the question is read anew.
    """
    ask = User(ASK.format(words=int(tokens * _WORDS_PER_TOKEN)))
    request = Request((*messages, ask), schemas, tool_choice="none", max_tokens=tokens)
    try:
        async with asyncio.timeout(seconds), aclosing(model.stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    completion = piece
    except (AgentError, ModelRefused, TimeoutError) as error:
        log.warning("no summary by the model (%s): an extract serves", error or "too slow")
        return "", None
    return (completion.text.strip() if usable(completion) else ""), completion


def usable(completion: Completion) -> bool:
    """Whether it reads as notes: words, not a tool call, not broken off, not one word for ever."""
    text = completion.text.strip()
    if completion.finish_reason == "cut" or completion.calls or len(text) < 20:
        return False
    dense = len(zlib.compress(text.encode("utf-8", "replace"))) * 5 > len(text)
    return dense and not re.search(r"<tool_call|<function=|</?tool", text)


def by_rule(before: str, leaving: Sequence[Message], characters: int) -> str:
    """An extract: the older summary's end, then a line for each message that leaves, the newest first kept."""
    lines: list[str] = []
    room = characters
    for message in reversed(leaving):
        line = _line(message)
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


def _line(message: Message) -> str:
    match message:
        case User(text):
            return f"person: {shortened(text.rpartition('</context>')[2], 160)}"
        case Assistant(text, calls):
            called = ", ".join(f"{call.name}({shortened(call.arguments, 80)})" for call in calls)
            said = shortened(text, 160)
            return " ".join(
                part
                for part in (said and f"I said: {said}", called and f"I called {called}")
                if part
            )
        case ToolResult(_, name, text):
            return f"{name} gave: {shortened(text, 100)}"
    return ""


def shortened(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 4]} ..."


def with_summary(message: User, summary: str, notes: Sequence[str]) -> User:
    """A person's message behind the summary of what came before it, in place of an older summary."""
    lines = [
        f"  {line.strip()}"
        for line in summary.replace("</context>", "").splitlines()
        if line.strip()
    ]
    block = ["<context>", "summary of what was said before:", *lines]
    if notes:
        block += ["notes:", *notes]
    text = "\n".join([*block, "</context>", without_summary(message.text)])
    return User(text, message.images)


def without_summary(text: str) -> str:
    return _BLOCK.sub("", text)
