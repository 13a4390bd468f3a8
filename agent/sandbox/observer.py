"""Reports what a chat's sandbox does, as it happens, to the ledger."""

from collections.abc import Callable


class Observer:
    """This one records nothing. A subclass raises ToolError where something cannot be recorded: then it is not done."""

    async def connection(self, host: str, refused: str = "") -> None:
        """Called before a connection to "name:port", and after one was refused, with the reason."""

    async def tainted(self, source: str) -> None:
        """The workspace now holds a stranger's text that came from `source`."""

    async def secret(self, name: str, where: str) -> None:
        """Called before a configured secret goes to that address or program."""


Observe = Callable[[str], Observer]
"""The observer of a chat."""
