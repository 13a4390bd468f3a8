"""What one chat may search and read of the web, and which addresses need no question."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from yarl import URL

from agent.store.addresses import AddressTable
from agent.web.addresses import addresses_in
from agent.web.search import SearXNG

Reading = Literal["seen", "ask", "never"]


@dataclass(frozen=True)
class Browser:
    """`engine` None: the owner has named none. `reading` is agent.web.read of the configuration."""

    chat: str
    table: AddressTable
    engine: SearXNG | None = None
    reading: Reading = "seen"

    async def found(self, addresses: Collection[str]) -> None:
        """A search has returned these."""
        await self.table.keep(self.chat, addresses)

    async def seen(self, address: str, written: str = "") -> bool:
        """Whether a person wrote the address (agent.web.addresses.canonical), in this chat or in `written`, or a
        search returned it, just as it stands."""
        if await self.table.kept(self.chat, address):
            return True
        texts = await self.table.said(self.chat, URL(address).host or "")
        if not any(address in addresses_in(text) for text in [written, *texts]):
            return False
        await self.table.keep(self.chat, [address])  # also when that message is deleted by age
        return True
