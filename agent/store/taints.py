"""Which strangers' text has entered a conversation, and who cleared it; kept as long as the conversation;
and the web addresses that a chat knows.

A row is written in the transaction that adds the text to the transcript. It belongs to the conversation,
not to a message: text that compaction, deletion by age or a retry removes from the prompt may already have
been summarised, answered or acted upon.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.store import chats
from agent.store.database import Database, Transaction, storable
from agent.store.ledger import record
from agent.store.people import LINKED
from agent.trust import Taint, named


@dataclass(frozen=True)
class TaintTable:
    database: Database

    async def of(self, conversation: int) -> list[Taint]:
        """The conversation's uncleared taints, oldest first."""
        return [Taint(*row) for row in await self.database.all(_OPEN, conversation)]

    async def of_chat(self, chat: str) -> list[Taint]:
        """The uncleared taints of the chat's current conversation."""
        current = await self.database.value("SELECT conversation FROM chats WHERE key = ?", chat)
        return await self.of(current) if current is not None else []

    async def of_message(self, chat: str, message: str) -> str:
        """Return the untrusted source that a bot message (by the app's id) may quote, or "".

        Sources that the chat's current conversation holds anyway do not count.

        Such a message is an answer in another conversation, a summary, a reminder that was planned while
        its chat was tainted, or a question to an owner. Any other may repeat whatever strangers' text is
        kept of the chat.
        """
        async with self.database.read() as tx:
            row = await tx.one(_SENT, chat, message)
            outbox, turn = row or (None, None)
            if turn is not None:
                return str(await tx.value(_OF_ANSWER, turn, chat) or "")
            if job := await tx.one(_OF_JOB, outbox):
                kind, task, stranger = job
                return f"repository {task}" if kind == "summary" else str(stranger)
            if asked := await tx.one(_OF_QUESTION, f"{chat}/{message}"):
                return str(asked[0])
            return str(await tx.value(_KEPT, chat) or "")

    async def clear(self, chat: str, upto: int, by: str) -> int:
        """Clear the current conversation's taints up to an id, because an owner vouches for them; return how many.
        Messages with these taints count as the owner's from then on, and answers to them as the model's own words."""
        async with self.database.write() as tx:
            conversation = await tx.value("SELECT conversation FROM chats WHERE key = ?", chat)
            cleared = await tx.all(
                "UPDATE taints SET cleared_at = ?, cleared_by = ? WHERE conversation = ? AND id <= ?"
                " AND cleared_at IS NULL RETURNING at",
                tx.now,
                storable(by),
                conversation,
                upto,
            )
            if cleared:
                await tx.run(_OWNED, conversation, max(at for (at,) in cleared))
                facts = {"conversation": conversation, "upto": upto, "count": len(cleared)}
                await record(tx, "taint-cleared", chat, what="chat", by=by, **facts)
        return len(cleared)

    async def vouch(self, kind: Literal["note", "job"], chat: str, id: int, by: str) -> bool:
        """Clear the taint of a note or a job, because an owner vouches for it; False when there is no tainted
        one with that id in that chat."""
        async with self.database.write() as tx:
            sql = (
                f"UPDATE {kind}s SET stranger = '' WHERE id = ?2 AND chat IN {LINKED}"
                " AND stranger <> '' RETURNING 1"
            )
            vouched = await tx.all(sql, chat, id)
            if vouched:
                await record(tx, "taint-cleared", chat, what=f"{kind} {id}", by=by)
        return bool(vouched)


async def enter(tx: Transaction, conversation: int, sources: Sequence[str]) -> None:
    """Record that text of these sources enters a conversation, once per source until it is cleared."""
    for source in map(named, sources):
        new = await tx.all(_ENTER, conversation, storable(source), tx.now)
        for (chat,) in new:
            await record(tx, "taint", chat, what="chat", source=source, conversation=conversation)


_OPEN = (
    "SELECT source, at, id FROM taints WHERE conversation = ? AND cleared_at IS NULL ORDER BY id"
)
# The newest first: people reply to recent messages.
_SENT = """
SELECT id, turn FROM outbox WHERE chat = ?1
AND EXISTS (SELECT 1 FROM json_each(message_ids) WHERE value = ?2) ORDER BY id DESC LIMIT 1
"""
_OF_ANSWER = """
SELECT source FROM taints WHERE cleared_at IS NULL AND conversation = (
    SELECT conversation FROM turns WHERE id = ?1
    AND conversation IS NOT (SELECT conversation FROM chats WHERE key = ?2))
ORDER BY id DESC LIMIT 1
"""
_OF_JOB = """
SELECT jobs.kind, jobs.task, CASE WHEN jobs.stranger = '' AND data <> '' THEN 'data for job ' || jobs.id
    ELSE jobs.stranger END FROM occurrences JOIN jobs ON jobs.id = occurrences.job
WHERE occurrences.outbox = ?
"""
_OF_QUESTION = """
SELECT because FROM approvals WHERE instr(' ' || message_id || ' ', ' ' || ? || ' ') ORDER BY asked_at DESC LIMIT 1
"""
_KEPT = f"""
SELECT source FROM taints JOIN conversations c ON c.id = conversation WHERE c.chat = ?1 AND cleared_at IS NULL
UNION ALL SELECT stranger FROM notes WHERE chat IN {LINKED} AND stranger <> ''
UNION ALL SELECT stranger FROM jobs WHERE chat IN {LINKED} AND stranger <> ''
LIMIT 1
"""
_ENTER = """
INSERT INTO taints (conversation, source, at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING
RETURNING coalesce((SELECT chat FROM conversations WHERE id = ?1), '')
"""
_OWNED = """
UPDATE transcript SET origin = iif(role = 'assistant', 'program', 'owner'), stranger = ''
WHERE conversation = ?1 AND origin = 'stranger' AND (at <= ?2 OR NOT EXISTS
    (SELECT 1 FROM taints WHERE conversation = ?1 AND cleared_at IS NULL))
"""


MOST = 2000  # of a chat; the newest are kept
MOST_TEXTS = 500  # newest messages that name a host


@dataclass(frozen=True)
class AddressTable:
    database: Database

    async def keep(self, chat: str, addresses: Collection[str]) -> None:
        """Let the chat read these from now on; a known one becomes the newest."""
        async with self.database.write() as tx:
            await chats.ensure(tx, chat)
            sql = (
                "INSERT INTO addresses (chat, address, at) VALUES (?1, ?2, ?3)"
                " ON CONFLICT DO UPDATE SET at = ?3"
            )
            await tx.many(sql, [(chat, storable(address), tx.now) for address in addresses])
            sql = (
                "DELETE FROM addresses WHERE chat = ?1 AND address NOT IN"
                " (SELECT address FROM addresses WHERE chat = ?1 ORDER BY at DESC LIMIT ?2)"
            )
            await tx.run(sql, chat, MOST)

    async def kept(self, chat: str, address: str) -> bool:
        sql = "SELECT 1 FROM addresses WHERE chat = ? AND address = ?"
        return bool(await self.database.all(sql, chat, address))

    async def said(self, chat: str, host: str) -> list[str]:
        """Texts of messages that name a host and that people wrote themselves: neither forwarded ones nor tasks
        of jobs."""
        sql = (
            "SELECT words FROM inbox WHERE chat = ? AND kind <> 'job' AND stranger = ''"
            " AND origin IN ('person', 'owner') AND instr(lower(words), ?) ORDER BY id DESC LIMIT ?"
        )
        return [row[0] for row in await self.database.all(sql, chat, host, MOST_TEXTS)]
