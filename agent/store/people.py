"""Who may talk to the bot, beyond the configuration: paired people and groups, and one-time codes; chats of one person."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agent.store import chats
from agent.store.database import Database, columns
from agent.store.ledger import digest, record

Role = Literal["owner", "member", "asked", "refused", "stranger"]
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody paired: `person` is the messaging app's id of a user or a group."""

    person: str
    name: str
    role: Role


@dataclass(frozen=True)
class PeopleTable:
    database: Database

    async def get(self, source: str, person: str) -> Person | None:
        sql = f"SELECT {_COLUMNS} FROM people WHERE source = ? AND person = ?"
        row = await self.database.one(sql, source, person)
        return Person(*row) if row else None

    async def all(self, source: str, role: Role | None = None) -> list[Person]:
        sql = (
            f"SELECT {_COLUMNS} FROM people WHERE source = ?1 AND (?2 IS NULL OR role = ?2)"
            " ORDER BY added_at"
        )
        rows = await self.database.all(sql, source, role)
        return [Person(*row) for row in rows]

    async def put(self, source: str, person: str, name: str, role: Role, by: str = "") -> None:
        """Give somebody a role in place of any other."""
        async with self.database.write() as tx:
            await tx.run(_PUT, source, person, name, role, by, tx.now)
            if role != "asked":
                who = f"{source}:{person}"
                await record(tx, "admin", act="pairing", who=who, name=name, role=role, by=by)

    async def remove(self, source: str, person: str) -> bool:
        async with self.database.write() as tx:
            sql = "DELETE FROM people WHERE source = ? AND person = ? RETURNING 1"
            gone = await tx.all(sql, source, person)
            if gone:
                who = f"{source}:{person}"
                await record(tx, "admin", act="pairing", who=who, role="none")
        return bool(gone)

    async def stranger_notice_due(self, source: str, person: str, name: str) -> bool:
        """Whether a stranger is to get the fixed line now, once a day at most; it then counts as sent."""
        now = self.database.clock()
        sql = (
            "INSERT INTO people (source, person, name, role, told_at, added_at)"
            " VALUES (?1, ?2, ?3, 'stranger', ?4, ?4)"
            " ON CONFLICT (source, person) DO UPDATE SET told_at = ?4"
            " WHERE told_at <= ?5 OR told_at > ?4 RETURNING 1"
        )
        return bool(await self.database.execute(sql, source, person, name, now, now - DAY))

    async def make_code(self, role: Literal["owner", "member"], seconds: float) -> str:
        """A one-time pairing code; only its digest is kept."""
        code = secrets.token_urlsafe(16)
        async with self.database.write() as tx:
            times = {"created_at": tx.now, "expires_at": tx.now + seconds}
            await tx.insert("pairing_codes", digest=digest(code), role=role, **times)
            await record(tx, "admin", act="pairing code", role=role)
        return code

    async def use_code(self, source: str, person: str, name: str, code: str) -> Role | None:
        """Pair somebody by a code; return their role, or None if the code is unknown, used or expired. An owner stays
        one, and the code waits for whom it was made."""
        async with self.database.write() as tx:
            owner = "SELECT role FROM people WHERE source = ? AND person = ? AND role = 'owner'"
            if known := await tx.value(owner, source, person):
                valid = "SELECT 1 FROM pairing_codes WHERE digest = ? AND used_at IS NULL AND expires_at > ?"
                return known if await tx.value(valid, digest(code), tx.now) else None
            sql = (
                "UPDATE pairing_codes SET used_by = ?1, used_at = ?2"
                " WHERE digest = ?3 AND used_at IS NULL AND expires_at > ?2 RETURNING role"
            )
            role: Role | None = await tx.value(sql, f"{source}:{person}", tx.now, digest(code))
            if role:
                await tx.run(_PUT, source, person, name, role, "code", tx.now)
                who = f"{source}:{person}"
                await record(tx, "admin", act="pairing", who=who, name=name, role=role, by="code")
        return role


_COLUMNS = columns(Person)
_PUT = """
INSERT INTO people (source, person, name, role, added_by, added_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (source, person) DO UPDATE SET name = excluded.name, role = excluded.role,
    added_by = excluded.added_by, added_at = excluded.added_at
"""


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
        """The other chats that are linked with this one."""
        rows = await self.database.all(f"SELECT key FROM chats WHERE key IN {LINKED}", chat)
        return sorted(row[0] for row in rows if row[0] != chat)
