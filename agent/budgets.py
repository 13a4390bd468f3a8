"""What a chat may use in a day before an owner is asked: counted before each act, corrected after it.

The reservations of a killed process stay counted. A frozen agent runs no tool at all (agent.store.approvals).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from agent.language import translated
from agent.store.usage import BudgetTable, Used
from agent.tools.context import Approver

WORDS: Mapping[str, str] = {
    "calls": "tool calls",
    "bytes": "bytes sent to hosts or as files",
    "hosts": "new hosts",
    "files": "files written",
    "jobs": "jobs planned",
}
# What a tool uses besides its call; tools that are not listed reserve what they use themselves.
COSTS: Mapping[str, Mapping[str, int]] = {
    "bash": {
        "files": 0
    },  # its files are counted afterwards: the call that exceeds the budget is the last
    "write_file": {"files": 1},
    "edit_file": {"files": 1},
    "schedule": {"jobs": 1},
}
SHARE = 10  # each time, an owner allows a tenth of the budget more
PORTION = 256 << 10  # bytes that are reserved at once


@dataclass(frozen=True)
class DailyBudgets:
    """What chats may use a day: `limits` by kind, 0 for no limit; days are those of `zone` (IANA)."""

    table: BudgetTable
    limits: Mapping[str, int]
    zone: str = "UTC"

    def today(self) -> str:
        now = datetime.fromtimestamp(self.table.database.clock(), ZoneInfo(self.zone))
        return now.date().isoformat()

    async def half_used(self, chat: str) -> list[tuple[Used, int]]:
        """The kinds of which more than half is used today, each with all that is allowed of it."""
        used = await self.table.used(chat, self.today())
        limits = [(one, self.limits.get(one.kind, 0)) for one in used]
        return [(u, limit + u.allowed) for u, limit in limits if limit and 2 * u.used > limit]


@dataclass
class CallBudget:
    """Counts what one tool call uses; `act` is the call in short, for the question. Without `daily` nothing is counted."""

    daily: DailyBudgets | None = None
    chat: str = ""
    approve: Approver | None = None
    act: str = ""
    _sendable: int = 0  # bytes that are reserved and not sent
    _reserving: asyncio.Lock = field(default_factory=asyncio.Lock)

    def counts(self, kind: str) -> bool:
        return bool(self.daily and self.daily.limits[kind])

    async def reserve(self, amounts: Mapping[str, int], *, host: str = "") -> None:
        """Count what is about to be used, and ask an owner where that exceeds the budget.

        With `host`, nothing is counted where the chat was connected to that host before. Raises
        ToolError when the owner denies it, or everything is frozen.
        """
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
                    " Allow {allowed:,} today, to continue with: {act}"
                )
                named = translated(WORDS[one.kind])
                what = form.format(limit=limit, what=named, allowed=limit + more, act=self.act)
                await self.approve(what, scope=f"budget:{one.kind}")
                await daily.table.allow(self.chat, day, one.kind, more)

    async def settle(self, changes: Mapping[str, int]) -> None:
        """Add what was used beyond the reservation, or give back (negative counts) what was not used."""
        daily = self.daily
        if daily and (changes := {k: n for k, n in changes.items() if n and daily.limits[k]}):
            await daily.table.settle(self.chat, daily.today(), changes)

    async def sends(self, count: int) -> None:
        """Count bytes that are about to be sent. They are reserved in portions; `sent` gives the rest back."""
        async with self._reserving:
            if count > self._sendable:
                portion = max(count, PORTION)
                await self.reserve({"bytes": portion})
                self._sendable += portion
            self._sendable -= count

    async def sent(self) -> None:
        rest, self._sendable = self._sendable, 0
        await self.settle({"bytes": -rest})
