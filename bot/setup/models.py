"""What the wizard asks about models and servers; bot/cli/setup_models.py answers from the backend."""

from typing import Protocol


class ModelSetup(Protocol):
    """Each method may raise SetupError."""

    async def propose(self) -> tuple[str, str]:
        """The profile for this machine, and one line: what it will do, and why this one."""

    async def outlook(self, profile: str) -> str:
        """The same line for any profile."""

    def check(self, profile: str) -> None:
        """Raise SetupError where there is no such profile."""

    def missing(self, profile: str) -> list[str]:
        """Names of its files that are not here."""

    async def pull(self, profile: str) -> None:
        """Download what is missing."""

    async def server(self, wanted: str) -> str:
        """The path of the server that "auto" or a path stands for; "" for the embedded one."""

    def needs_card(self, profile: str) -> bool: ...

    async def recipe(self) -> str:
        """How a server for this machine would be built, in a few words."""

    async def build(self) -> None:
        """Build a server; "auto" finds it from then on."""
