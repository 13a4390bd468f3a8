"""Reports what a chat's sandbox does, as it happens, to the ledger."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent.errors import ToolError
from agent.store.errors import StoreError
from agent.store.ledger import LedgerTable


class Observer(ABC):
    """Its methods raise ToolError where something cannot be recorded: then it is not done."""

    @abstractmethod
    async def connection(self, host: str, refused: str = "") -> None:
        """Called before a connection to "name:port", and after one was refused, with the reason."""

    @abstractmethod
    async def tainted(self, source: str) -> None:
        """The workspace now holds a stranger's text that came from `source`."""

    @abstractmethod
    async def secret(self, name: str, where: str) -> None:
        """Called before a configured secret goes to that address or program."""


class NoObserver(Observer):
    """Records nothing."""

    async def connection(self, host: str, refused: str = "") -> None: ...

    async def tainted(self, source: str) -> None: ...

    async def secret(self, name: str, where: str) -> None: ...


@dataclass(frozen=True)
class LedgerObserver(Observer):
    """Records what a chat does in the ledger."""

    ledger: LedgerTable
    chat: str

    async def connection(self, host: str, refused: str = "") -> None:
        async with recorded_first():
            await self.ledger.connection(self.chat, host, refused)

    async def tainted(self, source: str) -> None:
        async with recorded_first():
            await self.ledger.record("taint", self.chat, what="files", source=source)

    async def secret(self, name: str, where: str) -> None:
        async with recorded_first():
            await self.ledger.secret_used(name, where)


@asynccontextmanager
async def recorded_first() -> AsyncIterator[None]:
    """Raise ToolError where the block raises StoreError."""
    try:
        yield
    except StoreError as error:
        raise ToolError(f"It cannot be recorded, so it is not done: {error}") from None


Observe = Callable[[str], Observer]
"""The observer of a chat."""
