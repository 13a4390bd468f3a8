"""voltaire bot: messaging apps, agent and scheduler in the foreground."""

from collections.abc import Sequence

import click

from agent.chats.assignment import Listener
from backend.client import BackendClient
from backend.control.sd_notify import notify
from bot.cli.apps import open_apps
from bot.cli.command import Misused, Options, pass_options, runs
from bot.cli.connect import backend_client
from bot.log import start_logging
from bot.service import serve_bot
from bot.settings import Settings


@click.command("bot", help="Telegram, agent, scheduler.")
@pass_options
@runs
async def command(options: Options) -> None:
    start_logging(options.verbose, service=True)
    async with backend_client(options.settings) as backend:
        await serve(options.settings, backend)


async def serve(settings: Settings, backend: BackendClient, also: Sequence[Listener] = ()) -> None:
    """The bot until it is cancelled; `also` are told of every turn, too."""
    telegram = settings.telegram
    if not telegram.token.get_secret_value():
        if kept := telegram.token_file:
            raise Misused(f"telegram.token_file: {kept} cannot be read by this user, or is empty.")
        raise Misused(
            "telegram.token is missing: run `voltaire setup`, or put it into the configuration."
        )
    await serve_bot(settings, backend, open_apps, also, notify)
