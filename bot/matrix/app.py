"""The Matrix bot: one account, its session and its keys in the state folder.

Used like bot.telegram.app.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.leaks import LeakDetector
from agent.store import Store
from backend.protocol import Phrase
from bot.access import Access
from bot.commands.context import HandlerContext
from bot.matrix.channel import MatrixChannel
from bot.matrix.encryption import Encryption
from bot.matrix.homeserver import Homeserver, HomeserverBusy, HomeserverError
from bot.matrix.keyboards import KeyboardStore
from bot.matrix.live import LiveEventStore
from bot.matrix.rooms import SOURCE
from bot.matrix.session import MatrixSession, Secret, log_in, new_device, only_process, read_session
from bot.matrix.sync import LONGEST_BACKOFF, LoggedOut, Syncs
from bot.messaging_apps import AppHealth, InboundHealth, MessagingApp
from bot.settings import MatrixSection

log = logging.getLogger(__name__)


class MatrixConfig(MatrixSection):
    """The section of the settings, and the other settings that the app needs. `folder` holds the session and
    the keys."""

    folder: Path
    timezone: str = "UTC"
    repos: tuple[str, ...] = ()


class MatrixApp(MessagingApp):
    """The bot's Matrix account; `serve` raises AppUnavailable."""

    channel: MatrixChannel

    def __init__(self, config: MatrixConfig, store: Store, leaks: LeakDetector) -> None:
        self.config = config
        self.server = Homeserver(config.homeserver)
        self.unfinished = LiveEventStore(store.key_values)
        self._leaks = leaks
        super().__init__(
            store,
            MatrixChannel(self.server, KeyboardStore(store.key_values), self.unfinished, leaks),
            Access(
                store.people,
                SOURCE,
                frozenset(config.owners),
                frozenset(config.allow),
                config.groups,
            ),
            timezone=config.timezone,
            repos=config.repos,
            language=config.language,
            reactions="seen",  # a receipt; another event for each answer would cost the homeserver's patience
        )
        self.sync_health = InboundHealth("Matrix", self.health_changed)

    @property
    def health(self) -> AppHealth:
        return AppHealth(self.config.user, self.sync_health.last_at, self.sync_health.problem())

    async def connect(self) -> None:
        """Reach the homeserver, waiting as long as necessary, and log in if there is no session."""
        await self._open(read_session(*self._account) or new_device(*self._account))

    @property
    def _account(self) -> tuple[Path, str, str]:
        return self.config.folder, self.config.homeserver, self.config.user

    async def _open(self, session: MatrixSession) -> None:
        """Log in as that device, where it is not logged in, and open its keys."""
        pause = 0.5
        secret = Secret.of(self.config.password_file, self.config.token_file)
        while not session.token:
            try:
                session = await log_in(self.server, self.config.folder, session, secret)
            except HomeserverError as error:
                self.sync_health.failed(Phrase("Matrix: {why}.", why=Phrase.of(error)))
                await asyncio.sleep(error.after if isinstance(error, HomeserverBusy) else pause)
                pause = min(LONGEST_BACKOFF, 1.5 * pause)
            else:
                await self.store.ledger.secret_used("matrix.session", self.server.url)
        self.server.token = session.token
        self._leaks.watch("of the Matrix session", session.token)
        self.channel.encryption = Encryption(session, self.config.folder, self.server)

    async def listen(self, context: HandlerContext) -> None:
        async with self.channel.tasks, asyncio.TaskGroup() as group:
            group.create_task(self.unfinished.end_all(self.channel))
            while True:
                encryption = self.channel.encryption
                assert encryption
                try:
                    await Syncs(self.channel, encryption, context, self.sync_health).run()
                except LoggedOut as ended:
                    await self._log_in_again(soft=ended.soft)

    async def _log_in_again(self, *, soft: bool) -> None:
        """The homeserver has ended the session: a `soft` logout keeps the device, else a new one is made."""
        self.sync_health.failed(Phrase("Matrix: the homeserver has ended the bot's session."))
        self.server.token = ""
        self.channel.synced.clear()
        if self.channel.encryption is not None:
            self.channel.encryption.close()
            self.channel.encryption = None
        known = read_session(*self._account) if soft else None
        if known:
            known = known.model_copy(update={"token": ""})
        await self._open(known or new_device(*self._account))

    async def close(self) -> None:
        await self.server.close()
        if self.channel.encryption is not None:
            self.channel.encryption.close()


@asynccontextmanager
async def matrix_app(
    config: MatrixConfig, store: Store, leaks: LeakDetector
) -> AsyncIterator[MatrixApp]:
    """The app, not yet listening; `leaks` knows what it must not send. Raises AppUnavailable if another
    process has this account's keys."""
    with only_process(config.folder):
        app = MatrixApp(config, store, leaks)
        await app.unfinished.load()
        try:
            yield app
        finally:
            await app.close()
