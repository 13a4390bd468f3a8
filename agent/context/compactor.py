"""One compaction: plan what leaves, have it summarised, count the result, store it."""

import asyncio
import logging
import re
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from agent import prompt
from agent.context import compaction_plan
from agent.context.cache_audit import CacheAudit
from agent.context.compaction_plan import Measure, WindowBudget
from agent.errors import AgentError
from agent.messages import PICTURE_TOKENS, Assistant, Message, System, ToolResult, User
from agent.model import Completion, Model, ModelRefused, Request
from agent.store import Store
from agent.store.transcript import Compaction, Entry

log = logging.getLogger(__name__)

MARK_TOKENS = 8  # a message's role and end marks in most templates
ASK_TOKENS = 160  # the question for a summary
TRIES = 4
ASK = (
    "<context>\n</context>\n"
    "[The program: this conversation is about to be shortened. Write the notes you need to go on from: "
    "what the person wants and decided, names, numbers, paths and results that matter, what is done, "
    "what is open. Plain lines, at most {words} words, nothing else.]"
)
_WORDS_PER_TOKEN = 0.6
_BLOCK = re.compile(r"\A<context>\nsummary of what was said before:\n.*?</context>\n", re.DOTALL)

Spill = Callable[[str, str, str], Awaitable[str]]
"""(chat, text, source of strangers' text in it) to the path, as the tools see it, of a file that the text was
written to; "" for none."""


@dataclass(frozen=True)
class Compactor:
    """`seconds` is how long `model` may take for a summary."""

    store: Store
    model: Model
    schemas: tuple[Mapping[str, Any], ...]
    spill: Spill
    audit: CacheAudit
    seconds: float

    async def __call__(
        self, chat: str, conversation: int, entries: Sequence[Entry], budget: WindowBudget
    ) -> bool:
        """Reduce the prompt to the budget's `low`; False when there was nothing to shorten."""
        size = await self._count(entries)
        tokens = measure(entries, size - budget.prefix)
        saved = {
            entry.id: await self.spill(chat, entry.message.text, entry.stranger)
            for entry in compaction_plan.to_save(entries)
            if isinstance(entry.message, ToolResult)
        }
        older = text = await self.store.transcript.summary(conversation)
        written: str | None = None  # by the model, once
        room = budget.low - budget.prefix
        for _ in range(TRIES):
            after = compaction_plan.plan(entries, room, budget.summary, tokens, saved)
            kept = {entry.id for entry in after}
            if leaving := [entry for entry in entries if entry.id not in kept]:
                if written is None:
                    shown = sent(without_newest(entries, size + ASK_TOKENS, budget, tokens))
                    written = await self._summary(chat, conversation, shown, budget.summary)
                messages = [entry.message for entry in leaving]
                text = written or summary_by_rule(older, messages, budget.summary * 3)
                after = await self._with_summary(conversation, after, text)
            now = await self._count(after)
            if now < budget.high:
                break
            room = room * 2 // 3
        before = {entry.id: entry.message for entry in entries}
        shortened = {e.id: e.message for e in after if e.message != before[e.id]}
        if not shortened and not leaving:
            return False
        change = Compaction(entries[-1].id, shortened, [entry.id for entry in leaving], text)
        if not await self.store.transcript.compact(conversation, change):
            return False
        self.audit.forget(conversation)
        log.info("conversation %d: shortened from %d to %d tokens", conversation, size, now)
        return True

    async def _count(self, entries: Sequence[Entry]) -> int:
        return await self.model.count(Request(sent(entries), self.schemas))

    async def _summary(
        self, chat: str, conversation: int, shown: tuple[Message, ...], tokens: int
    ) -> str:
        """The model's own summary of the messages; "" when there is none in time.

        The question follows the same prompt with the same tools, so that nothing else is prefilled.
        """
        ask = User(ASK.format(words=int(tokens * _WORDS_PER_TOKEN)))
        request = Request((*shown, ask), self.schemas, tool_choice="none", max_tokens=tokens)
        try:
            async with (
                asyncio.timeout(self.seconds),
                aclosing(self.model.stream(request)) as pieces,
            ):
                async for piece in pieces:
                    if isinstance(piece, Completion):
                        completion = piece
        except (AgentError, ModelRefused, TimeoutError) as error:
            log.warning("no summary by the model (%s): an extract serves", error or "too slow")
            return ""
        reuse = self.audit.compare(conversation, shown, completion)
        await self.store.usage.add(chat, conversation, None, completion, reuse, "summary")
        return completion.text.strip() if is_usable(completion) else ""

    async def _with_summary(
        self, conversation: int, entries: Sequence[Entry], text: str
    ) -> list[Entry]:
        """The entries with the summary, and the notes that no entry shows any more, in the first user message."""
        users = [entry.message for entry in entries if isinstance(entry.message, User)]
        if not users:
            return list(entries)
        words = [without_summary(message.text) for message in users]
        lines = await self.store.notes.shown_in(conversation)
        lost = [line for line in lines if not any(line in each for each in words)]
        first = with_summary(users[0], text, lost)
        return [replace(e, message=first) if e.message is users[0] else e for e in entries]


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
