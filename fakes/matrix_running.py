"""A running Matrix bot at a real homeserver, with a scripted model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.leaks import LeakDetector
from agent.store import open_store
from bot.matrix.app import MatrixApp, MatrixConfig, matrix_app
from fakes.bot_running import RunningBot, ScriptedAgent
from fakes.synapse import PASSWORD


@dataclass(kw_only=True)
class MatrixScenario(ScriptedAgent):
    """`url` is the homeserver's, or a proxy's before it; `account` the bot's, `owner` a user id."""

    url: str
    folder: Path
    account: str
    owner: str
    config: dict[str, Any] = field(default_factory=dict)
    leaks: LeakDetector = field(default_factory=LeakDetector)

    @property
    def matrix(self) -> MatrixConfig:
        password = self.folder / "password"
        password.write_text(PASSWORD)
        fields = {
            "homeserver": self.url,
            "user": self.account,
            "password_file": password,
            "owners": [self.owner],
            "folder": self.folder / "matrix",
        }
        return MatrixConfig(**{**fields, **self.config})

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RunningBot[MatrixApp]]:
        """The bot, syncing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        async with (
            open_store(self.folder / "voltaire.db") as store,
            matrix_app(self.matrix, store, self.leaks) as bot,
            self.serving(store, bot) as running,
        ):
            yield running
