"""Every message of a conversation, append-only, byte for byte, and which of them stand in the prompt.

Positions only grow. A row leaves the prompt (`live` = 0) or is shortened there (`short`), but its text
stays for searches.

A message's columns are (role, text, extra): `extra` is JSON of all but the text (calls, the call
answered, pictures by hash), or None. A shortened form is JSON [text, extra].
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from agent.messages import PICTURE_TOKENS, Assistant, Message, ToolCall, ToolResult, User
from agent.store import pictures, taints
from agent.store.database import Database, Row, Transaction, columns, storable
from agent.trust import Origin, named

Columns = tuple[str, str, str | None]


@dataclass(frozen=True)
class Extra:
    images: tuple[str, ...] = ()
    calls: tuple[tuple[str, str, str], ...] = ()  # id, name, arguments
    raw: str = ""
    thought: str = ""
    words: str = ""
    call: str | None = None
    name: str | None = None


EXTRA = TypeAdapter(Extra)
SHORT: TypeAdapter[tuple[str, str | None]] = TypeAdapter(tuple[str, str | None])


def message_columns(message: Message) -> Columns:
    """The columns of a message, with "?" for lone surrogates."""
    match message:
        case User(text, images):
            return (
                "user",
                storable(text),
                _json({"images": [*map(pictures.reference, images)]} if images else {}),
            )
        case Assistant(text, calls, raw, thought, words):
            listed = [[call.id, call.name, call.arguments] for call in calls]
            fields = {"calls": listed, "raw": raw, "thought": thought, "words": words}
            return "assistant", storable(text), _json({k: v for k, v in fields.items() if v})
        case ToolResult(call, name, text):
            return "tool", storable(text), _json({"call": call, "name": name})
        case _:
            raise ValueError("the system message is not part of a transcript")


def decoded_message(role: str, text: str, extra: str | None) -> Message:
    """The message of these columns; ValueError when no message was stored so."""
    fields = EXTRA.validate_json(extra) if extra else Extra()
    if role == "user":
        return User(text, fields.images)
    if role == "tool":
        if fields.call is None or fields.name is None:
            raise ValueError("a tool's result without its call")
        return ToolResult(fields.call, fields.name, text)
    calls = tuple(ToolCall(*call) for call in fields.calls)
    return Assistant(text, calls, fields.raw, fields.thought, fields.words)


def shortened(message: Message) -> str:
    _, text, extra = message_columns(message)
    return json.dumps([text, extra], ensure_ascii=False)


def _json(fields: dict[str, Any]) -> str | None:
    return storable(json.dumps(fields, ensure_ascii=False)) if fields else None


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the prompt: `message` as it is sent, a step of `turn`.

    `own` marks a user message that the program wrote (advice, a repair). `stranger` names the source of
    strangers' text in it.
    """

    id: int
    turn: str
    message: Message
    own: bool = False
    stranger: str = ""


@dataclass(frozen=True, slots=True)
class TranscriptText:
    """The text of one message in full, for export and recall; `at` is UNIX seconds."""

    id: int
    role: str
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class Compaction:
    """Rows of a prompt to `shorten` and to `remove`, decided when `last_id` was its last row."""

    last_id: int
    shorten: Mapping[int, Message]
    remove: Sequence[int]
    summary: str


@dataclass(frozen=True)
class TranscriptTable:
    database: Database

    async def prompt(self, conversation: int) -> list[Entry]:
        """The rows that stand in the prompt, in order, without the fixed prefix."""
        return await entries(self.database, await self.database.all(PROMPT, conversation))

    async def current(self, chat: str) -> tuple[int | None, list[Entry]]:
        """The chat's current conversation and its prompt rows."""
        async with self.database.read() as tx:
            known, rows = await tx.batch(
                ("SELECT conversation FROM chats WHERE key = ?", (chat,)), (_CURRENT, (chat,))
            )
        return known[0][0] if known else None, await entries(self.database, rows)

    async def size(self, chat: str) -> int:
        """An upper bound of the bytes of the current conversation's prompt; 0 without rows."""
        size = await self.database.value(_SIZE, chat, ROW_BYTES, CALL_BYTES, IMAGE_BYTES)
        return int(size or 0)

    async def texts(self, conversation: int) -> list[TranscriptText]:
        """The texts of all messages of a conversation, tool output included."""
        sql = f"SELECT {columns(TranscriptText)} FROM transcript WHERE conversation = ? ORDER BY position"
        return [TranscriptText(*row) for row in await self.database.all(sql, conversation)]

    async def compact(self, conversation: int, compaction: Compaction) -> bool:
        """Shorten the prompt in one transaction; False when it has grown since that was decided."""
        async with self.database.write() as tx:
            sql = "SELECT max(id) FROM transcript WHERE conversation = ?"
            last = await tx.value(sql, conversation)
            if last != compaction.last_id:
                return False
            removed = [(id,) for id in compaction.remove]
            await tx.many("UPDATE transcript SET live = 0 WHERE id = ?", removed)
            shorter = [(shortened(m), id) for id, m in compaction.shorten.items()]
            await tx.many("UPDATE transcript SET short = ? WHERE id = ?", shorter)
            sql = "UPDATE conversations SET summary = ?, compacted = compacted + 1 WHERE id = ?"
            await tx.run(sql, storable(compaction.summary), conversation)
            await forget_hidden_notes(tx, conversation)
            await pictures.forget_hidden(tx, conversation)
        return True

    async def summary(self, conversation: int) -> str:
        """The summary of what compactions have removed; empty before the first."""
        sql = "SELECT summary FROM conversations WHERE id = ?"
        return str(await self.database.value(sql, conversation) or "")


