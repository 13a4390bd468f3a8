"""The freeze: while its row exists, no tool runs and no job starts.

It outlasts restarts and backups, and is ended in the terminal or by a code.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from agent.errors import ToolError
from agent.store import approvals
from agent.store.database import Database
from agent.store.ledger import record

FROZEN = "SELECT since FROM frozen"
TRIES, HOUR = 5, 3600.0  # codes that are checked in an hour


class Frozen(ToolError):
    """A tool was to run, or is running, while everything is frozen; `since` in seconds since the epoch."""

    def __init__(self, since: float) -> None:
        super().__init__("An owner has frozen all tools. Say so, and answer without them.")
        self.since = since


@dataclass(frozen=True)
class FreezeTable:
    """`on_freeze` stop what runs when a freeze begins; each returns how many turns."""

    database: Database
    on_freeze: list[Callable[[], int]] = field(default_factory=list)

    async def since(self) -> float | None:
        """When everything was frozen, in seconds since the epoch; None when it is not."""
        since: float | None = await self.database.value(FROZEN)
        return since

    async def freeze(self, by: str) -> tuple[int, int]:
        """Stop the running turns, end all standing permissions and open questions; returns how many turns and
        permissions. Calling it again does the same and keeps the first time."""
        async with self.database.write() as tx:
            if not await tx.all(FROZEN):
                await tx.insert("frozen", since=float(tx.now), by=by)
            grants = await approvals.drop_grants(tx, by)
            await approvals.withdraw(tx)
            await record(tx, "admin", act="freeze", by=by, grants=grants)
        return sum(stop() for stop in self.on_freeze), grants

    async def thaw(self, by: str) -> bool:
        """False when nothing was frozen."""
        async with self.database.write() as tx:
            gone = await tx.all("DELETE FROM frozen RETURNING 1")
            if gone:
                await record(tx, "admin", act="thaw", by=by)
        return bool(gone)

    async def thaw_by_code(self, by: str, step: int | None) -> Literal["thawed", "wrong", "often"]:
        """`step` is the time step of a right code, None for a wrong one. A code is accepted once, and no
        earlier one after it; after TRIES in an hour none is checked. A right code also "thaws" when nothing
        was frozen."""
        async with self.database.write() as tx:
            await tx.run("DELETE FROM thaw_tries WHERE at <= ? AND step IS NULL", tx.now - HOUR)
            [[(recent,)], [(last,)]] = await tx.batch(
                ("SELECT count(*) FROM thaw_tries WHERE at > ?", (tx.now - HOUR,)),
                ("SELECT coalesce(max(step), 0) FROM thaw_tries", ()),
            )
            if recent >= TRIES:
                return "often"
            right = step if step is not None and step > last else None
            await tx.insert("thaw_tries", at=float(tx.now), step=right)
            if right:
                await tx.run("DELETE FROM frozen")
            outcome: Literal["thawed", "wrong"] = "thawed" if right else "wrong"
            await record(tx, "admin", act="thaw", by=by, code=outcome)
        return outcome
