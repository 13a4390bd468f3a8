"""Turns: taken from the inbox, written step by step, ended together with their reply."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.events import Reason, TokenUsage
from agent.messages import Message, ToolResult, User
from agent.store import chats, inbox, outbox, transcript
from agent.store.chats import Clock
from agent.store.codec import storable
from agent.store.database import Database, Tx
from agent.store.inbox import Kind, Waiting
from agent.store.transcript import Entry


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn that has begun and not ended; `resumed` is how often it was taken up without headway."""

    id: str
    chat: str
    conversation: int
    kind: Kind
    source: str
    started_at: float
    resumed: int = 0


@dataclass(frozen=True, slots=True)
class Due:
    """What stands before a chat: its own time zone ("": none), the turn that was cut off, and
    the messages that wait, in order."""

    zone: str
    unfinished: OpenTurn | None
    waiting: tuple[Waiting, ...]


@dataclass(frozen=True, slots=True)
class RenderedMessage:
    """A person's message as the model gets it.

    `head` is the program's part in front of the words. `notes` are (note, the
    line that shows it) new in it.
    """

    head: str
    message: User
    notes: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Steps:
    """What stands in the prompt of a turn, and ids of its calls that started but did not finish."""

    entries: tuple[Entry, ...]
    started: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a turn ended; `payloads` go to the outbox in the same transaction."""

    message: Message | None
    text: str
    reason: Reason
    usage: TokenUsage
    payloads: Sequence[str] = ()
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """A turn as it is on record: what stood before it, its own messages in full, how it ended.

    `compacted` counts how often its conversation was shortened, before or since:
    what stood before it may then have been longer.
    """

    id: str
    chat: str
    started_at: float
    reason: str
    before: tuple[Message, ...]
    own: tuple[Message, ...]
    compacted: int


@dataclass(frozen=True)
class TurnTable:
    database: Database
    clock: Clock

    async def begin(self, id: str, rows: Sequence[Waiting], told: RenderedMessage) -> OpenTurn:
        """Take waiting rows into a new turn of the chat's current conversation."""
        first, now = rows[0].incoming, self.clock()
        async with self.database.write() as tx:
            conversation = await chats.current(tx, first.chat, now)
            await tx.run(
                "INSERT INTO turns (id, chat, conversation, kind, source, started_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                id,
                first.chat,
                conversation,
                first.kind,
                first.source,
                now,
            )
            turn = OpenTurn(id, first.chat, conversation, first.kind, first.source, now)
            await _tell(tx, turn, rows, told, now)
        return turn

    async def tell(self, turn: OpenTurn, rows: Sequence[Waiting], told: RenderedMessage) -> None:
        """Take rows that arrived meanwhile into a turn that runs."""
        async with self.database.write() as tx:
            await _tell(tx, turn, rows, told, self.clock())

    async def due(self, chat: str, sources: Collection[str]) -> Due:
        """What is to be done in a chat for those sources."""
        async with self.database.read() as tx:
            zones, turns, rows = await tx.each(
                ("SELECT timezone FROM chats WHERE key = ?", (chat,)),
                (_UNFINISHED, (chat,)),
                (inbox.WAITING, (chat, json.dumps(list(sources)))),
            )
        turn = OpenTurn(*turns[0]) if turns else None
        return Due(zones[0][0] if zones else "", turn, tuple(inbox.said(rows)))

    async def unfinished(self, chat: str) -> OpenTurn | None:
        """The chat's turn that was cut off, oldest first."""
        async with self.database.read() as tx:
            row = await tx.one(_UNFINISHED, chat)
        return OpenTurn(*row) if row else None

    async def chats_unfinished(self, sources: Collection[str]) -> list[str]:
        async with self.database.read() as tx:
            rows = await tx.all(
                "SELECT chat FROM turns WHERE state = 'open' AND source IN"
                " (SELECT value FROM json_each(?)) GROUP BY chat ORDER BY min(started_at)",
                json.dumps(list(sources)),
            )
        return [row[0] for row in rows]

    async def resume(self, turn: OpenTurn) -> int:
        """Count that it is taken up again; how often so far without a new step in between."""
        async with self.database.write() as tx:
            return int(await tx.value(_RESUME, turn.id))

    async def steps(self, turn: OpenTurn) -> Steps:
        async with self.database.read() as tx:
            rows, runs = await tx.each(
                (transcript.PROMPT, (turn.conversation,)), (_RUNS, (turn.id,))
            )
        return Steps(tuple(transcript.entries(rows)), frozenset(run[0] for run in runs))

    async def add(self, turn: OpenTurn, message: Message, *, own: bool = False) -> None:
        """Append a step; a tool's result also ends its run."""
        now = self.clock()
        async with self.database.write() as tx:
            if isinstance(message, ToolResult):
                await tx.run(_FINISHED, turn.id, message.call, now)
            await transcript.append(tx, turn.conversation, turn.id, message, now, own=own)

    async def started(self, turn: OpenTurn, call: str) -> None:
        async with self.database.write() as tx:
            await tx.run(
                "INSERT INTO tool_runs (turn, call, started_at) VALUES (?1, ?2, ?3)"
                " ON CONFLICT DO UPDATE SET started_at = ?3, finished_at = NULL",
                turn.id,
                call,
                self.clock(),
            )

    async def end(self, turn: OpenTurn, ended: Ended) -> list[int]:
        """Last step, reply and the inbox rows' end in one transaction; ids of the outbox rows."""
        now = self.clock()
        async with self.database.write() as tx:
            open_still = await tx.all(
                "UPDATE turns SET state = 'done', reason = ?, text = ?, prompt_tokens = ?,"
                " cached_tokens = ?, completion_tokens = ?, ended_at = ?"
                " WHERE id = ? AND state = 'open' RETURNING 1",
                ended.reason,
                storable(ended.text),
                ended.usage.prompt_tokens,
                ended.usage.cached_tokens,
                ended.usage.completion_tokens,
                now,
                turn.id,
            )
            if not open_still:
                return []
            if ended.message is not None:
                await transcript.append(tx, turn.conversation, turn.id, ended.message, now)
            await inbox.done(tx, turn.id)
            return await outbox.put(
                tx, turn.chat, ended.payloads, now, silent=ended.silent, turn=turn.id
            )

    async def put_back(self, turn: OpenTurn, *, keep: bool) -> None:
        """End a turn unanswered; what it was to answer waits again, or is given up."""
        async with self.database.write() as tx:
            await tx.run(
                "UPDATE turns SET state = 'done', reason = 'cancelled', ended_at = ?"
                " WHERE id = ? AND state = 'open'",
                self.clock(),
                turn.id,
            )
            state = "waiting" if keep else "done"
            await tx.run("UPDATE inbox SET state = ? WHERE turn = ?", state, turn.id)

    async def last(self, chat: str) -> tuple[OpenTurn, str] | None:
        """The chat's newest ended turn in its current conversation, and its reply."""
        async with self.database.read() as tx:
            row = await tx.one(
                f"SELECT {_COLUMNS}, text FROM turns WHERE conversation ="
                " (SELECT conversation FROM chats WHERE key = ?) AND state = 'done'"
                " ORDER BY started_at DESC, id DESC LIMIT 1",
                chat,
            )
        return (OpenTurn(*row[:7]), row[7]) if row else None

    async def recorded(self, id: str) -> Recorded | None:
        async with self.database.read() as tx:
            row = await tx.one(
                "SELECT turns.id, turns.chat, started_at, reason, conversation, compacted FROM turns"
                " JOIN conversations ON conversations.id = conversation WHERE turns.id = ?",
                id,
            )
            if row is None:
                return None
            number, chat, at, reason, conversation, compacted = row
            own = await transcript.of_turn(tx, id)
            before = await transcript.before(tx, conversation, id)
        return Recorded(number, chat, at, reason, tuple(before), tuple(own), compacted)

    async def undo(self, turn: OpenTurn) -> bool:
        """Cut the tail for another try: the turn's messages leave the prompt and its
        inbox rows wait once more. False when it was retried already or nothing is left to answer."""
        now = self.clock()
        async with self.database.write() as tx:
            rows = await inbox.of_turn(tx, turn.id)
            again = [row for row in rows if await inbox.add(tx, _again(row, turn), now)]
            if again:
                await tx.run("UPDATE transcript SET live = 0 WHERE turn = ?", turn.id)
                await transcript.unshow(tx, turn.conversation)
        return bool(again)


