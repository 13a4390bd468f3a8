"""What a turn leaves behind besides files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from agent.events import CallRefused, Event, ModelFinished, ToolFinished
from agent.tools.context import RecallMatch


@dataclass
class Traces:
    """The desk's notes, jobs and courier, and the turn's listener, all keeping what they get."""

    notes: list[str] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    refused: int = 0
    asked: int = 0

    async def remember(self, note: str, source: str) -> str:
        self.notes.append(note)
        return f"Saved: {note}"

    async def recall(self, query: str, limit: int) -> Sequence[RecallMatch]:
        words = query.lower().split()
        hits = [n for n in self.notes if any(word in n.lower() for word in words)]
        return [RecallMatch(note, "2026-01-05") for note in hits[:limit]]

    async def schedule(self, when: str, task: str, kind: str, approve: Any) -> str:
        self.planned.append(f"{when} {task}")
        return f"Planned: {task} ({when})"

    async def send_file(self, file: BinaryIO, name: str, caption: str) -> None:
        self.sent.append(name)

    async def send_album(self, files: Sequence[tuple[BinaryIO, str]], caption: str) -> None:
        self.sent += [name for _, name in files]

    def hear(self, event: Event) -> None:
        match event:
            case ToolFinished(name=name, ok=True):
                self.ran.append(name)
            case CallRefused():
                self.refused += 1
            case ModelFinished():
                self.asked += 1
