"""The Telegram bot: python-telegram-bot's application inside our own loop.

async with telegram_app(config, store) as app:
    async with Chats(..., listener=app.replies) as chats:
        await app.serve(Services(chats, ...))      # until cancelled
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from telegram.error import InvalidToken, TelegramError
from telegram.ext import ApplicationBuilder

from agent.store import Store
from bot.app import AppHealth, AppUnavailable, MessagingApp
from bot.commands.access import Access
from bot.commands.context import HandlerContext
from bot.telegram.channel import TelegramChannel
from bot.telegram.chat_key import SOURCE
from bot.telegram.config import TelegramConfig
from bot.telegram.connection import Connection
from bot.telegram.handlers import UPDATES, handlers, register_commands
from bot.telegram.live import LiveMessageStore
from bot.telegram.message_calls import MessageCalls
from bot.telegram.pacer import Pacers
from bot.telegram.polling import ANSWER_SECONDS, Poller, PollState, only_poller
from bot.telegram.update_gate import UpdateGate
from bot.telegram.webhook import Webhook
from bot.texts import texts


class TelegramApp(MessagingApp):
    """`serve` raises AppUnavailable."""

    def __init__(self, config: TelegramConfig, store: Store) -> None:
        self.config = config
        self.poll = PollState()
        self.application = (
            ApplicationBuilder()
            .token(config.token)
            .base_url(f"{config.root}/bot")
            .base_file_url(f"{config.root}/file/bot")
            .request(Connection(config.root, config.answer_seconds))
            .get_updates_request(Connection(config.root, ANSWER_SECONDS))
            .updater(None)
            .build()
        )
        self.bot = self.application.bot
        table = texts(config.language)
        self.calls = MessageCalls(self.bot, Pacers())
        self.unfinished = LiveMessageStore(store.key_values, table)
        owners, allow = (frozenset(map(str, ids)) for ids in (config.owners, config.allow))
        super().__init__(
            store,
            TelegramChannel(self.calls, self.unfinished, own_server=config.own_server),
            Access(store.people, SOURCE, owners, allow, config.groups),
            table,
            timezone=config.timezone,
            repos=config.repos,
        )

    @property
    def health(self) -> AppHealth:
        with suppress(RuntimeError):  # not connected yet
            return AppHealth(self.bot.username, self.poll.last_at, self.poll.problem())
        return AppHealth()

    async def connect(self) -> None:
        """Find the Bot API server and learn who we are; the network may come up a little later."""
        pause, reason = 0.5, "no answer"
        try:
            async with asyncio.timeout(self.config.start_seconds):
                while True:
                    try:
                        return await self.application.initialize()
                    except InvalidToken:
                        raise AppUnavailable(
                            "Telegram does not know this bot token; see @BotFather.", refused=True
                        ) from None
                    except TelegramError as error:
                        reason = str(error)
                    await asyncio.sleep(pause)
                    pause *= 1.5
        except TimeoutError:
            raise AppUnavailable(
                f"The Bot API server at {self.config.root} cannot be reached ({reason})."
            ) from None

    async def listen(self, context: HandlerContext) -> None:
        self.application.add_handlers(handlers(context))
        take = UpdateGate(self.application, self.store.set_aside).take
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
async def telegram_app(config: TelegramConfig, store: Store) -> AsyncIterator[TelegramApp]:
    """The app, not yet listening. Raises AppUnavailable where another process polls this token."""
    with only_poller(config.lock):
        app = TelegramApp(config, store)
        await app.unfinished.load()
        try:
            yield app
        finally:
            for shutdown in (app.application.shutdown, app.bot.shutdown):
                # The application has not begun, or only its bot has, or the server is away.
                with suppress(RuntimeError, TelegramError):
                    await shutdown()
