"""Chats of one person, linked by a code that is made in one chat and sent in another: they share notes and
jobs, and alerts go to one of them. Messages stay in their own chat.

`alerts` is the key of the chat in which the app alerts that person: the chat itself, or another of theirs.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from agent.store import chats
from agent.store.database import Database
from agent.store.ledger import digest, record

CODE_BYTES = 5  # typed by hand, once, within minutes, by an owner
# The chat ?1 and all linked with it.
LINKED = (
    "(SELECT ?1 UNION SELECT other.key FROM chats own JOIN chats other ON other.person = own.person"
    " WHERE own.key = ?1)"
)


@dataclass(frozen=True)
class LinkTable:
    database: Database

    async def make_code(self, chat: str, alerts: str, seconds: float) -> str:
        """A code for another chat of the same person; only its digest is kept. Older codes of the chat end."""
        code = secrets.token_hex(CODE_BYTES)
        async with self.database.write() as tx:
            await tx.run("DELETE FROM link_codes WHERE chat = ? OR expires_at < ?", chat, tx.now)
            row = {"digest": digest(code), "chat": chat, "alerts": alerts}
            await tx.insert("link_codes", **row, expires_at=tx.now + seconds)
        return code

    async def use_code(self, chat: str, alerts: str, code: str, by: str = "") -> str | None:
        """Link a chat with the one that made the code, and with all linked with either. Returns the other's
        key, or None for a code that is unknown, used, expired or of this chat.

        Alerts go to the chat that made the code, unless the person has asked for them elsewhere.
        """
        async with self.database.write() as tx:
            sql = (
                "DELETE FROM link_codes WHERE digest = ? AND expires_at >= ? AND chat <> ?"
                " RETURNING chat, alerts"
            )
            found = await tx.one(sql, digest(code.strip().lower()), tx.now, chat)
            if found is None:
                return None
            other, of_other = found
            person = digest(code)
            for key in {chat, alerts, other, of_other}:
                await chats.ensure(tx, key)
                await tx.run(f"UPDATE chats SET person = ?2 WHERE key IN {LINKED}", key, person)
            sql = (
                "UPDATE chats SET alerts_at = ?2 WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM chats of"
                " JOIN chats other ON other.person = of.person WHERE of.key = ?1 AND other.alerts_at > 0)"
            )
            await tx.run(sql, of_other, tx.now)
            await record(tx, "admin", chat, act="link", to=str(other), by=by)
        return str(other)

    async def alert_here(self, alerts: str) -> bool:
        """Send this person's alerts here from now on; False when it is linked with no other chat."""
        sql = "UPDATE chats SET alerts_at = ? WHERE key = ? AND person IS NOT NULL RETURNING 1"
        return bool(await self.database.execute(sql, self.database.clock(), alerts))

    async def alerted(self, owners: Sequence[str]) -> list[str]:
        """One of these chats for each person: one that has not blocked the bot, and asked for alerts last."""
        if len(owners) < 2:
            return list(owners)
        sql = (
            "SELECT key, person FROM chats WHERE person IS NOT NULL"
            " AND key IN (SELECT value FROM json_each(?)) ORDER BY resting, alerts_at DESC, key"
        )
        linked = await self.database.all(sql, json.dumps(owners))
        first: dict[str, str] = {}
        for key, person in linked:
            first.setdefault(person, key)
        left_out = {key for key, _ in linked} - set(first.values())
        return [key for key in owners if key not in left_out]

    async def end(self, chat: str, alerts: str, by: str = "") -> bool:
        """Unlink the chat; it keeps the notes and jobs that were made in it."""
        async with self.database.write() as tx:
            sql = "UPDATE chats SET person = NULL WHERE key IN (?, ?) AND person IS NOT NULL RETURNING 1"
            gone = await tx.all(sql, chat, alerts)
            if gone:
                await record(tx, "admin", chat, act="link", to="", by=by)
        return bool(gone)

    async def of(self, chat: str) -> list[str]:
        """The other chats linked with it."""
        rows = await self.database.all(f"SELECT key FROM chats WHERE key IN {LINKED}", chat)
        return sorted(row[0] for row in rows if row[0] != chat)
