"""Who may talk to the bot, beyond the configuration: paired people and groups, and one-time codes."""

import secrets
from dataclasses import dataclass
from typing import Literal

from agent.store.database import Database, columns
from agent.store.ledger import digest, record

Role = Literal["owner", "member", "asked", "refused", "stranger"]
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Person:
    """`person` is the messaging app's id of a user or a group."""

    source: str
    person: str
    name: str
    role: Role
    added_by: str
    added_at: float


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
            " ON CONFLICT (source, person) DO UPDATE SET told_at = ?4 WHERE told_at <= ?5 RETURNING 1"
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
        """Pair somebody by a code: their role, or None when the code is unknown, used or expired."""
        async with self.database.write() as tx:
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
