"""One compaction: plan what leaves, have it summarised, check the count, write it down."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent import prompt
from agent.context import compaction_plan, summary
from agent.context.cache_audit import CacheAudit
from agent.context.compaction_plan import Measure, WindowBudget
from agent.messages import Assistant, Message, System, ToolResult, User
from agent.model import Model, Request
from agent.store import Store
from agent.store.transcript import Compaction, Entry

log = logging.getLogger(__name__)

IMAGE_TOKENS = 1_200
MARK_TOKENS = 8  # a message's role and end marks in most templates
ASK_TOKENS = 160  # the question for a summary
TRIES = 4

Spill = Callable[[str, str], Awaitable[str]]
"""(chat, text) to the path, as the tools see it, of a file that now holds the text; "" for none."""


@dataclass(frozen=True)
class Compactor:
    """Compactions by `model`, which may take `seconds` for a summary."""

    store: Store
    model: Model
    schemas: tuple[Mapping[str, Any], ...]
    spill: Spill
    audit: CacheAudit
    seconds: float

    async def __call__(
        self, chat: str, conversation: int, entries: Sequence[Entry], budget: WindowBudget
    ) -> bool:
        """Bring the prompt down to the budget's `low`; False when there was nothing to shorten."""
        size = await self._count(entries)
        tokens = measure(entries, size - budget.prefix)
        saved = {
            entry.id: await self.spill(chat, entry.message.text)
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
                    written = await self._written(chat, conversation, shown, budget.summary)
                messages = [entry.message for entry in leaving]
                text = written or summary.by_rule(older, messages, budget.summary * 3)
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

    async def _written(
        self, chat: str, conversation: int, shown: tuple[Message, ...], tokens: int
    ) -> str:
        """The model's summary; empty when there is none in time."""
        text, completion = await summary.by_model(
            self.model, shown, self.schemas, tokens, self.seconds
        )
        if completion:
            reuse = self.audit.compare(conversation, shown, completion)
            await self.store.usage.add(chat, conversation, None, completion, reuse, "summary")
        return text

    async def _with_summary(
        self, conversation: int, entries: Sequence[Entry], text: str
    ) -> list[Entry]:
        """The summary, and the notes that would be lost, in front of the first of the person's words."""
        users = [entry.message for entry in entries if isinstance(entry.message, User)]
        if not users:
            return list(entries)
        words = [summary.without_summary(message.text) for message in users]
        lines = await self.store.notes.shown_in(conversation)
        lost = [line for line in lines if not any(line in each for each in words)]
        first = summary.with_summary(users[0], text, lost)
        return [replace(e, message=first) if e.message is users[0] else e for e in entries]


def sent(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """The prompt's messages as the model gets them."""
    return (System(prompt.system_text()), *(entry.message for entry in entries))


def weight(message: Message) -> int:
    """Bytes of a message, and with that nearly always an upper bound of its tokens."""
    match message:
        case Assistant(text, calls, raw):
            body = raw or text + "".join(c.name + c.arguments + " " * 24 for c in calls)
            return len(body.encode("utf-8", "replace")) + MARK_TOKENS
        case User(text, images):
            return len(text.encode("utf-8", "replace")) + IMAGE_TOKENS * len(images) + MARK_TOKENS
        case _:
            return len(message.text.encode("utf-8", "replace")) + MARK_TOKENS


def measure(entries: Sequence[Entry], tokens: int) -> Measure:
    """Tokens of a message by its share of the transcript's exact count."""
    share = tokens / max(1, sum(weight(entry.message) for entry in entries))
    return lambda message: int(weight(message) * share) + 1


def without_newest(
    entries: Sequence[Entry], size: int, budget: WindowBudget, tokens: Measure
) -> list[Entry]:
    """So many entries that the question for a summary and its answer still fit behind them."""
    kept, excess = list(entries), size + budget.summary - budget.limit
    while excess > 0 and kept:
        excess -= tokens(kept.pop().message)
    while kept and isinstance(kept[-1].message, Assistant) and kept[-1].message.calls:
        kept.pop()
    return kept
