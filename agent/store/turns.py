"""Turns: begun from messages of the inbox, written step by step, ended together with their reply."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from agent.events import Reason, TokenUsage
from agent.messages import Message, ToolResult, User
from agent.store import approvals, chats, inbox, outbox, transcript
from agent.store.approvals import FROZEN
from agent.store.chats import Chat, end_plan
from agent.store.database import Database, Transaction, columns, storable
from agent.store.inbox import InboxRow, IncomingKind
from agent.store.transcript import Entry


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn that has begun and not ended; `resumed` is how often it was resumed since its last step."""

    id: str
    chat: str
    conversation: int
    kind: IncomingKind
    source: str
    started_at: float
    resumed: int = 0


@dataclass(frozen=True, slots=True)
class PendingWork:
    """What is to be done in a chat: the turn that was cut off, and the messages that wait, in order. `chat` is
    None for one without a row yet; `frozen` is since when no tool may run."""

    chat: Chat | None
    frozen: float | None
    unfinished: OpenTurn | None
    waiting: tuple[InboxRow, ...]


@dataclass(frozen=True, slots=True)
class RenderedMessage:
    """A person's message as the model gets it. `head` is the program's part in front of the words; `notes`
    are (id, line that shows it) of the notes that it shows."""

    head: str
    message: User
    notes: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TurnProgress:
    """The prompt's rows, and the ids of the turn's calls that started but did not finish."""

    entries: tuple[Entry, ...]
    started: frozenset[str]


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn ended; `payloads` go to the outbox in the same transaction."""

    message: Message | None
    text: str
    reason: Reason
    usage: TokenUsage
    payloads: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """An ended turn: the messages before it, its own in full, how it ended. After a compaction of its
    conversation, `before` may lack messages."""

    id: str
    chat: str
    started_at: float
    reason: str
    before: tuple[Message, ...]
    own: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class DislikedTurn:
    """A turn whose answer somebody disliked; `asked` is empty where the messages are no longer kept."""

    id: str
    chat: str
    started_at: float
    asked: str
    answered: str


@dataclass(frozen=True)
class TurnTable:
    database: Database

    async def begin(self, id: str, rows: Sequence[InboxRow], rendered: RenderedMessage) -> OpenTurn:
        """Take waiting rows into a new turn of the chat's current conversation. Raises MessageChanged."""
        first = rows[0].incoming
        async with self.database.write() as tx:
            conversation = await chats.current_conversation(tx, first.chat)
            turn = OpenTurn(id, first.chat, conversation, first.kind, first.source, tx.now)
            await tx.insert("turns", **asdict(turn))
            await _take_messages(tx, turn, rows, rendered)
        return turn

    async def add_messages(
        self, turn: OpenTurn, rows: Sequence[InboxRow], rendered: RenderedMessage
    ) -> None:
        """Add rows that arrived meanwhile to a running turn. Raises MessageChanged."""
        async with self.database.write() as tx:
            await _take_messages(tx, turn, rows, rendered)

    async def pending(self, chat: str) -> PendingWork:
        """Read, in one trip to the database, what is to be done in a chat."""
        async with self.database.read() as tx:
            known, frozen, turns, rows = await tx.batch(
                (chats.CHAT, (chat,)),
                (FROZEN, ()),
                (_UNFINISHED, (chat,)),
                (inbox.WAITING, (chat,)),
            )
        turn = OpenTurn(*turns[0]) if turns else None
        waiting = tuple(inbox.inbox_row(row) for row in rows)
        chat_row = chats.decode_chat(known[0]) if known else None
        return PendingWork(chat_row, frozen[0][0] if frozen else None, turn, waiting)

    async def unfinished(self, chat: str) -> OpenTurn | None:
        """The chat's oldest turn that was cut off."""
        row = await self.database.one(_UNFINISHED, chat)
        return OpenTurn(*row) if row else None

    async def chats_unfinished(self) -> list[tuple[str, str]]:
        """Chats with turns that were cut off, and their sources; the oldest first."""
        rows = await self.database.all(
            "SELECT chat, source FROM turns WHERE state = 'open'"
            " GROUP BY chat, source ORDER BY min(started_at)"
        )
        return [(chat, source) for chat, source in rows]

    async def resume(self, turn: OpenTurn) -> int:
        """Count a resumption; returns how many there were since the turn's last step."""
        steps = "(SELECT count(*) FROM transcript WHERE turn = ?1)"
        sql = (
            f"UPDATE turns SET steps = {steps},"
            f" resumed = CASE WHEN {steps} > steps THEN 1 ELSE resumed + 1 END"
            " WHERE id = ?1 RETURNING resumed"
        )
        [(resumed,)] = await self.database.execute(sql, turn.id)
        return int(resumed)

    async def progress(self, turn: OpenTurn) -> TurnProgress:
        async with self.database.read() as tx:
            rows, runs = await tx.batch(
                (transcript.PROMPT, (turn.conversation,)), (_STARTED, (turn.id,))
            )
        entries = await transcript.entries(self.database, rows)
        return TurnProgress(tuple(entries), frozenset(run[0] for run in runs))

    async def add(
        self,
        turn: OpenTurn,
        message: Message,
        *,
        own: bool = False,
        strangers: Sequence[str] = (),
    ) -> None:
        """Append a step; a tool's result also ends its run. `strangers`: see transcript.append."""
        async with self.database.write() as tx:
            if isinstance(message, ToolResult):
                sql = (
                    "INSERT INTO tool_runs (turn, call, started_at, finished_at) VALUES (?1, ?2, ?3, ?3)"
                    " ON CONFLICT DO UPDATE SET finished_at = ?3"
                )
                await tx.run(sql, turn.id, message.call, tx.now)
            await transcript.append(
                tx, turn.conversation, turn.id, message, own=own, strangers=strangers
            )

    async def started(self, turn: OpenTurn, call: str) -> None:
        """Record that a tool call has started."""
        sql = (
            "INSERT INTO tool_runs (turn, call, started_at) VALUES (?1, ?2, ?3)"
            " ON CONFLICT DO UPDATE SET started_at = ?3, finished_at = NULL"
        )
        await self.database.execute(sql, turn.id, call, self.database.clock())

    async def end(self, turn: OpenTurn, end: TurnEnd) -> list[int]:
        """Write the last step, the reply and the inbox rows' end in one transaction; return ids of the outbox rows.

        Without effect when the turn has ended already.
        """
        async with self.database.write() as tx:
            ended = await tx.all(
                "UPDATE turns SET state = 'done', reason = ?, text = ?, prompt_tokens = ?,"
                " cached_tokens = ?, completion_tokens = ?, ended_at = ?"
                " WHERE id = ? AND state = 'open' RETURNING EXISTS"
                " (SELECT 1 FROM approvals WHERE turn = turns.id AND state = 'asked')",
                end.reason,
                storable(end.text),
                end.usage.prompt_tokens,
                end.usage.cached_tokens,
                end.usage.completion_tokens,
                tx.now,
                turn.id,
            )
            if not ended:
                return []
            if end.message is not None:
                await transcript.append(tx, turn.conversation, turn.id, end.message)
            await inbox.done(tx, turn.id)
            if end.reason == "done":
                await end_plan(tx, turn.conversation, turn.id)
            if ended[0][0]:
                await approvals.withdraw(tx, turn=turn.id)
            return await outbox.put(tx, turn.chat, end.payloads, turn=turn.id)

    async def cancel(self, turn: OpenTurn, *, requeue: bool) -> None:
        """End a turn unanswered; its messages wait again (`requeue`) or are done."""
        async with self.database.write() as tx:
            sql = (
                "UPDATE turns SET state = 'done', reason = 'cancelled', ended_at = ?"
                " WHERE id = ? AND state = 'open'"
            )
            await tx.run(sql, tx.now, turn.id)
            state = "waiting" if requeue else "done"
            await tx.run("UPDATE inbox SET state = ? WHERE turn = ?", state, turn.id)
            await approvals.withdraw(tx, turn=turn.id)

    async def answer_to(self, source: str, update: str) -> tuple[str, Reason | None] | None:
        """The answer to a message, and why its turn ended: "" and None for a message that was dropped; None while it
        is still to be answered."""
        row = await self.database.one(
            "SELECT inbox.state, turns.state, text, reason FROM inbox"
            " LEFT JOIN turns ON turns.id = inbox.turn WHERE inbox.source = ? AND update_id = ?",
            source,
            update,
        )
        if row is None or row[0] != "done" or row[1] == "open":
            return None
        return row[2] or "", row[3] or None

    async def last(self, chat: str) -> tuple[OpenTurn, str] | None:
        """The chat's newest ended turn in its current conversation, and its reply."""
        row = await self.database.one(
            f"SELECT {_COLUMNS}, text FROM turns WHERE conversation ="
            " (SELECT conversation FROM chats WHERE key = ?) AND state = 'done'"
            " ORDER BY started_at DESC, id DESC LIMIT 1",
            chat,
        )
        return (OpenTurn(*row[:-1]), row[-1]) if row else None

    async def newest(self, limit: int, chat: str = "") -> list[str]:
        """The ids of the newest turns that answered a person, of one chat or of all; the oldest of them first."""
        rows = await self.database.all(
            "SELECT id FROM turns WHERE state = 'done' AND kind = 'message' AND reason <> 'cancelled'"
            " AND (?1 = '' OR chat = ?1) ORDER BY started_at DESC, id DESC LIMIT ?2",
            chat,
            limit,
        )
        return [row[0] for row in reversed(rows)]

    async def record(self, id: str) -> RecordedTurn | None:
        async with self.database.read() as tx:
            row = await tx.one(
                "SELECT id, chat, started_at, reason, conversation FROM turns WHERE id = ?",
                id,
            )
            if row is None:
                return None
            number, chat, at, reason, conversation = row
            own_rows, rows, first = await tx.batch(
                (transcript.OF_TURN, (id,)),
                (transcript.PROMPT, (conversation,)),
                ("SELECT min(id) FROM transcript WHERE turn = ?", (id,)),
            )
        begin = first[0][0] or 0
        before = [e.message for e in await transcript.entries(self.database, rows) if e.id < begin]
        own = await transcript.messages(self.database, own_rows)
        return RecordedTurn(number, chat, at, reason, tuple(before), tuple(own))

    async def judge(self, chat: str, message: str, author: str, liked: bool | None) -> bool:
        """Store whether `author` liked the answer to them that the app shows as `message`, in the chat or a topic of it;
        None withdraws that. False when no answer to that author was delivered so."""
        sql = (
            "UPDATE turns SET feedback = ?1 WHERE id = (SELECT turn FROM outbox"
            " WHERE turn IS NOT NULL AND (chat = ?2 OR substr(chat, 1, length(?2) + 1) IN (?2 || ':', ?2 || '|'))"
            " AND EXISTS (SELECT 1 FROM json_each(message_ids) WHERE value = ?3)"
            " ORDER BY id DESC LIMIT 1)"
            " AND EXISTS (SELECT 1 FROM inbox WHERE inbox.turn = turns.id AND author IN ('', ?4)) RETURNING 1"
        )
        value = None if liked is None else 1 if liked else -1
        return bool(await self.database.execute(sql, value, chat, message, author))

    async def of_message(self, chat: str, message: str, author: str) -> OpenTurn | None:
        """The newest turn to which `message` (the app's id) belongs, as question or as answer, in the chat or a topic
        of it; None where there is none that answers that author."""
        sql = (
            f"SELECT {_COLUMNS} FROM turns"
            " WHERE (chat = ?1 OR substr(chat, 1, length(?1) + 1) IN (?1 || ':', ?1 || '|'))"
            " AND (EXISTS (SELECT 1 FROM inbox WHERE inbox.turn = turns.id AND ref = ?2)"
            " OR EXISTS (SELECT 1 FROM outbox, json_each(message_ids) WHERE outbox.turn = turns.id AND value = ?2))"
            " AND EXISTS (SELECT 1 FROM inbox WHERE inbox.turn = turns.id AND author IN ('', ?3))"
            " ORDER BY started_at DESC LIMIT 1"
        )
        row = await self.database.one(sql, chat, message, author)
        return OpenTurn(*row) if row else None

    async def disliked(self, limit: int) -> list[DislikedTurn]:
        """The newest turns whose answer somebody disliked, oldest first."""
        sql = (
            "SELECT id, chat, started_at, coalesce((SELECT group_concat(words, char(10)) FROM inbox"
            " WHERE turn = turns.id), ''), text FROM turns WHERE feedback = -1"
            " ORDER BY started_at DESC LIMIT ?"
        )
        return [DislikedTurn(*row) for row in reversed(await self.database.all(sql, limit))]

    async def retry(self, turn: OpenTurn) -> bool:
        """Remove the turn's messages from the prompt and put its inbox rows in again; False when it was
        retried already or nothing is left to answer."""
        rows = await inbox.InboxTable(self.database).of_turn(turn.id)
        async with self.database.write() as tx:
            again = False
            for row in rows:
                update = f"{row.incoming.update}~{turn.id}"
                incoming = replace(row.incoming, update=update, settle_s=0.0)
                again = await inbox.add(tx, incoming) or again
            if again:
                await tx.run("UPDATE transcript SET live = 0 WHERE turn = ?", turn.id)
                await transcript.forget_hidden_notes(tx, turn.conversation)
        return again


_COLUMNS = columns(OpenTurn)
_CUT_OFF = _COLUMNS.replace("resumed", "resumed + 1")
_UNFINISHED = f"SELECT {_CUT_OFF} FROM turns WHERE chat = ? AND state = 'open' ORDER BY started_at"
_STARTED = "SELECT call FROM tool_runs WHERE turn = ? AND finished_at IS NULL"


async def _take_messages(
    tx: Transaction, turn: OpenTurn, rows: Sequence[InboxRow], rendered: RenderedMessage
) -> None:
    conversation, message = turn.conversation, rendered.message
    await transcript.append(
        tx,
        conversation,
        turn.id,
        message,
        head=rendered.head,
        origin=rows[0].incoming.origin if rows else "person",
        strangers=[row.incoming.stranger for row in rows if row.incoming.stranger],
    )
    await transcript.set_title(tx, conversation, message, rendered.head)
    await inbox.take(tx, turn.id, rows)
    shown = [(conversation, note, line) for note, line in rendered.notes]
    await tx.many("INSERT OR REPLACE INTO notes_shown VALUES (?, ?, ?)", shown)
