"""Files that came with messages or were sent, and small facts of the program itself."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from agent.store import chats
from agent.store.chats import Clock
from agent.store.database import Database


@dataclass(frozen=True, slots=True)
class File:
    """`path` is in the chat's workspace; `remote` the app's id of it; `size` in bytes."""

    chat: str
    path: str
    direction: Literal["in", "out"]
    name: str = ""
    mime: str = ""
    size: int = 0
    remote: str = ""
    message_id: str = ""


@dataclass(frozen=True)
class FileTable:
    database: Database
    clock: Clock

    async def add(self, file: File) -> int:
        async with self.database.write() as tx:
            await chats.ensure(tx, file.chat, self.clock())
            number = await tx.value(
                "INSERT INTO files (chat, path, direction, name, mime, size, remote, message_id, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                file.chat,
                file.path,
                file.direction,
                file.name,
                file.mime,
                file.size,
                file.remote,
                file.message_id,
                self.clock(),
            )
        return int(number)

    async def recent(self, chat: str, limit: int = 20) -> list[File]:
        """Newest first."""
        async with self.database.read() as tx:
            rows = await tx.all(
                "SELECT chat, path, direction, name, mime, size, remote, message_id FROM files"
                " WHERE chat = ? ORDER BY id DESC LIMIT ?",
                chat,
                limit,
            )
        return [File(*row) for row in rows]


@dataclass(frozen=True)
class FactTable:
    database: Database

    async def get(self, key: str, default: Any = None) -> Any:
        async with self.database.read() as tx:
            value = await tx.value("SELECT value FROM facts WHERE key = ?", key)
        return default if value is None else json.loads(value)

    async def put(self, key: str, value: Any) -> None:
        async with self.database.write() as tx:
            await tx.run(
                "INSERT INTO facts (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2",
                key,
                json.dumps(value),
            )

    async def under(self, prefix: str) -> dict[str, Any]:
        """The facts whose keys begin with `prefix`."""
        async with self.database.read() as tx:
            rows = await tx.all(
                "SELECT key, value FROM facts WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key",
                prefix,
            )
        return {key: json.loads(value) for key, value in rows}

    async def remove(self, key: str) -> None:
        async with self.database.write() as tx:
            await tx.run("DELETE FROM facts WHERE key = ?", key)

    async def drop(self, prefix: str, keep: str) -> None:
        """Forget the facts whose keys begin with `prefix`, but for those that begin with `keep`."""
        async with self.database.write() as tx:
            await tx.run(
                "DELETE FROM facts WHERE substr(key, 1, length(?1)) = ?1"
                " AND substr(key, 1, length(?2)) <> ?2",
                prefix,
                keep,
            )