_COLUMNS = "id, chat, conversation, kind, source, started_at, resumed"
_UNFINISHED = f"SELECT {_COLUMNS} FROM turns WHERE chat = ? AND state = 'open' ORDER BY started_at"
_RUNS = "SELECT call FROM tool_runs WHERE turn = ? AND finished_at IS NULL"
_RESUME = """
UPDATE turns SET
    resumed = CASE WHEN (SELECT count(*) FROM transcript WHERE turn = ?1) > steps THEN 1 ELSE resumed + 1 END,
    steps = (SELECT count(*) FROM transcript WHERE turn = ?1)
WHERE id = ?1 RETURNING resumed
"""
_FINISHED = """
INSERT INTO tool_runs (turn, call, started_at, finished_at) VALUES (?1, ?2, ?3, ?3)
ON CONFLICT DO UPDATE SET finished_at = ?3
"""


def _again(row: Waiting, turn: OpenTurn) -> inbox.Incoming:
    return replace(row.incoming, update=f"{row.incoming.update}~{turn.id}", settle_s=0.0)


async def _tell(
    tx: Tx, turn: OpenTurn, rows: Sequence[Waiting], told: RenderedMessage, now: float
) -> None:
    await transcript.append(tx, turn.conversation, turn.id, told.message, now, head=told.head)
    await transcript.title(tx, turn.conversation, told.message, told.head, now)
    await inbox.take(tx, turn.id, [row.id for row in rows])
    shown: list[tuple[Any, ...]] = [(turn.conversation, note, line) for note, line in told.notes]
    await tx.many("INSERT OR REPLACE INTO notes_shown VALUES (?, ?, ?)", shown)
