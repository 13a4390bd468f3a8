"""voltaire page: the owner's page, while it runs."""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from agent.errors import AgentError
from agent.events import Event, TurnFinished
from backend.client import BackendClient
from bot.cli.ask import turn_at_holder
from bot.cli.command import Failed, Options, runs
from bot.cli.connect import backend_client
from bot.cli.holder_client import change
from bot.cli.status import status_json
from bot.page.access import KEY, PageRefused, load_key
from bot.page.server import serve_page
from bot.settings import Settings
from bot.state import DATABASE

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


async def make_change(settings: Settings, name: str, pressed: dict[str, Any]) -> str:
    """Make a change that the page requests, in the process that holds the state."""
    try:
        return str(await change(settings, "page", change=name, pressed=pressed))
    except Failed as error:
        raise AgentError(error.message) from None


async def talk(
    settings: Settings,
    backend: BackendClient,
    client: str,
    chat: str,
    text: str,
    update: str,
    show: Callable[[Event], None],
) -> TurnFinished:
    """Run a turn for a program that uses the page's API in OpenAI's form."""
    try:
        return await turn_at_holder(
            settings, backend, chat, text, update, show, client=f"client {client}"
        )
    except click.ClickException as error:
        raise AgentError(error.message) from None


@click.command(
    "page",
    help="Serve the owner's page (what runs, turns, chats, jobs) until Ctrl-C, print its address with the"
    " key, and open it where there is a display.",
)
@click.option("--listen", default="", metavar="HOST:PORT", help="Where, in place of page.listen.")
@click.option("--no-open", is_flag=True, help="Print the address alone.")
@click.option(
    "--new-key", is_flag=True, help="Make a new key first: the old address opens nothing."
)
@runs
async def command(options: Options, listen: str, no_open: bool, new_key: bool) -> None:
    settings = options.settings
    if not (settings.state_dir / DATABASE).exists():
        raise Failed(
            "There is nothing to show yet: the first message makes it. `voltaire chat` talks in this"
            " terminal; `voltaire setup` sets up a bot."
        )
    own = settings.page.key_file
    if new_key:
        if own:
            raise Failed(f"The key is your own, in {own}: write another one into it.")
        (settings.state_dir / KEY).unlink(missing_ok=True)
    facts = partial(status_json, settings=settings)
    async with backend_client(settings) as backend:
        try:
            changes, turns = partial(make_change, settings), partial(talk, settings, backend)
            async with serve_page(settings, backend, facts, changes, turns, listen) as page:
                if page.exposed:
                    click.echo(page.exposed, err=True)
                click.echo(page.address)
                click.echo("Ctrl-C ends it.", err=True)
                if not no_open and any(os.environ.get(name) for name in DISPLAYS):
                    # Every user of the machine can see a browser's arguments: this address works once.
                    click.launch(page.once)
                await asyncio.Event().wait()
        except PageRefused as error:
            at = settings.page.listen
            if listen or not at or new_key or "in use" not in str(error):
                raise
            key = load_key(own or settings.state_dir / KEY)
            click.echo(f"http://{at}/?key={key}")
            click.echo("(The running bot serves it.)", err=True)
