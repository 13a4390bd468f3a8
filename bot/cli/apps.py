"""The messaging apps of the bot, a line each: the one place that knows them all."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from agent.store import Store
from bot.app import Apps
from bot.settings import Settings
from bot.telegram.app import telegram_app
from bot.telegram.config import telegram_config


@asynccontextmanager
async def open_apps(settings: Settings, store: Store) -> AsyncIterator[Apps]:
    """The configured apps, not yet listening."""
    async with AsyncExitStack() as stack:
        telegram = telegram_app(telegram_config(settings), store)
        apps = [await stack.enter_async_context(telegram)]
        yield await stack.enter_async_context(Apps(apps))
