"""What the wizard asks about models and servers, answered from the backend, for one state folder."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from backend.build.build import Sources, build
from backend.build.recipe import CannotBuild, Recipe, recipe
from backend.config import BackendConfig
from backend.models.outlook import Machine, outlook, propose
from backend.models.profile import Profile, ProfileError, locate
from backend.models.pull import PullError, pull
from backend.server.launch import EMBEDDED, CannotStart, find_binary
from bot.cli.connect import profile_of
from bot.cli.server import machine
from bot.setup import SetupError


@dataclass(frozen=True)
class BackendModelSetup:
    """bot.setup.models.ModelSetup over the state folder `state`; `say` prints."""

    state: Path
    say: Callable[[str], None]

    async def propose(self) -> tuple[str, str]:
        found = await asyncio.to_thread(lambda: propose(self._machine(), self._profile))
        return found.name, found.line

    async def outlook(self, profile: str) -> str:
        found = await asyncio.to_thread(lambda: outlook(self._profile(profile), self._machine()))
        return found.line

    def check(self, profile: str) -> None:
        self._profile(profile)

    def missing(self, profile: str) -> list[str]:
        folder = self._config().models_folder
        paths = [locate(source, folder) for source in self._profile(profile).sources]
        return [path.name for path in paths if not path.is_file()]

    async def pull(self, profile: str) -> None:
        sources = self._profile(profile).sources
        try:
            await asyncio.to_thread(pull, sources, self._config(), self.say)
        except PullError as error:
            raise SetupError(str(error)) from None

    async def server(self, wanted: str) -> str:
        try:
            found = await find_binary(self._config(wanted))
        except CannotStart as error:
            raise SetupError(str(error)) from None
        return "" if found.command == EMBEDDED else found.command[0]

    def needs_card(self, profile: str) -> bool:
        return self._profile(profile).gpu

    async def recipe(self) -> str:
        return (await self._recipe()).title

    async def build(self) -> None:
        try:
            await build(await self._recipe(), Sources(), self.state, self.say)
        except CannotBuild as error:
            raise SetupError(str(error)) from None

    async def _recipe(self) -> Recipe:
        here = await machine()
        try:
            return await asyncio.to_thread(recipe, "cuda" if here.cards else "cpu", here)
        except CannotBuild as error:
            raise SetupError(str(error)) from None

    def _profile(self, name: str) -> Profile:
        try:
            return profile_of(name)
        except ProfileError as error:
            raise SetupError(str(error)) from None

    def _machine(self) -> Machine:
        return Machine.here(self._config().models_folder)

    def _config(self, server: str = "auto") -> BackendConfig:
        return BackendConfig(state_dir=self.state, server=server)
