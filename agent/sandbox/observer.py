"""What a chat's sandbox tells of, as it happens, for the ledger."""

from collections.abc import Callable
from typing import Protocol


class Observer(Protocol):
    """ToolError where something cannot be recorded: then it is not done."""

    async def connection(self, host: str, refused: str = "") -> None:
        """Before a connection to "name:port", or after one was refused, with the reason."""
        ...

    async def tainted(self, source: str) -> None:
        """The workspace holds text of a stranger now, from there."""
        ...

    async def secret(self, name: str, where: str) -> None:
        """Before a configured secret goes to that address or program."""
        ...


class Unobserved:
    """Nothing is recorded."""

    async def connection(self, host: str, refused: str = "") -> None: ...

    async def tainted(self, source: str) -> None: ...

    async def secret(self, name: str, where: str) -> None: ...


Observe = Callable[[str], Observer]
"""The observer of a chat."""


def unobserved(chat: str) -> Observer:  # noqa: ARG001 - the form of an Observe
    return Unobserved()
