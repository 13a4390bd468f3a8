"""voltaire bot: Telegram, agent and scheduler in the foreground."""

from typing import TYPE_CHECKING

import click

from bot.cli import Failed, Misused
from bot.cli.options import first_error, runs, settings_of
from bot.log import start_logging
from bot.settings import Settings

if TYPE_CHECKING:
    from agent.chats.assignment import Listener
    from backend.client import BackendClient


@click.command("bot", help="Telegram, agent, scheduler.")
@click.pass_context
@runs
async def command(ctx: click.Context) -> None:
    from bot.cli.connect import backend_client

    start_logging(ctx.obj.verbose, service=True)
    settings = settings_of(ctx)
    async with backend_client(settings) as backend:
        await serve(settings, backend)


async def serve(
    settings: Settings, backend: "BackendClient", also: "Listener | None" = None
) -> None:
    """The bot until it is cancelled; what keeps it from running is one sentence.

    `also` hears every turn besides the person in the chat.
    """
    from backend.control.sd_notify import notify
    from bot.app import AppUnavailable
    from bot.cli.apps import open_apps
    from bot.service import serve_bot

    if not settings.telegram.token.get_secret_value():
        if kept := settings.telegram.token_file:
            raise Misused(f"telegram.token_file: {kept} cannot be read by this user, or is empty.")
        raise Misused(
            "telegram.token is missing: run `voltaire setup`, or put it into the configuration."
        )
    try:
        await serve_bot(settings, backend, open_apps, also, notify)
    except* AppUnavailable as group:
        error = first_error(group)
        refused = isinstance(error, AppUnavailable) and error.refused
        raise (Misused if refused else Failed)(str(error)) from None
