"""Where a chat's tokens go: by part, exact where the model's server can count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent import prompt
from agent.context import compaction_plan
from agent.context.compactor import sent
from agent.context.window import ModelWindow
from agent.messages import Message, System, User
from agent.model import Model, Request
from agent.store import Store


@dataclass(frozen=True, slots=True)
class Part:
    """`tokens` of the window; `name` as people read it ("system text", "tool bash", ...)."""

    name: str
    tokens: int


@dataclass(frozen=True, slots=True)
class TokenBreakdown:
    """Parts that sum up to `limit`: the last one is what is free."""

    chat: str
    limit: int
    parts: tuple[Part, ...]

    @property
    def used(self) -> int:
        return sum(part.tokens for part in self.parts if part.name != "free")


async def context(store: Store, window: ModelWindow, chat: str) -> TokenBreakdown:
    """What the chat's next request would hold: system text, each tool, notes, summary, transcript, free."""
    budget = await window.budget()
    count = _Counter(window.model)
    parts = [
        Part(
            "system text",
            await count.request((System(prompt.system_text()), _NOBODY))
            - await count.request((System(""), _NOBODY)),
        )
    ]
    parts += await _tools(count, window.schemas)
    conversation, entries = await store.transcript.current(chat)
    whole = await count.request(sent(entries) if entries else (*sent(()), _NOBODY), window.schemas)
    notes = await store.notes.shown_in(conversation) if conversation else []
    users = [e.message.text for e in entries if isinstance(e.message, User)]
    summary = "".join(
        text[: len(text) - len(compaction_plan.without_summary(text))] for text in users
    )
    for line in notes:
        summary = summary.replace(line + "\n", "")
    parts += [
        Part("notes", await count.text("\n".join(notes))),
        Part("summary", await count.text(summary)),
    ]
    parts.append(Part("transcript", max(0, whole - sum(part.tokens for part in parts))))
    parts.append(Part("free", max(0, budget.limit - whole)))
    return TokenBreakdown(chat, budget.limit, tuple(parts))


_NOBODY = User("")


@dataclass(frozen=True)
class _Counter:
    model: Model

    async def request(
        self, messages: Sequence[Message], schemas: tuple[Mapping[str, Any], ...] = ()
    ) -> int:
        return await self.model.count(Request(tuple(messages), schemas))

    async def text(self, text: str) -> int:
        """Tokens that a text adds to a message."""
        if not text:
            return 0
        with_text = await self.request((System(""), User(text)))
        return max(0, with_text - await self.request((System(""), _NOBODY)))


async def _tools(count: _Counter, schemas: tuple[Mapping[str, Any], ...]) -> list[Part]:
    """Each tool by what it adds to those before it; the template's own words count with the first."""
    parts, before = [], await count.request((System(""), _NOBODY))
    for number, schema in enumerate(schemas, 1):
        now = await count.request((System(""), _NOBODY), schemas[:number])
        parts.append(Part(f"tool {schema['function']['name']}", now - before))
        before = now
    return parts


def bar(context: TokenBreakdown, width: int = 24) -> str:
    """The window as one line of blocks: used, and free."""
    filled = min(width, round(width * context.used / context.limit))
    return "█" * filled + "░" * (width - filled)
