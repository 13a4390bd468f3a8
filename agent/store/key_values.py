"""Small values of the program itself, as JSON by key: when the last snapshot was made, what a
self-test found, which messages are live."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from agent.store.database import Database, Row
from agent.store.unreadable import readable

T = TypeVar("T")


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@dataclass(frozen=True)
class KeyValueTable:
    """Values are read as a type; what is none of that type is set aside, as if it were not there."""

    database: Database

    async def get(self, key: str, kind: type[T]) -> T | None:
        rows = await self.database.all("SELECT key, value FROM facts WHERE key = ?", key)
        return dict(await readable(self.database, "facts", rows, decoder(kind))).get(key)

    async def put(self, key: str, value: Any, *, durable: bool = True) -> None:
        """What is not `durable` may be the one before after a power cut (Database.write)."""
        sql = "INSERT INTO facts (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2"
        await self.database.execute(sql, key, json.dumps(value), durable=durable)

    async def replace(self, key: str, old: Any, new: Any) -> None:
        """Put a value where `old` still stands, and nothing where another process has put its own."""
        sql = "UPDATE facts SET value = ? WHERE key = ? AND value = ?"
        await self.database.execute(sql, json.dumps(new), key, json.dumps(old))

    async def with_prefix(self, prefix: str, kind: type[T]) -> dict[str, T]:
        """The values whose keys begin with `prefix`."""
        sql = "SELECT key, value FROM facts WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key"
        rows = await self.database.all(sql, prefix)
        return dict(await readable(self.database, "facts", rows, decoder(kind)))

    async def remove(self, key: str) -> None:
        await self.database.execute("DELETE FROM facts WHERE key = ?", key)

    async def remove_prefix(self, prefix: str, keep: str) -> None:
        """Remove the values whose keys begin with `prefix`, but for those that begin with `keep`."""
        sql = (
            "DELETE FROM facts WHERE substr(key, 1, length(?1)) = ?1"
            " AND substr(key, 1, length(?2)) <> ?2"
        )
        await self.database.execute(sql, prefix, keep)


def decoder(kind: Any) -> Callable[[Row], tuple[str, Any]]:
    return lambda row: (row[0], adapter(kind).validate_json(row[1]))
