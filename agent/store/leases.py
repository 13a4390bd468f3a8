"""One turn at a time per chat, whatever process runs it: a lease row with a heartbeat."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.store import chats
from agent.store.chats import Clock
from agent.store.database import Database

STALE_SECONDS = 30.0


@dataclass(frozen=True)
class LeaseTable:
    database: Database
    clock: Clock

    async def take(self, chat: str, owner: str) -> bool:
        """Take the right to run turns of a chat; False while another owner holds it."""
        async with self.database.write() as tx:
            if await tx.last(_TAKE_FREE, chat, owner, self.clock()):
                return True
        return await self._take_over(chat, owner)

    async def beat(self, chat: str, owner: str) -> bool:
        """A sign of life; False when another owner holds the lease now."""
        async with self.database.write() as tx:
            held = await tx.all(
                "UPDATE leases SET heartbeat_at = ? WHERE chat = ? AND owner = ? RETURNING 1",
                self.clock(),
                chat,
                owner,
            )
        return bool(held)

    async def asked_to_stop(self, chat: str) -> bool:
        """Whether another process wants the turn to end."""
        async with self.database.read() as tx:
            return bool(await tx.value("SELECT stop FROM leases WHERE chat = ?", chat))

    async def release(self, chat: str, owner: str) -> None:
        async with self.database.write() as tx:
            await tx.run("DELETE FROM leases WHERE chat = ? AND owner = ?", chat, owner)

    async def release_all(self, owner: str) -> None:
        async with self.database.write() as tx:
            await tx.run("DELETE FROM leases WHERE owner = ?", owner)

    async def stop(self, chat: str) -> bool:
        """Ask whoever runs a turn of that chat to stop it; False when nobody does."""
        async with self.database.write() as tx:
            held = await tx.one("SELECT owner, heartbeat_at FROM leases WHERE chat = ?", chat)
            if held is None or self._free(held[0], held[1], ""):
                return False
            await tx.run("UPDATE leases SET stop = 1 WHERE chat = ?", chat)
        return True

    async def _take_over(self, chat: str, owner: str) -> bool:
        """Take it from a holder that is gone, or for a chat that is new."""
        async with self.database.write() as tx:
            held = await tx.one("SELECT owner, heartbeat_at FROM leases WHERE chat = ?", chat)
            if held and not self._free(held[0], held[1], owner):
                return False
            await chats.ensure(tx, chat, self.clock())
            await tx.run(_TAKE, chat, owner, self.clock())
        return True

    def _free(self, holder: str, heartbeat: float, owner: str) -> bool:
        if holder == owner:
            return True
        known = standing(holder)
        if known == "unknown":
            return abs(self.clock() - heartbeat) >= STALE_SECONDS
        return known == "dead"


_TAKE = """
INSERT INTO leases (chat, owner, heartbeat_at) SELECT key, ?2, ?3 FROM chats WHERE key = ?1
ON CONFLICT (chat) DO UPDATE SET owner = ?2, heartbeat_at = ?3, stop = 0
"""
_TAKE_FREE = f"{_TAKE} WHERE owner = ?2 RETURNING 1"


def new_owner() -> str:
    """A name for one holder in this process that others can check for life."""
    return f"{_place()}/{os.getpid()}/{_started(os.getpid())}/{secrets.token_hex(4)}"


def standing(owner: str) -> Literal["alive", "dead", "unknown"]:
    """Whether the process that took a lease still lives.

    Unknown for one of another boot or pid namespace, and for this very process:
    there the heartbeat decides.
    """
    place, pid, started, _ = owner.rsplit("/", 3)
    if place != _place() or int(pid) == os.getpid():
        return "unknown"
    return "alive" if _started(int(pid)) == started else "dead"


def _place() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"


def _started(pid: int) -> str:
    """The start time of a process in clock ticks since boot; empty when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
