"""Where a chat's tokens go: by part, exact where the model's server can count."""

from agent import prompt
from agent.context.compactor import sent
from agent.context.summary import without_summary
from agent.context.window import ModelWindow
from agent.messages import System, User
from agent.model import Request
from agent.store import Store

_NOBODY = User("")


async def token_breakdown(store: Store, window: ModelWindow, chat: str) -> dict[str, int]:
    """Tokens of the chat's next request, by part as people read it, summing up to the window.

    In order: system text, each tool, notes, summary, transcript, and what is free.
    """
    budget, count = await window.budget(), window.model.count
    empty = await count(Request((System(""), _NOBODY)))

    async def added(text: str) -> int:
        """Tokens that a text adds to a message."""
        return max(0, await count(Request((System(""), User(text)))) - empty) if text else 0

    system = await count(Request((System(prompt.system_text()), _NOBODY)))
    parts, before = {"system text": system - empty}, empty
    for number, schema in enumerate(window.schemas, 1):
        # Each tool by what it adds to those before it; the template's own words go with the first.
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
    parts["notes"] = await added("\n".join(notes))
    parts["summary"] = await added(summary)
    parts["transcript"] = max(0, whole - sum(parts.values()))
    parts["free"] = max(0, budget.limit - whole)
    return parts
