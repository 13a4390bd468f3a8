"""Prompt, cached and completion tokens of each model call; what each chat has used of its daily budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.model import Completion
from agent.store.approvals import FROZEN, Frozen
from agent.store.database import Database

# Fields of a Completion that are columns of the same names.
MEASURED = (
    "prompt_tokens cached_tokens completion_tokens ttft_ms prefill_tok_s decode_tok_s".split()
)


@dataclass(frozen=True, slots=True)
class CacheReuse:
    """How far a call reused the cache: `new` tokens beyond the call before it (None if the server gives no
    figures), `reread` tokens that were prefilled again although they should have been cached, and the
    first `difference` from the call before, if one was found."""

    new: int | None = None
    reread: int = 0
    difference: str = ""


@dataclass(frozen=True)
class UsageTable:
    database: Database

    async def add(
        self,
        chat: str,
        conversation: int,
        turn: str | None,
        completion: Completion,
        reuse: CacheReuse,
        purpose: str = "turn",
    ) -> None:
        """Record one call's figures; `purpose` is turn, sub-task, summary or warm.

        The commit does not wait for the disk. Without effect if the chat was forgotten meanwhile.
        """
        async with self.database.write(durable=False) as tx:
            values: dict[str, Any] = {
                "conversation": conversation,
                "turn": turn,
                "purpose": purpose,
                "new_tokens": reuse.new,
                "reread": reuse.reread,
                "difference": reuse.difference,
                "at": tx.now,
                **{name: getattr(completion, name) for name in MEASURED},
            }
            sql = (
                f"INSERT INTO usage (chat, {', '.join(values)}) SELECT key, {', '.join('?' * len(values))}"
                " FROM chats WHERE key = ?"
            )
            await tx.run(sql, *values.values(), chat)

    async def read_ahead(self, at: float) -> int:
        """Tokens prefilled between turns since an instant."""
        sql = "SELECT coalesce(sum(reread), 0) FROM usage WHERE at >= ? AND purpose = 'warm'"
        return int(await self.database.value(sql, at))


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
        """Add to each count what was used beyond its reservation; a negative number gives back what was not used."""
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
