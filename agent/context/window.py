"""The window: how full a conversation's prompt is, and when it is compacted.

The server counts tokens exactly, if it can; it is asked only when the prompt's bytes, an upper bound of its
tokens, do not rule out that it is too full.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from agent import prompt
from agent.aio import move_on_when
from agent.context import compaction_plan
from agent.context.cache_audit import CacheAudit
from agent.context.compaction_plan import (
    WindowBudget,
    clip,
    estimate_bytes,
    is_usable,
    measure,
    sent,
    summary_by_rule,
    with_summary,
    without_newest,
    without_summary,
)
from agent.errors import AgentError, BackendAway, ContextFull
from agent.llm.queued_model import GpuQueue, QueuedModel
from agent.messages import Message, System, ToolResult, User
from agent.model import Completion, Model, ModelRefused, Request
from agent.store import Store
from agent.store.transcript import Compaction, Entry
from agent.store.turns import OpenTurn
from agent.store.usage import CacheReuse
from backend.protocol import IDLE, PERSON, Phrase

log = logging.getLogger(__name__)

SUMMARY_SECONDS = 60.0  # while a person waits
IDLE_SUMMARY_SECONDS = 600.0
ASK_TOKENS = 160  # the question for a summary
TRIES = 4
ASK = (
    "<context>\n</context>\n"
    "[The program: this conversation is about to be shortened. Write the notes you need to go on from: "
    "what the person wants and decided, names, numbers, paths and results that matter, what is done, "
    "what is open. Plain lines, at most {words} words, nothing else.]"
)
_WORDS_PER_TOKEN = 0.6

Spill = Callable[[str, str, str], Awaitable[str]]
"""(chat, text, source of strangers' text in it) to the path, as the tools see it, of a file that the text was
written to; "" for none."""


class WindowTooSmall(ContextFull):
    """The model's window cannot hold the fixed prefix and a conversation."""


async def nowhere(chat: str, text: str, stranger: str) -> str:  # noqa: ARG001 - the form of a Spill
    """Save no text in a file: the `Spill` of a program without workspaces."""
    return ""


async def whole() -> int | None:
    """Return None: the whole window of the model is useful."""
    return None


@dataclass
class ModelWindow:
    """`schemas` is the wire form of the tools; `useful` the profile's useful context in tokens; `read_ahead`
    whether the server prefills between turns what the template has changed in the next prompt."""

    store: Store
    model: Model
    queue: GpuQueue
    schemas: tuple[Mapping[str, Any], ...]
    spill: Spill = nowhere
    useful: Callable[[], Awaitable[int | None]] = whole
    read_ahead: bool = True
    audit: CacheAudit = field(default_factory=CacheAudit)
    _served: str = ""  # the chat of this process's last call: the server's slot is its own
    _prefixes: dict[int, int] = field(default_factory=dict)

    async def budget(self) -> WindowBudget:
        window = await self.model.window()
        limit = min(window, await self.useful() or window)
        if window not in self._prefixes:
            messages = System(prompt.system_text()), User("x")
            self._prefixes[window] = await self.model.count(Request(messages, self.schemas))
        return WindowBudget(limit, self._prefixes[window])

    async def check(self) -> WindowBudget:
        """The budget; a window that is too small is refused with the numbers (WindowTooSmall)."""
        budget = await self.budget()
        if budget.limit < budget.least:
            told = Phrase(
                "The window of {limit} tokens is too small: the system text and the tools take {prefix}, and"
                " at least {least} are needed. Choose a larger context, or fewer tools ([agent] tools).",
                limit=budget.limit,
                prefix=budget.prefix,
                least=budget.least,
            )
            raise WindowTooSmall(told)
        return budget

    async def fit(
        self, turn: OpenTurn, begins: Callable[[], None] | None = None, *, full: bool
    ) -> bool:
        """Compact the conversation if the next model call would not fit, or is known not to (`full`); return
        whether it did. `begins` is called before the compaction."""
        try:
            budget = await self.check()
            entries = await self.store.transcript.prompt(turn.conversation)
            if not full and await self._size(entries, budget, budget.hard) <= budget.hard:
                return False
            model = QueuedModel(self.model, self.queue, turn.chat, PERSON)
            if begins:
                begins()
            return await self._compact(
                turn.chat, turn.conversation, entries, budget, model, SUMMARY_SECONDS
            )
        except BackendAway:
            return False  # the model call itself will say so, and wait

    async def roomy(self, messages: Sequence[Message]) -> bool:
        """Whether a prompt of these messages, to which the system message comes, certainly fits the window; true
        while the backend is away."""
        try:
            budget = await self.check()
        except BackendAway:
            return True  # the model call itself will say so, and wait
        return budget.prefix + sum(map(estimate_bytes, messages)) <= budget.hard

    async def rest(self, chat: str) -> None:
        """Prepare the next turn: compact a prompt that is nearly full, or prefill what the template changed.

        Prefill that was interrupted by a more urgent call is resumed.
        """
        try:
            if await self._compact_if_high(chat):
                await self.warm(chat)
            elif self.read_ahead:
                while not await self.warm(chat, changed=True):
                    pass
        except (ContextFull, ModelRefused) as error:
            log.warning("%s could not be read ahead: %s", chat, error)

    async def _compact_if_high(self, chat: str) -> bool:
        """Compact a prompt beyond the budget's `high`; whether it was so full."""
        size, budget = await self.store.transcript.size(chat), await self.budget()
        if not size or size + budget.prefix <= budget.high:
            return False
        conversation, entries = await self.store.transcript.current(chat)
        if conversation is None or not entries:
            return False
        if await self._size(entries, budget, budget.high) <= budget.high:
            return False
        async with self.queue(chat, IDLE, None) as hold, move_on_when(hold.wanted):
            await self._compact(
                chat, conversation, entries, budget, self.model, IDLE_SUMMARY_SECONDS
            )
        return True

    async def warm(self, chat: str, *, changed: bool = False, save: bool = False) -> bool:
        """Have the server prefill the start of a chat's next request, as its template renders it then, up to
        the next message. False when it yielded to a more urgent call.

        With `changed` only if the server's cache differs from it: not if the prompt merely grew, nor if it
        would evict another chat's prompt. With `save` the backend then saves it to the disk.
        """
        conversation, entries = await self.store.transcript.current(chat)
        if conversation is None or not entries:
            return True
        known = await self.store.chats.get(chat)
        request = Request(sent(entries), self.schemas, thinking=known.thinking if known else None)
        ahead = await self.model.ahead(request, changed=changed)
        if changed and (ahead is None or (self._served != chat and not ahead.others_kept)):
            return True
        if ahead is None:
            request = replace(request, max_tokens=1)
        else:
            request = replace(request, prompt=ahead.prompt)
        async with (
            self.queue(chat, IDLE, None) as hold,
            move_on_when(hold.wanted),
            aclosing(self.model.stream(request)) as pieces,
        ):
            async for piece in pieces:
                if not isinstance(piece, Completion):
                    await hold.received(piece)  # a sign of life during a long prefill
                elif piece.finish_reason != "cut":
                    self._served = chat
                    piece = replace(piece, completion_tokens=0)  # the generated token is not used
                    self.audit.remember(conversation, request.messages, piece)
                    read = (piece.prompt_tokens or 0) - (piece.cached_tokens or 0)
                    reuse = CacheReuse(0, read)
                    await self.store.usage.add(chat, conversation, None, piece, reuse, "warm")
                    if save:
                        await hold.save()
            return True
        return False

    async def enter(self, chat: str, text: str, stranger: str = "") -> str:
        """Shorten text that alone would exceed the context window, and mark the cut; `stranger` names the
        source of untrusted text in it."""
        try:
            most = (await self.budget()).limit
        except BackendAway:
            return text  # the window is unknown; a compaction will cut it
        if len(text) <= most:
            return text
        return clip(text, most * 3 // 4, await self.spill(chat, text, stranger))

    async def record(
        self, turn: OpenTurn, request: Sequence[Message], completion: Completion
    ) -> None:
        self._served = turn.chat
        reuse = self.audit.compare(turn.conversation, request, completion)
        await self.store.usage.add(turn.chat, turn.conversation, turn.id, completion, reuse)

    async def _size(self, entries: Sequence[Entry], budget: WindowBudget, most: int) -> int:
        """Tokens of the prompt: exact, or an upper bound if that is not above `most`."""
        bound = budget.prefix + sum(estimate_bytes(entry.message) for entry in entries)
        if bound <= most:
            return bound
        return await self.model.count(Request(sent(entries), self.schemas))

    # -- one compaction: plan what leaves, have it summarised, count the result, store it

    async def _compact(
        self,
        chat: str,
        conversation: int,
        entries: Sequence[Entry],
        budget: WindowBudget,
        model: Model,
        seconds: float,
    ) -> bool:
        """Reduce the prompt to the budget's `low`; False when there was nothing to shorten.

        `seconds` is how long `model` may take for a summary.
        """
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
                    written = await self._summary(
                        chat, conversation, shown, budget.summary, model, seconds
                    )
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
        self,
        chat: str,
        conversation: int,
        shown: tuple[Message, ...],
        tokens: int,
        model: Model,
        seconds: float,
    ) -> str:
        """The model's own summary of the messages; "" when there is none in time.

        The question follows the same prompt with the same tools, so that nothing else is prefilled.
        """
        ask = User(ASK.format(words=int(tokens * _WORDS_PER_TOKEN)))
        request = Request((*shown, ask), self.schemas, tool_choice="none", max_tokens=tokens)
        try:
            async with (
                asyncio.timeout(seconds),
                aclosing(model.stream(request)) as pieces,
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


_NOBODY = User("")


async def text_tokens(window: ModelWindow, text: str) -> int:
    """Tokens that a text adds to a message."""
    if not text:
        return 0
    empty = await window.model.count(Request((System(""), _NOBODY)))
    return max(0, await window.model.count(Request((System(""), User(text)))) - empty)


async def token_breakdown(store: Store, window: ModelWindow, chat: str) -> dict[str, int]:
    """Tokens of the chat's next request by part, named for people; they add up to the window.

    In order: system text, the owner's instructions where there are any, each tool, notes, summary, transcript, free space and, if the model's useful
    context is smaller than its window, the rest of the window.
    """
    budget, count = await window.budget(), window.model.count
    empty = await count(Request((System(""), _NOBODY)))

    base, system = [
        await count(Request((System(text), _NOBODY)))
        for text in (prompt.base_text(), prompt.system_text())
    ]
    parts, before = {"system text": base - empty}, empty
    if system != base:
        parts["instructions"] = system - base
    for number, schema in enumerate(window.schemas, 1):
        # What each tool adds to those before it; the template's own text counts with the first.
        now = await count(Request((System(""), _NOBODY), window.schemas[:number]))
        parts[f"tool {schema['function']['name']}"] = now - before
        before = now
    conversation, entries = await store.transcript.current(chat)
    messages = sent(entries) if entries else (*sent(()), _NOBODY)
    whole = await count(Request(messages, window.schemas))
    notes = await store.notes.shown_in(conversation) if conversation else []
    users = [e.message.text for e in entries if isinstance(e.message, User)]
    summary = "".join(text[: len(text) - len(without_summary(text))] for text in users)
    for line in notes:
        summary = summary.replace(line + "\n", "")
    parts["notes"] = await text_tokens(window, "\n".join(notes))
    parts["summary"] = await text_tokens(window, summary)
    parts["transcript"] = max(0, whole - sum(parts.values()))
    parts["free"] = max(0, budget.limit - whole)
    if beyond := await window.model.window() - budget.limit:
        parts["beyond its useful context"] = beyond
    return parts
