"""One compaction: plan what leaves, have it summarised, check the count, write it down."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent import prompt
from agent.context import compaction_plan, summary
from agent.context.cache_audit import CacheAudit
from agent.context.compaction_plan import CompactionPlan, Measure, WindowBudget
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
    record: CacheAudit
    seconds: float

    async def __call__(
        self, chat: str, conversation: int, entries: Sequence[Entry], budget: WindowBudget
    ) -> bool:
        """Bring the prompt down to the budget's `low`; False when there was nothing to shorten."""
        size = await self._count(entries)
        tokens = measure(entries, size - budget.prefix)
        saved = {e.id: await self._saved(chat, e) for e in compaction_plan.to_save(entries)}
        room = budget.low - budget.prefix
        first = compaction_plan.plan(entries, room, budget.summary, tokens, saved)
        told = ""
        if first.leave:
            told = await self._by_model(chat, conversation, entries, size, budget, tokens)
        older = await self.store.transcript.summary(conversation)
        for _ in range(TRIES):
            plan = compaction_plan.plan(entries, room, budget.summary, tokens, saved)
            summary = told or _by_rule(older, entries, plan, budget)
            forms = await self._forms(conversation, entries, plan, summary)
            after = applied(entries, plan, forms)
            now = await self._count(after)
            if now < budget.high:
                break
            room = room * 2 // 3
        if not forms and not plan.leave:
            return False
        change = Compaction(entries[-1].id, forms, plan.leave, summary if plan.leave else older)
        if not await self.store.transcript.compact(conversation, change):
            return False
        self.record.forget(conversation)
        log.info("conversation %d: shortened from %d to %d tokens", conversation, size, now)
        return True

    async def _count(self, entries: Sequence[Entry]) -> int:
        return await self.model.count(Request(sent(entries), self.schemas))

    async def _saved(self, chat: str, entry: Entry) -> str:
        assert isinstance(entry.message, ToolResult)
        return await self.spill(chat, entry.message.text)

    async def _by_model(
        self,
        chat: str,
        conversation: int,
        entries: Sequence[Entry],
        size: int,
        budget: WindowBudget,
        tokens: Measure,
    ) -> str:
        room = budget.limit - budget.summary - ASK_TOKENS - size
        shown = sent(_without_newest(entries, -room, tokens))
        text, completion = await summary.by_model(
            self.model, shown, self.schemas, budget.summary, self.seconds
        )
        if completion:
            reuse = self.record.compare(conversation, shown, completion)
            await self.store.usage.add(chat, conversation, None, completion, reuse, "summary")
        return text

    async def _forms(
        self, conversation: int, entries: Sequence[Entry], plan: CompactionPlan, summary: str
    ) -> dict[int, Message]:
        """The shortened rows, the summary and the notes that would be lost in front of the first."""
        forms = dict(plan.shorten)
        if plan.head is None:
            return forms
        messages = {entry.id: entry.message for entry in applied(entries, plan, forms)}
        head = messages[plan.head]
        assert isinstance(head, User)
        said = [
            compaction_plan.without_summary(m.text)
            for m in messages.values()
            if isinstance(m, User)
        ]
        lines = await self.store.notes.shown_in(conversation)
        lost = [line for line in lines if not any(line in text for text in said)]
        forms[plan.head] = compaction_plan.with_summary(head, summary, lost)
        return forms


def sent(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """The prompt's messages as the model gets them."""
    return (System(prompt.system_text()), *(entry.message for entry in entries))


def applied(
    entries: Sequence[Entry], plan: CompactionPlan, forms: Mapping[int, Message]
) -> list[Entry]:
    left = set(plan.leave)
    return [replace(e, message=forms.get(e.id, e.message)) for e in entries if e.id not in left]


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


def _without_newest(entries: Sequence[Entry], excess: int, tokens: Measure) -> list[Entry]:
    """So many entries that the question for a summary still fits behind them."""
    kept = list(entries)
    while excess > 0 and kept:
        excess -= tokens(kept.pop().message)
    while kept and isinstance(kept[-1].message, Assistant) and kept[-1].message.calls:
        kept.pop()
    return kept


def _by_rule(
    older: str, entries: Sequence[Entry], plan: CompactionPlan, budget: WindowBudget
) -> str:
    left = set(plan.leave)
    leaving = [entry.message for entry in entries if entry.id in left]
    return summary.by_rule(older, leaving, budget.summary * 3) if leaving else older
