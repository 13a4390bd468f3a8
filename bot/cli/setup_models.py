"""What the wizard asks of the backend: profiles, files, servers; on this machine, for one state."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bot.setup import SetupError

if TYPE_CHECKING:
    from backend.build.recipe import Recipe
    from backend.config import BackendConfig
    from backend.models.profile import Profile, Source
    from bot.cli.outlook import Machine


@dataclass(frozen=True)
class BackendModelSetup:
    """bot.setup.models.ModelSetup over the state folder `state`; `say` prints."""

    state: Path
    say: Callable[[str], None]

    async def propose(self) -> tuple[str, str]:
        from bot.cli.outlook import propose

        found = await asyncio.to_thread(propose, self._machine(), self._profile)
        return found.name, found.line

    async def outlook(self, profile: str) -> str:
        from bot.cli.outlook import outlook

        found = await asyncio.to_thread(outlook, self._profile(profile), self._machine())
        return found.line

    def check(self, profile: str) -> None:
        self._profile(profile)

    def missing(self, profile: str) -> list[str]:
        from backend.models.profile import locate

        folder = self._config().models_folder
        paths = [locate(source, folder) for source in self._sources(profile)]
        return [path.name for path in paths if not path.is_file()]

    async def pull(self, profile: str) -> None:
        from backend.models.pull import PullError, pull

        try:
            await asyncio.to_thread(pull, self._sources(profile), self._config(), self.say)
        except PullError as error:
            raise SetupError(str(error)) from None

    async def server(self, wanted: str) -> str:
        from backend.server.binary import EMBEDDED, CannotStart, find

        try:
            found = await find(self._config(wanted))
        except CannotStart as error:
            raise SetupError(str(error)) from None
        return "" if found.command == EMBEDDED else found.command[0]

    def needs_card(self, profile: str) -> bool:
        return self._profile(profile).gpu

    async def recipe(self) -> str:
        return (await self._recipe()).title

    async def build(self) -> None:
        from backend.build.build import Sources, build
        from backend.build.recipe import CannotBuild

        try:
            await build(await self._recipe(), Sources(), self.state, self.say)
        except CannotBuild as error:
            raise SetupError(str(error)) from None

    async def _recipe(self) -> "Recipe":
        from backend.build.recipe import CannotBuild, recipe
        from bot.cli.server import machine

        here = await machine()
        try:
            return await asyncio.to_thread(recipe, "cuda" if here.cards else "cpu", here)
        except CannotBuild as error:
            raise SetupError(str(error)) from None

    def _sources(self, profile: str) -> list["Source"]:
        found = self._profile(profile)
        return [source for source in (found.model, found.draft) if source]

    def _profile(self, name: str) -> "Profile":
        from backend.models.profile import ProfileError, load
        from bot.cli.connect import profiles_folder

        try:
            return load(name, profiles_folder())
        except ProfileError as error:
            raise SetupError(str(error)) from None

    def _machine(self) -> "Machine":
        from backend import proc
        from bot.cli.checks.server import memory_of_cards
        from bot.cli.outlook import Machine

        host = int(proc.available_mib() * 2**20)
        return Machine(tuple(memory_of_cards()), host, self._config().models_folder)

    def _config(self, server: str = "auto") -> "BackendConfig":
        from backend.config import BackendConfig

        return BackendConfig(state_dir=self.state, server=server)
