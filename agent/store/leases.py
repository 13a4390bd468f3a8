"""One turn at a time per chat, whatever process runs it: a lease row with a heartbeat.

A power cut ends the holders as well, so commits here do not wait for the disk.
"""

import fcntl
import os
import re
import secrets
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.store import chats
from agent.store.database import Database
from agent.store.errors import StoreError

STALE_SECONDS = 30.0  # of a holder of another version, whose heartbeat decides
_NAME = re.compile("lock:([0-9a-f]{15})")
_FLOCK = struct.Struct("hhqqi0q")  # struct flock: type, whence, start, length, pid


@dataclass(frozen=True)
class LeaseTable:
    database: Database

    @contextmanager
    def owner(self) -> Iterator[str]:
        """A name for one holder, which is alive as long as the block and this process are.

        It stands for a byte of the state's folder that the kernel keeps locked: the lock ends with the
        process, however that ends, and is visible from any pid namespace. A process id is not: a
        container that was killed starts again in another namespace.
        """
        place = secrets.randbits(60)
        folder = _opened(self.database.path.parent)
        try:
            fcntl.fcntl(folder, fcntl.F_OFD_SETLK, _lock(fcntl.F_RDLCK, place))
            yield f"lock:{place:015x}"
        finally:
            os.close(folder)

    async def acquire(self, chat: str, owner: str) -> bool:
        """Take a chat's lease; False while another living owner holds it."""
        if await self.database.execute(
            _TAKE_FREE, chat, owner, self.database.clock(), durable=False
        ):
            return True
        # Its holder may be dead, or the chat new.
        async with self.database.write(durable=False) as tx:
            held = await tx.one(_HOLDER, chat)
            if held and held[0] != owner and self._alive(*held):
                return False
            await chats.ensure(tx, chat)
            await tx.run(_TAKE, chat, owner, tx.now)
        return True

    async def heartbeat(self, chat: str, owner: str) -> bool:
        """Renew the lease; False when another owner holds it now."""
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
        name = _NAME.fullmatch(holder)
        if name is None:
            return abs(self.database.clock() - heartbeat) < STALE_SECONDS
        folder = _opened(self.database.path.parent)
        try:
            lock = _lock(fcntl.F_WRLCK, int(name[1], 16))
            found = fcntl.fcntl(folder, fcntl.F_OFD_GETLK, lock)
        finally:
            os.close(folder)
        return bool(_FLOCK.unpack(found)[0] != fcntl.F_UNLCK)


_HOLDER = "SELECT owner, heartbeat_at FROM leases WHERE chat = ?"
_TAKE = """
INSERT INTO leases (chat, owner, heartbeat_at) SELECT key, ?2, ?3 FROM chats WHERE key = ?1
ON CONFLICT (chat) DO UPDATE SET owner = ?2, heartbeat_at = ?3, stop = 0
"""
_TAKE_FREE = f"{_TAKE} WHERE owner = ?2 RETURNING 1"


def _opened(folder: Path) -> int:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise StoreError(f"{folder} cannot be opened: {error.strerror}.") from None


def _lock(kind: int, place: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, place, 1, 0)
