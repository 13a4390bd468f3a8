"""A command of ours as systemd keeps it: in a process of its own, started again when it dies."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bot.state import resident_mib

VOLTAIRE = Path(sys.executable).with_name("voltaire")
END_SECONDS = 40.0


def environment(home: Path, **settings: object) -> dict[str, str]:
    """No configuration but `settings`, written as SECTION__KEY; state and socket under `home`."""
    ours = {
        "STATE__DIR": home / "s",
        "BACKEND__SOCKET": home / "b.sock",
        **settings,
    }
    plain = {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")}
    named = {f"VOLTAIRE_{key}": str(value) for key, value in ours.items()}
    return plain | {"XDG_CONFIG_HOME": str(home / "c")} | named


@dataclass
class Service:
    """`lives` counts its starts; `pid` is None between two of them."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    pause: float = 1.0  # RestartSec
    lives: int = 0
    pid: int | None = None
    codes: list[int] = field(default_factory=list)  # how its lives ended

    @asynccontextmanager
    async def kept(self) -> AsyncIterator["Service"]:
        """Started now and after each death; ended in an orderly way when the block is left."""
        keeping = asyncio.create_task(self._keep())
        try:
            yield self
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])

    def kill(self) -> bool:
        """SIGKILL for this life; False between two."""
        if self.pid is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return True

    def resident_mib(self) -> float | None:
        return resident_mib(self.pid) if self.pid else None

    async def _keep(self) -> None:
        while True:
            with self.log.open("ab") as log:
                process = await asyncio.create_subprocess_exec(
                    VOLTAIRE, *self.words,
                    env=self.environment, stdout=log, stderr=log, start_new_session=True,
                )  # fmt: skip
            self.lives, self.pid = self.lives + 1, process.pid
            try:
                self.codes.append(await process.wait())
            finally:
                self.pid = None
                if process.returncode is None:
                    await _end(process)
            await asyncio.sleep(self.pause)


async def _end(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), END_SECONDS)
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
