"""A chat's memory as its tools and its person use it: remember, recall, export."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent.errors import ToolError
from agent.memory.search import SemanticSearch, fused, rank, snippet
from agent.store import Store
from agent.store.notes import NOTE_CHARACTERS, normalize
from agent.timezones import local_time
from agent.tools.context import RecallMatch

NOTES_MOST = 500  # per chat


@dataclass(frozen=True)
class ChatMemory:
    """One chat's notes and what was said in it. `zone` is an IANA name, for dates; without `semantic_search` recall goes by words alone."""

    store: Store
    chat: str
    zone: str
    semantic_search: SemanticSearch | None = None

    async def remember(self, note: str, source: str, stranger: str = "") -> str:
        """Save a note and return a sentence that says so; `source` is the turn it came from, `stranger` names
        the strangers' text in its chat."""
        text = normalize(note)
        if not text:
            raise ToolError("The note is empty. Say in one sentence what to keep.")
        if len(await self.store.notes.all(self.chat)) >= NOTES_MOST:
            raise ToolError(
                f"There are {NOTES_MOST} notes already. Ask the person to delete some with /memory."
            )
        saved, new = await self.store.notes.add(self.chat, text, turn=source, stranger=stranger)
        if not new:
            return f"Was saved before: {saved.text}"
        cut = len(" ".join(note.split())) > len(text)
        return f"Saved{f' (cut to {NOTE_CHARACTERS} characters)' if cut else ''}: {saved.text}"

    async def recall(self, query: str, limit: int) -> Sequence[RecallMatch]:
        """The best matches first, at most `limit`."""
        found = await self.store.search.candidates(self.chat, query)
        best = rank(found, self.store.clock(), limit)
        if self.semantic_search:
            best = fused(best, await self.semantic_search.nearest(self.chat, query), limit)
        matches = []
        for hit in best:
            when = self._iso(hit.at)[:10]
            if hit.kind == "note":
                matches.append(RecallMatch(hit.text, when, "note", hit.stranger))
            else:
                who = "the person" if hit.kind == "user" else "you"
                text = f"{who}: {snippet(hit.text, query)}"
                matches.append(RecallMatch(text, when, "conversation", hit.stranger))
        return matches

    async def export(self) -> dict[str, Any]:
        """All that is stored of the chat, ready for JSON: notes, conversations, settings. Times are ISO 8601.

        A note's `from` is the id of the message it came from, null for one written by hand.
        """
        chat = await self.store.chats.get(self.chat)
        conversations = await self.store.chats.conversations(self.chat, limit=1_000_000)
        return {
            "chat": self.chat,
            "exported_at": self._iso(self.store.clock()),
            "settings": dict(chat.settings) if chat else {},
            "notes": [
                {
                    "text": note.text,
                    "pinned": note.pinned,
                    "saved_at": self._iso(note.saved_at),
                    "from": note.source,
                }
                for note in await self.store.notes.all(self.chat)
            ],
            "conversations": [
                {
                    "id": c.id,
                    "title": c.title,
                    "created_at": self._iso(c.created_at),
                    "messages": [
                        {"id": t.id, "role": t.role, "at": self._iso(t.at), "text": t.text}
                        for t in await self.store.transcript.texts(c.id)
                    ],
                }
                for c in reversed(conversations)
            ],
        }

    def _iso(self, at: float) -> str:
        return local_time(at, self.zone).isoformat(timespec="seconds")


def as_json(export: dict[str, Any]) -> str:
    return json.dumps(export, ensure_ascii=False, indent=1)


def markdown(export: dict[str, Any]) -> str:
    """An export as a document for people; tool output stands in fences that it cannot close."""
    lines = [f"# {export['chat']}", "", f"Exported {export['exported_at']}.", ""]
    if notes := export["notes"]:
        lines += ["## Notes", ""]
        lines += [f"- {note['text']} ({note['saved_at'][:10]})" for note in notes]
        lines.append("")
    for conversation in export["conversations"]:
        lines += [f"## {conversation['title'] or 'Conversation'}", ""]
        for message in conversation["messages"]:
            text, at = message["text"], message["at"][:16].replace("T", " ")
            if message["role"] == "tool":
                ticks = max(map(len, re.findall("`+", text)), default=0)
                fence = "`" * max(3, ticks + 1)
                lines += ["**Tool**", "", fence, text, fence, ""]
            else:
                who = "You" if message["role"] == "user" else "Voltaire"
                lines += [f"**{who}**, {at}", "", text, ""]
    return "\n".join(lines)
