"""One turn at a time per chat, whatever process runs it: a lease row with a heartbeat.

A power cut ends its holders too, so that no commit here waits for the disk.
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.store import chats
from agent.store.database import Database

STALE_SECONDS = 30.0


@dataclass(frozen=True)
class LeaseTable:
    database: Database

    async def acquire(self, chat: str, owner: str) -> bool:
        """Take the right to run turns of a chat; False while another owner holds it."""
        if await self.database.execute(
            _TAKE_FREE, chat, owner, self.database.clock(), durable=False
        ):
            return True
        # The holder may be gone, or the chat be new.
        async with self.database.write(durable=False) as tx:
            held = await tx.one(_HOLDER, chat)
            if held and held[0] != owner and self._alive(*held):
                return False
            await chats.ensure(tx, chat)
            await tx.run(_TAKE, chat, owner, tx.now)
        return True

    async def heartbeat(self, chat: str, owner: str) -> bool:
        """Prolong the lease; False when another owner holds it now."""
        sql = "UPDATE leases SET heartbeat_at = ? WHERE chat = ? AND owner = ? RETURNING 1"
        now = self.database.clock()
        return bool(await self.database.execute(sql, now, chat, owner, durable=False))

    async def stop_requested(self, chat: str) -> bool:
        """Whether another process wants the turn to end."""
        return bool(await self.database.value("SELECT stop FROM leases WHERE chat = ?", chat))

    async def release(self, chat: str, owner: str) -> None:
        sql = "DELETE FROM leases WHERE chat = ? AND owner = ?"
        await self.database.execute(sql, chat, owner, durable=False)

    async def release_all(self, owner: str) -> None:
        await self.database.execute("DELETE FROM leases WHERE owner = ?", owner, durable=False)

    async def request_stop(self, chat: str) -> bool:
        """Ask whoever runs a turn of that chat to stop it; False when nobody does."""
        async with self.database.write(durable=False) as tx:
            held = await tx.one(_HOLDER, chat)
            if held is None or not self._alive(*held):
                return False
            await tx.run("UPDATE leases SET stop = 1 WHERE chat = ?", chat)
        return True

    def _alive(self, holder: str, heartbeat: float) -> bool:
        known = holder_state(holder)
        if known == "unknown":
            return abs(self.database.clock() - heartbeat) < STALE_SECONDS
        return known == "alive"


_HOLDER = "SELECT owner, heartbeat_at FROM leases WHERE chat = ?"
_TAKE = """
INSERT INTO leases (chat, owner, heartbeat_at) SELECT key, ?2, ?3 FROM chats WHERE key = ?1
ON CONFLICT (chat) DO UPDATE SET owner = ?2, heartbeat_at = ?3, stop = 0
"""
_TAKE_FREE = f"{_TAKE} WHERE owner = ?2 RETURNING 1"


def new_owner() -> str:
    """A name for one holder in this process that others can check for life."""
    return f"{_namespace()}/{os.getpid()}/{_started(os.getpid())}/{secrets.token_hex(4)}"


def holder_state(owner: str) -> Literal["alive", "dead", "unknown"]:
    """Whether the process that took a lease still lives.

    Unknown for one of another boot or pid namespace, for this very process, and for what is no
    such name: there the heartbeat decides.
    """
    namespace, *rest = owner.rsplit("/", 3)
    if namespace != _namespace() or len(rest) != 3 or rest[0] == str(os.getpid()):
        return "unknown"
    return "alive" if _started(rest[0]) == rest[1] else "dead"


def _namespace() -> str:
    """The boot and the pid namespace in which a pid means something."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"


def _started(pid: int | str) -> str:
    """The start time of a process in clock ticks since boot; empty when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
