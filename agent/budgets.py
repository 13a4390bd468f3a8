"""What a chat may use up in a day before an owner is asked: counted before each act, corrected after it.

A killed process's reservations stay counted. What is frozen runs no tool at all (agent.store.freeze).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from agent.language import translated
from agent.store.budgets import BudgetTable, Used
from agent.tools.context import Approver

BudgetKind = Literal["calls", "bytes", "hosts", "files", "jobs"]
WORDS: Mapping[str, str] = {
    "calls": "tool calls",
    "bytes": "bytes sent to hosts or as files",
    "hosts": "new hosts",
    "files": "files written",
    "jobs": "jobs planned",
}
# What a tool uses besides its call; the others tell themselves what they use.
COSTS: Mapping[str, Mapping[str, int]] = {
    "bash": {"files": 0},  # counted afterwards: the one that goes beyond is the last
    "write_file": {"files": 1},
    "edit_file": {"files": 1},
    "schedule": {"jobs": 1},
}
SHARE = 10  # an owner allows the tenth part of the budget more each time
PORTION = 256 << 10  # bytes that are reserved at once


@dataclass(frozen=True)
class DailyBudgets:
    """`limits` are by kind, 0: without limit; a day is one in `zone` (IANA)."""

    table: BudgetTable
    limits: Mapping[str, int]
    zone: str = "UTC"

    def today(self) -> str:
        now = datetime.fromtimestamp(self.table.database.clock(), ZoneInfo(self.zone))
        return now.date().isoformat()

    async def half_used(self, chat: str) -> list[tuple[Used, int]]:
        """Of which kinds more than half is used today, with what is allowed in all."""
        used = await self.table.used(chat, self.today())
        limits = [(one, self.limits.get(one.kind, 0)) for one in used]
        return [(u, limit + u.allowed) for u, limit in limits if limit and 2 * u.used > limit]

    def of_call(self, chat: str, approve: Approver, act: str) -> "CallBudget":
        return CallBudget(self, chat, approve, act)


@dataclass
class CallBudget:
    """Of one tool call; `act` is the call in short, for the question. Without budgets nothing is counted."""

    daily: DailyBudgets | None = None
    chat: str = ""
    approve: Approver | None = None
    act: str = ""
    _sendable: int = 0  # bytes that are reserved and not sent
    _reserving: asyncio.Lock = field(default_factory=asyncio.Lock)

    def counts(self, kind: str) -> bool:
        return bool(self.daily and self.daily.limits[kind])

    async def reserve(self, amounts: Mapping[str, int], *, host: str = "") -> None:
        """Count what is about to be used; beyond the budget an owner is asked. ToolError where that
        is denied, or everything is frozen. With `host` only where the chat was never connected to it."""
        if self.daily is None or self.approve is None:
            return
        daily, day = self.daily, self.daily.today()
        limited = {kind: n for kind, n in amounts.items() if daily.limits[kind]}
        while over := await daily.table.reserve(self.chat, day, limited, daily.limits, host):
            for one in over:
                limit = daily.limits[one.kind] + one.allowed
                more = max(daily.limits[one.kind] // SHARE, one.used - limit)
                form = translated(
                    "Today's budget of this chat is used up: {limit:,} {what}."
                    " Allow {allowed:,} today, to go on with: {act}"
                )
                named = translated(WORDS[one.kind])
                what = form.format(limit=limit, what=named, allowed=limit + more, act=self.act)
                await self.approve(what, scope=f"budget:{one.kind}")
                await daily.table.allow(self.chat, day, one.kind, more)

    async def settle(self, changes: Mapping[str, int]) -> None:
        """Add what was used beyond the reservation, or give back (below 0) what was not."""
        daily = self.daily
        if daily and (changes := {k: n for k, n in changes.items() if n and daily.limits[k]}):
            await daily.table.settle(self.chat, daily.today(), changes)

    async def sends(self, count: int) -> None:
        """Bytes are about to leave. They are reserved in portions; `sent` gives the rest back."""
        async with self._reserving:
            if count > self._sendable:
                portion = max(count, PORTION)
                await self.reserve({"bytes": portion})
                self._sendable += portion
            self._sendable -= count

    async def sent(self) -> None:
        rest, self._sendable = self._sendable, 0
        await self.settle({"bytes": -rest})
