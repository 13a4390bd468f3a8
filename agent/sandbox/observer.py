"""Reports what a chat's sandbox does, as it happens, to the ledger."""

from abc import ABC, abstractmethod
from collections.abc import Callable


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


Observe = Callable[[str], Observer]
"""The observer of a chat."""
