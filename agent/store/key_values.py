"""Small values of the program itself, as JSON by key: the time of the last snapshot, the result of a
self-test, the live messages."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from agent.store.database import Database

T = TypeVar("T")
PUT = "INSERT INTO facts (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2"


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@dataclass(frozen=True)
class KeyValueTable:
    """Values are validated as a type when read. Raises pydantic.ValidationError for one that is not of it."""

    database: Database

    async def get(self, key: str, kind: type[T]) -> T | None:
        text = await self.database.value("SELECT value FROM facts WHERE key = ?", key)
        return None if text is None else _decoded(kind, text)

    async def put(self, key: str, value: Any, *, durable: bool = True) -> None:
        """Store a value. Without `durable`, the old one may be back after a power cut (Database.write)."""
        await self.database.execute(PUT, key, json.dumps(value), durable=durable)

    async def replace(self, key: str, old: Any, new: Any) -> None:
        """Store `new` if the value is still `old`: not over one that another process has stored."""
        sql = "UPDATE facts SET value = ? WHERE key = ? AND value = ?"
        await self.database.execute(sql, json.dumps(new), key, json.dumps(old))

    async def with_prefix(self, prefix: str, kind: type[T]) -> dict[str, T]:
        """The values whose keys begin with `prefix`."""
        sql = "SELECT key, value FROM facts WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key"
        rows = await self.database.all(sql, prefix)
        return {key: _decoded(kind, text) for key, text in rows}

    async def remove(self, key: str) -> None:
        await self.database.execute("DELETE FROM facts WHERE key = ?", key)


def _decoded(kind: Any, text: str) -> Any:
    return adapter(kind).validate_json(text)
