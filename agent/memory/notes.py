"""A chat's memory as its tools and its person see it: remember, recall, forget, export."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from agent.errors import ToolError
from agent.memory.embeddings import SemanticSearch, fused
from agent.memory.search import rank, snippet
from agent.store import Store
from agent.store.notes import NOTE_CHARACTERS, SavedNote, normalize
from agent.store.search import SearchHit
from agent.store.transcript import TranscriptText
from agent.tools.context import RecallMatch

NOTES_MOST = 500  # per chat; beyond that somebody should tidy up


@dataclass(frozen=True)
class ChatMemory:
    """The desk's notes of one chat. `zone` is an IANA name, for dates; without `meaning` words alone count."""

    store: Store
    chat: str
    zone: str
    meaning: SemanticSearch | None = None

    async def remember(self, note: str, source: str) -> str:
        """Save a note; `source` is the turn it came from. The answer says what was saved."""
        text = normalize(note)
        if not text:
            raise ToolError("The note is empty. Say in one sentence what to keep.")
        if len(await self.store.notes.all(self.chat)) >= NOTES_MOST:
            raise ToolError(
                f"There are {NOTES_MOST} notes already. Ask the person to delete some with /memory."
            )
        saved, new = await self.store.notes.add(self.chat, text, turn=source)
        cut = (
            f" (cut to {NOTE_CHARACTERS} characters)"
            if len(" ".join(note.split())) > len(text)
            else ""
        )
        return f"Saved{cut}: {saved.text}" if new else f"Was saved before: {saved.text}"

    async def recall(self, query: str, limit: int) -> Sequence[RecallMatch]:
        """The best matches first, at most `limit`; none is an empty sequence."""
        found = await self.store.search.candidates(self.chat, query)
        best = rank(query, found, self.store.clock(), limit)
        if self.meaning:
            best = fused(best, await self.meaning.near(self.chat, query), limit)
        return [self._memory(one, query) for one in best]

    def _memory(self, one: SearchHit, query: str) -> RecallMatch:
        when = self._date(one.at)
        if one.kind == "note":
            return RecallMatch(one.text, when, "note")
        who = "the person" if one.kind == "user" else "you"
        return RecallMatch(f"{who}: {snippet(one.text, query)}", when, "conversation")

    async def export(self) -> dict[str, Any]:
        """Everything kept of the chat, as JSON: notes, conversations, settings. Times are ISO 8601."""
        chat = await self.store.chats.get(self.chat)
        notes = await self.store.notes.all(self.chat)
        conversations = await self.store.chats.conversations(self.chat, limit=1_000_000)
        return {
            "chat": self.chat,
            "exported_at": self._iso(self.store.clock()),
            "settings": dict(chat.settings) if chat else {},
            "notes": [self._note(note) for note in notes],
            "conversations": [
                {
                    "id": c.id,
                    "title": c.title,
                    "created_at": self._iso(c.created_at),
                    "messages": [self._said(s) for s in await self.store.transcript.texts(c.id)],
                }
                for c in reversed(conversations)
            ],
        }

    def _said(self, said: TranscriptText) -> dict[str, Any]:
        return {"id": said.id, "role": said.role, "at": self._iso(said.at), "text": said.text}

    def _note(self, note: SavedNote) -> dict[str, Any]:
        """`from` is the id of the message that it came from, null where it was written by hand."""
        return {
            "text": note.text,
            "pinned": note.pinned,
            "saved_at": self._iso(note.saved_at),
            "from": note.source,
        }

    def _iso(self, at: float) -> str:
        return datetime.fromtimestamp(at, ZoneInfo(self.zone)).isoformat(timespec="seconds")

    def _date(self, at: float) -> str:
        return self._iso(at)[:10]


def as_json(export: dict[str, Any]) -> str:
    return json.dumps(export, ensure_ascii=False, indent=1)


def markdown(export: dict[str, Any]) -> str:
    """An export as a document that people read; tool output in fences that it cannot close."""
    lines = [f"# {export['chat']}", "", f"Exported {export['exported_at']}.", ""]
    if export["notes"]:
        lines += [
            "## Notes",
            "",
            *(f"- {n['text']} ({n['saved_at'][:10]})" for n in export["notes"]),
            "",
        ]
    for conversation in export["conversations"]:
        lines += [f"## {conversation['title'] or 'Conversation'}", ""]
        for said in conversation["messages"]:
            lines += [*_paragraph(said), ""]
    return "\n".join(lines)


def _paragraph(said: dict[str, str]) -> list[str]:
    who = {"user": "You", "assistant": "Voltaire"}.get(said["role"], "Tool")
    if said["role"] != "tool":
        return [f"**{who}**, {said['at'][:16].replace('T', ' ')}", "", said["text"]]
    fence = "`" * max(3, 1 + max((len(run) for run in _ticks(said["text"])), default=0))
    return [f"**{who}**", "", fence, said["text"], fence]


def _ticks(text: str) -> list[str]:
    return ["`" * len(run) for run in "".join(c if c == "`" else " " for c in text).split()]
