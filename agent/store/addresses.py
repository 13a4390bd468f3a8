"""Web addresses that a chat knows: those that a search returned, and those in people's own words."""

from collections.abc import Collection
from dataclasses import dataclass

from agent.store import chats
from agent.store.database import Database, storable

MOST = 2000  # of a chat; the newest are kept
MOST_TEXTS = 500  # newest messages that name a host


@dataclass(frozen=True)
class AddressTable:
    database: Database

    async def keep(self, chat: str, addresses: Collection[str]) -> None:
        """Let the chat read these from now on; a known one becomes the newest."""
        async with self.database.write() as tx:
            await chats.ensure(tx, chat)
            sql = (
                "INSERT INTO addresses (chat, address, at) VALUES (?1, ?2, ?3)"
                " ON CONFLICT DO UPDATE SET at = ?3"
            )
            await tx.many(sql, [(chat, storable(address), tx.now) for address in addresses])
            sql = (
                "DELETE FROM addresses WHERE chat = ?1 AND address NOT IN"
                " (SELECT address FROM addresses WHERE chat = ?1 ORDER BY at DESC LIMIT ?2)"
            )
            await tx.run(sql, chat, MOST)

    async def kept(self, chat: str, address: str) -> bool:
        sql = "SELECT 1 FROM addresses WHERE chat = ? AND address = ?"
        return bool(await self.database.all(sql, chat, address))

    async def said(self, chat: str, host: str) -> list[str]:
        """Texts of messages that name a host and that people wrote themselves: neither forwarded ones nor tasks
        of jobs."""
        sql = (
            "SELECT words FROM inbox WHERE chat = ? AND kind <> 'job' AND stranger = ''"
            " AND origin IN ('person', 'owner') AND instr(lower(words), ?) ORDER BY id DESC LIMIT ?"
        )
        return [row[0] for row in await self.database.all(sql, chat, host, MOST_TEXTS)]