ROW_BYTES = 16  # more than a message's role and end marks
CALL_BYTES = 32  # more than the marks of a call
IMAGE_BYTES = PICTURE_TOKENS + 50
PROMPT = """
SELECT id, coalesce(turn, ''), role, head, text, extra, short, own, stranger FROM transcript
WHERE conversation = ? AND live = 1 ORDER BY position
"""
_CURRENT = PROMPT.replace("?", "(SELECT conversation FROM chats WHERE key = ?)")
_SIZE = """
SELECT sum(length(CAST(coalesce(short, head || text) AS BLOB))
    + coalesce(length(CAST(extra AS BLOB)), 0) + ?2
    + ?3 * coalesce(json_array_length(coalesce(json_extract(short, '$[1]'), extra), '$.calls'), 0)
    + ?4 * coalesce(json_array_length(coalesce(json_extract(short, '$[1]'), extra), '$.images'), 0))
FROM transcript WHERE live = 1 AND conversation = (SELECT conversation FROM chats WHERE key = ?1)
"""


OF_TURN = "SELECT id, role, head || text, extra FROM transcript WHERE turn = ? ORDER BY position"


async def entries(database: Database, rows: Sequence[Row]) -> list[Entry]:
    """The entries of the rows of PROMPT."""
    found = [_entry(row) for row in rows]
    if any(isinstance(entry.message, User) and entry.message.images for entry in found):
        shown = await pictures.resolved(database, [entry.message for entry in found])
        found = [replace(e, message=message) for e, message in zip(found, shown, strict=True)]
    return found


async def messages(database: Database, rows: Sequence[Row]) -> list[Message]:
    """The messages of the rows of OF_TURN, none shortened."""
    return await pictures.resolved(database, [decoded_message(*row[1:]) for row in rows])


def _entry(row: Row) -> Entry:
    number, turn, role, head, text, extra, short, own, stranger = row
    text = head + text
    if short is not None:
        text, extra = SHORT.validate_json(short)
    return Entry(number, turn, decoded_message(role, text, extra), bool(own), stranger)


async def append(
    tx: Transaction,
    conversation: int,
    turn: str,
    message: Message,
    *,
    head: str = "",
    own: bool = False,
    origin: Origin = "program",
    strangers: Sequence[str] = (),
) -> None:
    """Add a message to the end. `head` is the part of a person's message that the program wrote;
    `strangers` name the sources of strangers' text in it. What the model writes while the conversation
    holds such text counts as a stranger's, too.
    """
    if isinstance(message, User) and message.images:
        await pictures.keep(tx, conversation, message.images)
    role, text, extra = message_columns(message)
    head = storable(head)
    await taints.enter(tx, conversation, strangers)
    sql = _BY_MODEL if role == "assistant" else _AS_GIVEN
    row = (conversation, turn, role, head, text.removeprefix(head), extra, own, tx.now)
    sources = storable("; ".join(map(named, strangers)))
    await tx.run(sql, *row, "stranger" if strangers else origin, sources)


_INSERT = """
INSERT INTO transcript (conversation, position, turn, role, head, text, extra, own, at, origin, stranger)
VALUES (?1, (SELECT coalesce(max(position), 0) + 1 FROM transcript WHERE conversation = ?1),
    ?2, ?3, ?4, ?5, ?6, ?7, ?8, {origin})
"""
_BY_MODEL = _INSERT.format(
    origin="""
    iif(EXISTS (SELECT 1 FROM taints WHERE conversation = ?1 AND cleared_at IS NULL), 'stranger', ?9),
    coalesce((SELECT source FROM taints WHERE conversation = ?1 AND cleared_at IS NULL ORDER BY id DESC), ?10)""",
)
_AS_GIVEN = _INSERT.format(origin="?9, ?10")


async def set_title(tx: Transaction, conversation: int, message: User, head: str) -> None:
    """Use the message's first words as the title of an untitled conversation, and record its use."""
    words = " ".join(message.text.removeprefix(head).split())[:80]
    sql = (
        "UPDATE conversations SET active_at = ?, title = CASE title WHEN '' THEN ? ELSE title END"
        " WHERE id = ?"
    )
    await tx.run(sql, tx.now, storable(words), conversation)


async def forget_hidden_notes(tx: Transaction, conversation: int) -> None:
    """Have notes shown again whose line is no longer in the prompt."""
    sql = (
        "DELETE FROM notes_shown WHERE conversation = ?1 AND NOT EXISTS (SELECT 1 FROM transcript"
        " WHERE conversation = ?1 AND live = 1 AND role = 'user'"
        " AND instr(coalesce(json_extract(short, '$[0]'), head), notes_shown.line) > 0)"
    )
    await tx.run(sql, conversation)
