"""What was said, append-only, and the part of it that stands in the prompt.

Positions only grow. A row leaves the prompt (`live`) or is shortened there
(`short`), but its words stay for ever, to be searched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.messages import Message, User
from agent.store import codec
from agent.store.chats import Clock
from agent.store.database import Database, Tx


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the prompt: `message` as it is sent, `turn` whose step it is.

    `own` marks the program's words in a user message (advice, a repair).
    """

    id: int
    turn: str
    message: Message
    at: float = 0.0
    own: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """A person's or the model's words in full, for export and recall; `at` is UNIX seconds."""

    id: int
    conversation: int
    role: str
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class Compaction:
    """What changes in a prompt. `seen` is the id of its last row when that was decided."""

    seen: int
    shorten: Mapping[int, Message]
    leave: Sequence[int]
    summary: str


@dataclass(frozen=True)
class TranscriptTable:
    database: Database
    clock: Clock

    async def prompt(self, conversation: int) -> list[Entry]:
        """The rows that stand in the prompt, in order; without the fixed prefix."""
        async with self.database.read() as tx:
            return await prompt(tx, conversation)

    async def current(self, chat: str) -> tuple[int | None, list[Entry]]:
        """The chat's current conversation and its prompt rows."""
        async with self.database.read() as tx:
            conversation = await tx.value("SELECT conversation FROM chats WHERE key = ?", chat)
            return conversation, await prompt(tx, conversation) if conversation else []

    async def size(self, chat: str) -> int:
        """At least as many as the bytes of the current conversation's prompt rows; 0 without any."""
        async with self.database.read() as tx:
            return int(await tx.value(_SIZE, chat, ROW_BYTES, CALL_BYTES, IMAGES_BYTES) or 0)

    async def said(self, conversation: int) -> list[Said]:
        """Everything ever said in a conversation, tool output included."""
        async with self.database.read() as tx:
            rows = await tx.all(
                "SELECT id, conversation, role, text, at FROM transcript WHERE conversation = ?"
                " ORDER BY position",
                conversation,
            )
        return [Said(*row) for row in rows]

    async def compact(self, conversation: int, compaction: Compaction) -> bool:
        """Shorten the prompt in one transaction; False when it has grown since it was looked at."""
        async with self.database.write() as tx:
            last = await tx.value(
                "SELECT max(id) FROM transcript WHERE conversation = ?", conversation
            )
            if last != compaction.seen:
                return False
            await leave(tx, compaction.leave)
            for id, message in compaction.shorten.items():
                await shorten(tx, id, message)
            await tx.run(
                "UPDATE conversations SET summary = ?, compacted = compacted + 1 WHERE id = ?",
                codec.storable(compaction.summary),
                conversation,
            )
            await unshow(tx, conversation)
        return True

    async def summary(self, conversation: int) -> str:
        """Of what compactions took out so far; empty before the first."""
        async with self.database.read() as tx:
            return str(
                await tx.value("SELECT summary FROM conversations WHERE id = ?", conversation) or ""
            )

    async def messages(self, conversation: int) -> list[Message]:
        """Everything ever said as messages, none shortened."""
        async with self.database.read() as tx:
            rows = await tx.all(
                "SELECT role, head || text, extra FROM transcript WHERE conversation = ?"
                " ORDER BY position",
                conversation,
            )
        return [codec.message(*row) for row in rows]


ROW_BYTES = 16  # more than a message's role and end marks
CALL_BYTES = 32  # more than the marks of a call
IMAGES_BYTES = 8_192  # more than pictures count for, however small their files
PROMPT = """
SELECT id, coalesce(turn, ''), role, head, text, extra, short, at, own FROM transcript
WHERE conversation = ? AND live = 1 ORDER BY position
"""
_SIZE = """
SELECT sum(length(CAST(coalesce(short, head || text) AS BLOB))
    + coalesce(length(CAST(extra AS BLOB)), 0) + ?2
    + ?3 * coalesce(json_array_length(coalesce(json_extract(short, '$[1]'), extra), '$.calls'), 0)
    + iif(role = 'user' AND extra IS NOT NULL, ?4, 0))
FROM transcript WHERE live = 1 AND conversation = (SELECT conversation FROM chats WHERE key = ?1)
"""


async def prompt(tx: Tx, conversation: int) -> list[Entry]:
    return entries(await tx.all(PROMPT, conversation))


def entries(rows: Sequence[tuple[Any, ...]]) -> list[Entry]:
    """The rows that PROMPT gives."""
    return [_entry(row) for row in rows]


async def of_turn(tx: Tx, turn: str) -> list[Message]:
    """A turn's messages, none shortened."""
    rows = await tx.all(
        "SELECT role, head || text, extra FROM transcript WHERE turn = ? ORDER BY position", turn
    )
    return [codec.message(*row) for row in rows]


async def before(tx: Tx, conversation: int, turn: str) -> list[Message]:
    """What stands in the prompt before a turn."""
    first = await tx.value("SELECT min(id) FROM transcript WHERE turn = ?", turn)
    return [e.message for e in await prompt(tx, conversation) if first and e.id < first]


def _entry(row: tuple[Any, ...]) -> Entry:
    number, turn, role, head, text, extra, short, at, own = row
    if short is not None:
        return Entry(number, turn, codec.from_short(role, short), at, bool(own))
    return Entry(number, turn, codec.message(role, head + text, extra), at, bool(own))


async def append(
    tx: Tx,
    conversation: int,
    turn: str,
    message: Message,
    now: float,
    *,
    head: str = "",
    own: bool = False,
) -> None:
    """Add a message to the end. `head` is the part of a person's message that the program wrote."""
    role, text, extra = codec.columns(message)
    if head:
        text = text.removeprefix(codec.storable(head))
    await tx.run(
        "INSERT INTO transcript (conversation, position, turn, role, head, text, extra, own, at)"
        " VALUES (?1, (SELECT coalesce(max(position), 0) + 1 FROM transcript WHERE conversation = ?1),"
        " ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        conversation,
        turn,
        role,
        codec.storable(head),
        text,
        extra,
        own,
        now,
    )


async def shorten(tx: Tx, id: int, message: Message) -> None:
    """Let another form stand in the prompt from now on."""
    await tx.run("UPDATE transcript SET short = ? WHERE id = ?", codec.shortened(message), id)


async def leave(tx: Tx, ids: Sequence[int]) -> None:
    """Take rows out of the prompt."""
    await tx.many("UPDATE transcript SET live = 0 WHERE id = ?", [(id,) for id in ids])


async def title(tx: Tx, conversation: int, message: User, head: str, now: float) -> None:
    """Name a conversation by its first words; mark its use."""
    words = " ".join(message.text.removeprefix(head).split())[:80]
    await tx.run(
        "UPDATE conversations SET active_at = ?, title = CASE title WHEN '' THEN ? ELSE title END"
        " WHERE id = ?",
        now,
        codec.storable(words),
        conversation,
    )


async def unshow(tx: Tx, conversation: int) -> None:
    """Notes whose line has gone out of the prompt are to be shown again."""
    await tx.run(_UNSHOW, conversation)


_UNSHOW = """
DELETE FROM notes_shown WHERE conversation = ?1 AND NOT EXISTS (
    SELECT 1 FROM transcript WHERE conversation = ?1 AND live = 1 AND role = 'user'
    AND instr(coalesce(json_extract(short, '$[0]'), head), notes_shown.line) > 0)
"""
