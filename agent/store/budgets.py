"""What each chat has used of its daily budget: reserved before an action, corrected after it.

A reservation counts as used at once, so that of a process that was killed stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.store.database import Database
from agent.store.freeze import FROZEN, Frozen


@dataclass(frozen=True, slots=True)
class Used:
    """Use of one kind in one day; `allowed` is what an owner allowed beyond the budget."""

    kind: str
    used: int
    allowed: int


class _Over(Exception):
    pass


@dataclass(frozen=True)
class BudgetTable:
    database: Database

    async def reserve(
        self,
        chat: str,
        day: str,
        amounts: Mapping[str, int],
        limits: Mapping[str, int],
        host: str = "",
    ) -> Sequence[Used]:
        """Reserve these amounts, all or none; returns those that would exceed their limits, with the use that
        would result. With `host` nothing is reserved if the chat was connected to it before. Raises Frozen.
        """
        over: list[Used] = []
        try:
            async with self.database.write() as tx:
                if host:
                    sql = "INSERT INTO known_hosts VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1"
                    if not await tx.all(sql, chat, host, tx.now):
                        return []
                counts = [(_COUNT, (chat, day, kind, n, tx.now)) for kind, n in amounts.items()]
                frozen, *rows = await tx.batch((FROZEN, ()), *counts)
                if frozen:
                    raise Frozen(frozen[0][0])
                found = [Used(*row[0]) for row in rows]
                over += [one for one in found if one.used > limits[one.kind] + one.allowed]
                if over:
                    raise _Over
        except _Over:
            pass
        return over

    async def settle(self, chat: str, day: str, changes: Mapping[str, int]) -> None:
        """Correct reservations by what was used beyond them, or (below 0) not used."""
        async with self.database.write() as tx:
            await tx.many(_COUNT, [(chat, day, kind, n, tx.now) for kind, n in changes.items()])

    async def allow(self, chat: str, day: str, kind: str, more: int) -> None:
        """Raise that day's limit of a kind, for an owner."""
        async with self.database.write() as tx:
            await tx.run(_COUNT, chat, day, kind, 0, tx.now)
            sql = "UPDATE budgets SET allowed = allowed + ? WHERE chat = ? AND day = ? AND kind = ?"
            await tx.run(sql, more, chat, day, kind)

    async def used(self, chat: str, day: str) -> list[Used]:
        sql = "SELECT kind, used, allowed FROM budgets WHERE chat = ? AND day = ? ORDER BY id"
        return [Used(*row) for row in await self.database.all(sql, chat, day)]


_COUNT = """
INSERT INTO budgets (chat, day, kind, used, at) VALUES (?1, ?2, ?3, max(?4, 0), ?5)
ON CONFLICT DO UPDATE SET used = max(used + ?4, 0), at = ?5
RETURNING kind, used, allowed
"""
