"""Small values of the program itself, as JSON by key: when the last snapshot was made, what a
self-test found, which messages are live."""

import json
from dataclasses import dataclass
from typing import Any

from agent.store.database import Database


@dataclass(frozen=True)
class KeyValueTable:
    database: Database

    async def get(self, key: str, default: Any = None) -> Any:
        value = await self.database.value("SELECT value FROM facts WHERE key = ?", key)
        return default if value is None else json.loads(value)

    async def put(self, key: str, value: Any) -> None:
        await self.database.execute(
            "INSERT INTO facts (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2",
            key,
            json.dumps(value),
        )

    async def with_prefix(self, prefix: str) -> dict[str, Any]:
        """The values whose keys begin with `prefix`."""
        rows = await self.database.all(
            "SELECT key, value FROM facts WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key",
            prefix,
        )
        return {key: json.loads(value) for key, value in rows}

    async def remove(self, key: str) -> None:
        await self.database.execute("DELETE FROM facts WHERE key = ?", key)

    async def remove_prefix(self, prefix: str, keep: str) -> None:
        """Remove the values whose keys begin with `prefix`, but for those that begin with `keep`."""
        await self.database.execute(
            "DELETE FROM facts WHERE substr(key, 1, length(?1)) = ?1"
            " AND substr(key, 1, length(?2)) <> ?2",
            prefix,
            keep,
        )
