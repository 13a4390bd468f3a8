"""The Telegram bot: python-telegram-bot's application inside our own loop.

async with telegram_app(config, store, leaks) as app:
    async with Chats(..., listener=app.replies) as chats:
        await app.serve(Services(chats, ...))      # until cancelled
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from telegram.error import InvalidToken, TelegramError
from telegram.ext import ApplicationBuilder

from agent.leaks import LeakDetector
from agent.store import Store
from bot.access import Access
from bot.commands.context import HandlerContext
from bot.messaging_apps import AppHealth, AppUnavailable, InboundHealth, MessagingApp
from bot.settings import TelegramSection
from bot.telegram.channel import TelegramChannel, download_limit
from bot.telegram.connection import Connection
from bot.telegram.handlers import UPDATES, handlers, on_wait, register_commands
from bot.telegram.live import LiveMessageStore
from bot.telegram.message_calls import SOURCE, MessageCalls, Pacers
from bot.telegram.updates import ANSWER_SECONDS, LONGEST_BACKOFF, Dispatcher, Poller, Webhook, why


class TelegramConfig(TelegramSection):
    """The section of the settings, and the other settings that the app needs."""

    timezone: str = "UTC"
    repos: tuple[str, ...] = ()
    demo: bool = False
    page: str = ""  # the owner's page at an HTTPS address
    answer_seconds: float = 10.0  # how long Telegram may take to answer a call

    @property
    def root(self) -> str:
        return self.base_url.rstrip("/")


class TelegramApp(MessagingApp):
    """The Telegram bot; `serve` raises AppUnavailable."""

    def __init__(self, config: TelegramConfig, store: Store, leaks: LeakDetector) -> None:
        self.config = config
        own_server = config.root != TelegramSection().base_url
        self.application = (
            ApplicationBuilder()
            .token(config.token.get_secret_value())
            .base_url(f"{config.root}/bot")
            .base_file_url(f"{config.root}/file/bot")
            .request(Connection(config.root, config.answer_seconds, download_limit(own_server)))
            .get_updates_request(Connection(config.root, ANSWER_SECONDS))
            .updater(None)
            .build()
        )
        self.bot = self.application.bot
        self.calls = MessageCalls(self.bot, Pacers())
        self.unfinished = LiveMessageStore(store.key_values)
        owners, allow = (frozenset(map(str, ids)) for ids in (config.owners, config.allow))
        super().__init__(
            store,
            TelegramChannel(
                self.calls,
                self.unfinished,
                leaks,
                own_server=own_server,
                rich=config.rich_messages,
            ),
            Access(store.people, SOURCE, owners, allow, config.groups),
            timezone=config.timezone,
            repos=config.repos,
            reactions=config.reactions,
            language=config.language,
            demo=config.demo,
            page=None if config.demo else config.page,
        )
        self.poll = InboundHealth("Telegram", self.health_changed)

    @property
    def health(self) -> AppHealth:
        username = None
        with suppress(RuntimeError):  # not connected yet
            username = self.bot.username
        return AppHealth(username, self.poll.last_at, self.poll.problem())

    async def connect(self) -> None:
        """Reach the Bot API server, however long it is away, and learn the bot's name."""
        pause = 0.5
        while True:
            try:
                await self.application.initialize()
                break
            except InvalidToken:
                raise AppUnavailable(
                    "Telegram does not know this bot token; see @BotFather.", refused=True
                ) from None
            except TelegramError as error:
                self.poll.failed(why(error))
            await asyncio.sleep(pause)
            pause = min(LONGEST_BACKOFF, 1.5 * pause)
        await self.store.ledger.secret_used("telegram.token", self.config.root)

    async def listen(self, context: HandlerContext) -> None:
        self.application.add_handlers(handlers(context))
        waits = partial(on_wait, context)
        take = Dispatcher(self.application, self.store.set_aside, waits).take
        url, listen = self.config.webhook_url, self.config.webhook_listen
        updates: Poller | Webhook
        if url:
            updates = Webhook(self.bot, self.poll, take, UPDATES, url, listen)
        else:
            updates = Poller(self.bot, self.poll, take, UPDATES)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.unfinished.end_all(self.calls))
            group.create_task(updates.run())
            group.create_task(register_commands(context, self.bot))


@asynccontextmanager
async def telegram_app(
    config: TelegramConfig, store: Store, leaks: LeakDetector
) -> AsyncIterator[TelegramApp]:
    """The app, not yet listening; `leaks` knows what it must not send."""
    app = TelegramApp(config, store, leaks)
    await app.unfinished.load()
    try:
        yield app
    finally:
        for shutdown in (app.application.shutdown, app.bot.shutdown):
            # The application has not begun, or only its bot has, or the server is away.
            with suppress(RuntimeError, TelegramError):
                await shutdown()
