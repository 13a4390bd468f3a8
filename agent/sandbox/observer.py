"""Reports what a chat's sandbox does, as it happens, to the ledger."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agent.errors import ToolError
from agent.store.errors import StoreError
from agent.store.ledger import LedgerTable


@dataclass
class Observer:
    """Records what a chat does; without a `ledger`, nothing. Its methods raise ToolError where something cannot be
    recorded: then it is not done."""

    ledger: LedgerTable | None = None
    chat: str = ""

    async def connection(self, host: str, refused: str = "") -> None:
        """Record a connection to `host` ("name:port") before it is made, or why it was `refused`."""
        with recorded_first():
            if self.ledger:
                await self.ledger.connection(self.chat, host, refused)

    async def tainted(self, source: str) -> None:
        """Record that the workspace now holds untrusted text that came from `source`."""
        with recorded_first():
            if self.ledger:
                await self.ledger.record("taint", self.chat, what="files", source=source)

    async def secret(self, name: str, where: str) -> None:
        """Record that a configured secret is about to go to an address or a program (`where`)."""
        with recorded_first():
            if self.ledger:
                await self.ledger.secret_used(name, where)


@contextmanager
def recorded_first() -> Iterator[None]:
    """Raise ToolError where the block raises StoreError."""
    try:
        yield
    except StoreError as error:
        raise ToolError(f"It cannot be recorded, so it is not done: {error}") from None


Observe = Callable[[str], Observer]
"""The observer of a chat."""
