"""The Matrix bot: one account, its session and its keys in the state folder.

async with matrix_app(config, store, leaks) as app:
    await app.serve(Services(chats, ...))      # until cancelled
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.leaks import LeakDetector
from agent.store import Store
from bot.access import Access
from bot.commands.context import HandlerContext
from bot.inbound_health import InboundHealth
from bot.matrix.channel import MatrixChannel
from bot.matrix.encryption import Encryption
from bot.matrix.homeserver import Homeserver, HomeserverBusy, HomeserverError
from bot.matrix.keyboards import KeyboardStore
from bot.matrix.live import LiveEventStore
from bot.matrix.rooms import SOURCE
from bot.matrix.session import MatrixSession, Secret, log_in, new_device, read_session
from bot.matrix.sync import LONGEST_BACKOFF, LoggedOut, Syncs
from bot.matrix.timeline import Timeline
from bot.matrix.verification import DeviceVerification
from bot.messaging_apps import AppHealth, MessagingApp, only_process
from bot.settings import MatrixSection
from bot.texts import TEXTS

log = logging.getLogger(__name__)


class MatrixConfig(MatrixSection):
    """The settings' section, with what else the app needs. `folder` holds the session and the keys."""

    folder: Path
    timezone: str = "UTC"
    repos: tuple[str, ...] = ()


class MatrixApp(MessagingApp):
    """`serve` raises AppUnavailable."""

    channel: MatrixChannel

    def __init__(self, config: MatrixConfig, store: Store, leaks: LeakDetector) -> None:
        self.config = config
        self.server = Homeserver(config.homeserver)
        self.unfinished = LiveEventStore(store.key_values, TEXTS)
        self._leaks = leaks
        super().__init__(
            store,
            MatrixChannel(
                self.server, KeyboardStore(store.key_values), self.unfinished, leaks, TEXTS
            ),
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
        """Log in, the first time; the homeserver may be away for as long as it likes."""
        await self._open(self._known_session() or self._new_device())

    async def _open(self, session: MatrixSession) -> None:
        """Be that device, logged in."""
        pause = 0.5
        secret = Secret.of(self.config.password_file, self.config.token_file)
        while not session.token:
            try:
                session = await log_in(self.server, self.config.folder, session, secret)
            except HomeserverError as error:
                self.sync_health.failed(f"Matrix: {error}.")
                await asyncio.sleep(error.after if isinstance(error, HomeserverBusy) else pause)
                pause = min(LONGEST_BACKOFF, 1.5 * pause)
            else:
                await self.store.ledger.secret_used("matrix.session", self.server.url)
        self.server.token = session.token
        self._leaks.watch("of the Matrix session", session.token)
        self.channel.synced.clear()
        if self.channel.encryption is not None:
            self.channel.encryption.close()
        self.channel.encryption = Encryption(session, self.config.folder, self.server)

    async def listen(self, context: HandlerContext) -> None:
        async with self.channel.tasks, asyncio.TaskGroup() as group:
            group.create_task(self.unfinished.end_all(self.channel))
            while True:
                encryption = self.channel.encryption
                assert encryption
                timeline = Timeline(self.channel, encryption, context)
                await timeline.load()
                syncs = Syncs(
                    self.server,
                    self.channel,
                    encryption,
                    timeline,
                    self.sync_health,
                    self.store.key_values,
                    DeviceVerification(
                        encryption,
                        self.store.key_values,
                        lambda user: user in self.access.owners,
                        context.start,
                    ),
                )
                try:
                    await syncs.run()
                except LoggedOut as ended:
                    await self._log_in_again(soft=ended.soft)

    async def _log_in_again(self, *, soft: bool) -> None:
        """Our device was deleted, or has to show its password once more."""
        self.sync_health.failed("Matrix: the homeserver has ended the bot's session.")
        self.server.token = ""
        self.channel.synced.clear()
        if self.channel.encryption is not None:
            self.channel.encryption.close()
            self.channel.encryption = None
        known = self._known_session()
        if soft and known:
            await self._open(known.model_copy(update={"token": ""}))
        else:
            await self._open(self._new_device())

    def _known_session(self) -> MatrixSession | None:
        return read_session(self.config.folder, self.config.homeserver, self.config.user)

    def _new_device(self) -> MatrixSession:
        return new_device(self.config.folder, self.config.homeserver, self.config.user)

    async def close(self) -> None:
        await self.server.close()
        if self.channel.encryption is not None:
            self.channel.encryption.close()


@asynccontextmanager
async def matrix_app(
    config: MatrixConfig, store: Store, leaks: LeakDetector
) -> AsyncIterator[MatrixApp]:
    """The app, not yet listening; `leaks` knows what it must not send. Raises AppUnavailable where another
    process has this account's keys."""
    with only_process(config.folder.parent / "run" / "matrix.lock", "Matrix account"):
        app = MatrixApp(config, store, leaks)
        await app.unfinished.load()
        try:
            yield app
        finally:
            await app.close()
