"""The bot as a process of its own that can be killed, and what it left in its database."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from bot.state import resident_mib
from fakes.command_line import start_voltaire
from fakes.localgram import Localgram
from fakes.patience import SECONDS, soon


class Process:
    """`voltaire run` against a Bot API server, unless it is None, and a model server; `command` "bot" is the
    bot alone."""

    def __init__(
        self,
        gram: Localgram | None,
        folder: Path,
        model: str,
        owner: int = 0,
        command: str = "run",
    ) -> None:
        self.database = folder / "voltaire.db"
        config = folder / "config" / "voltaire" / "config.toml"  # else the machine's is read
        config.parent.mkdir(parents=True, exist_ok=True)
        config.touch()
        self._environment = {
            **{name: value for name, value in os.environ.items() if not _of_a_service(name)},
            "XDG_CONFIG_HOME": str(folder / "config"),
            "VOLTAIRE_BACKEND__KIND": "external",
            "VOLTAIRE_BACKEND__URL": model,
            "VOLTAIRE_BACKEND__SOCKET": str(folder / "b.sock"),
            "VOLTAIRE_STATE__DIR": str(folder),
        }
        if gram is not None:
            bot = {"TOKEN": gram.token, "BASE_URL": gram.url, "OWNERS": str(owner)}
            self.configure(**{f"TELEGRAM__{key}": value for key, value in bot.items()})
        self._command = command
        self.first = ""  # Python that a new interpreter runs before the program; without it the test's is forked
        self._log = folder / "log.txt"
        self._process: asyncio.subprocess.Process | None = None

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8") if self._log.exists() else ""

    @property
    def pid(self) -> int:
        """Of the newest one."""
        assert self._process
        return self._process.pid

    def configure(self, **settings: str) -> None:
        """Settings by the names of their environment variables, without the prefix."""
        self._environment |= {f"VOLTAIRE_{name}": value for name, value in settings.items()}

    def allow(self, people: Sequence[int]) -> None:
        self.configure(TELEGRAM__ALLOW=",".join(map(str, people)))

    def set(self, key: str, value: object) -> None:
        """A setting, as SECTION__KEY, for the next start."""
        self._environment[f"VOLTAIRE_{key}"] = str(value)

    def resident_mib(self) -> float:
        """The memory that is resident now."""
        assert self._process
        return resident_mib(self._process.pid) or 0.0

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Process"]:
        """Started; killed with SIGKILL at the end, whatever it is doing.

        Nobody here may have its database open meanwhile: SQLite keeps what it knows of an open file's locks,
        and a fork inherits that.
        """
        with self._log.open("ab") as log:
            given: dict[str, Any] = {"stdout": log, "stderr": log, "start_new_session": True}
            if self.first:
                program = f"{self.first}\nfrom bot.cli import main; main()"
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-c", program, self._command, env=self._environment, **given
                )
            else:
                self._process = await start_voltaire(self._command, env=self._environment, **given)
        try:
            yield self
        finally:
            await self.kill()

    async def ended(self) -> int:
        """Wait for its end; the exit code."""
        assert self._process
        return await self._process.wait()

    async def kill(self) -> None:
        assert self._process
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    async def stop(self) -> None:
        """An orderly end, as by systemd."""
        assert self._process
        self._process.terminate()
        async with asyncio.timeout(SECONDS):
            code = await self._process.wait()
        assert code == 0, (code, self.log)

    async def row(self, sql: str) -> Any:
        """The first column of the first row of a query, as soon as there is one."""
        return await soon(lambda: self._value(sql))

    def _value(self, sql: str) -> Any:
        if not self.database.exists():
            return None
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
            try:
                row = connection.execute(sql).fetchone()
            except sqlite3.OperationalError:
                return None  # it is being made
        return row[0] if row else None


def _of_a_service(name: str) -> bool:
    """Whether a variable tells a process of ours where a service of this machine has its things."""
    given = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "CREDENTIALS_DIRECTORY", "RUNTIME_DIRECTORY")
    return name.startswith("VOLTAIRE_") or name in given
