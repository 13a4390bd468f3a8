"""The running whole: backend with the embedded server and Pocket, bot, network, disk, clock."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from backend.client import BackendClient, BackendUnavailable
from backend.protocol import Status
from bench.campaign.clock import Clock
from bench.campaign.line import Line
from bench.service import Service, environment
from bot.localgram.chat import Chat
from fakes.localgram import Localgram, Person
from fakes.small_disk import Disk

TOKEN = "1000001:campaign"
OWNER = 1
START_SECONDS = 120.0
GROUPS = 2


@dataclass(frozen=True)
class Whole:
    """Everything that a fault may strike. `places` are who talks, and where."""

    gram: Localgram
    line: Line
    disk: Disk
    clock: Clock
    backend: Service
    bot: Service
    places: tuple[tuple[Person, Chat], ...]
    environment: dict[str, str]
    chance: Random

    @property
    def database(self) -> Path:
        return self.disk.folder / "voltaire.db"

    async def status(self) -> Status | None:
        """What the backend says; None while it is away."""
        async with BackendClient(Path(self.environment["VOLTAIRE_BACKEND__SOCKET"])) as client:
            with suppress(BackendUnavailable):
                return await client.status()
        return None

    async def server(self) -> int | None:
        """The process id of llama-server; None while there is none."""
        status = await self.status()
        return status.backend.pid if status else None

    async def ready(self) -> None:
        """Return once updates are asked for and the model is warm."""
        async with asyncio.timeout(START_SECONDS):
            while not self.gram.world.updates.polls or not await self._warm():
                await asyncio.sleep(0.2)

    async def _warm(self) -> bool:
        status = await self.status()
        return bool(status and status.backend.serving and status.backend.warm)

    def heal(self) -> None:
        """What a fault that was cut off may have left behind."""
        self.gram.faults.list.clear()
        self.line.speak()
        self.disk.empty()
        self.clock.set(0)

    def left(self) -> list[str]:
        """Command lines of processes that outlived the whole."""
        return [line for path in Path("/proc").glob("[0-9]*") if (line := self._ours(path))]

    def _ours(self, process: Path) -> str:
        mark = f"VOLTAIRE_STATE__DIR={self.disk.folder}\0".encode()
        try:
            if mark in (process / "environ").read_bytes():
                return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            pass
        return ""


@asynccontextmanager
async def whole(home: Path, disk: Disk, private: int, chance: Random) -> AsyncIterator[Whole]:
    """Started, with that many private chats and two groups; everything has ended afterwards."""
    clock = Clock(home)
    async with AsyncExitStack() as stack:
        gram = await stack.enter_async_context(Localgram(TOKEN))
        line = await stack.enter_async_context(Line(gram.port))
        places = tuple(_places(gram, private))
        allowed = ",".join(str(chat.id) for _, chat in places)
        settings = environment(
            home,
            TELEGRAM__TOKEN=TOKEN,
            TELEGRAM__BASE_URL=line.url,
            TELEGRAM__OWNERS=OWNER,
            TELEGRAM__ALLOW=allowed,
        )
        settings |= clock.environment
        backend, bot = (
            Service((word,), settings, home / f"{word}.log") for word in ("backend", "bot")
        )
        await stack.enter_async_context(backend.kept())
        await stack.enter_async_context(bot.kept())
        made = Whole(gram, line, disk, clock, backend, bot, places, settings, chance)
        await made.ready()
        try:
            yield made
        finally:
            made.heal()


def _places(gram: Localgram, private: int) -> list[tuple[Person, Chat]]:
    gram.user("Olga Owner", id=OWNER, started=True)  # alerts go to her chat, nobody talks there
    people = [gram.user(f"Person {number}", started=True) for number in range(private)]
    alone = [(person, person.chat()) for person in people]
    groups = [gram.group(f"Group {n}", people[n], supergroup=True) for n in range(GROUPS)]
    return alone + list(zip(people, groups, strict=False))


def uid() -> str:
    return "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
