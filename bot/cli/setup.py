"""voltaire setup: from a token to an answered message."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import click

from bot.cli.bot import serve
from bot.cli.command import Failed, Options, pass_options, runs
from bot.cli.connect import running_backend
from bot.cli.setup_models import BackendModelSetup
from bot.settings import ConfigurationError, config_folder, default_state_dir, find_file, load
from bot.setup import SetupError
from bot.setup.telegram import first_message, pair
from bot.setup.units import SystemdScope
from bot.setup.units import remove as remove_units
from bot.setup.wizard import Given, Wizard

READY = "Voltaire is set up and listens. Write to me."


@click.command("setup", help="The wizard: token, owner by pairing, model, server, systemd units.")
@click.option("--token", help="The bot's token, from @BotFather.")
@click.option("--base-url", help="The Bot API server.")
@click.option(
    "--owner", type=int, help="The owner's numeric Telegram id; without it, a pairing link."
)
@click.option("--timezone", help="IANA name, such as Europe/Paris.")
@click.option("--profile", help="Which model; `voltaire model list`.")
@click.option("--pull/--no-pull", default=None, help="Download the model's files, or do not.")
@click.option("--server", help="auto, build (one for this machine, now), or its path.")
@click.option("--units/--no-units", default=None, help="Install systemd units, or do not.")
@click.option(
    "--yes", is_flag=True, help="Ask nothing: options, then what is configured, then defaults."
)
@click.option("--remove", is_flag=True, help="Remove the units; state and configuration stay.")
@click.option("--upgrade", is_flag=True, help="After an update: renew and restart the units.")
@pass_options
@runs
async def command(
    options: Options, yes: bool, remove: bool, upgrade: bool, **answers: object
) -> None:
    scope = SystemdScope.here()
    config = options.config or find_file(None) or default_config()
    state = state_folder(config)
    models = BackendModelSetup(state, click.echo)
    wizard = Wizard(config, state, Given(**answers), yes, click.echo, ask, models, scope)  # type: ignore[arg-type]
    try:
        if remove:
            print_units("Removed", await asyncio.to_thread(remove_units, scope))
        elif upgrade:
            print_units("Restarted", await wizard.upgrade())
        else:
            await wizard.run(greet, serve_meanwhile)
            click.echo(f"Configuration: {config}")
    except SetupError as error:
        raise Failed(str(error)) from None


def print_units(done: str, names: list[str]) -> None:
    stay = f"{done}: {', '.join(names)}. State and configuration stay."
    click.echo(stay if names else "No units are installed.")


def ask(question: str, default: str) -> str:
    return str(click.prompt(question, default=default or None, show_default=bool(default)))


def default_config() -> Path:
    folder = Path("/etc/voltaire") if os.geteuid() == 0 else config_folder()
    return folder / "config.toml"


def state_folder(config: Path) -> Path:
    """The state's folder: the configured one, the services' own under /etc, else the user's."""
    if config.exists():
        with suppress(ConfigurationError):
            known = load(config).state.dir
            if known != Path():
                return known
    return Path("/var/lib/voltaire") if config.is_relative_to("/etc") else default_state_dir()


async def serve_meanwhile(wizard: Wizard) -> None:
    """Where there is no systemd: bot and backend here, until the owner is there and was greeted."""
    settings = load(wizard.config)
    async with running_backend(settings) as backend:
        serving = asyncio.create_task(serve(settings, backend))
        greeting = asyncio.create_task(greet(wizard))
        try:
            await asyncio.wait({serving, greeting}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            await greeting
        finally:
            for task in (serving, greeting):
                task.cancel()
            await asyncio.wait({serving, greeting})
    click.echo("It is not running as a service here. Start it with: voltaire run")


async def greet(wizard: Wizard) -> None:
    settings = load(wizard.config)
    owners = settings.telegram.owners or await pair(settings, wizard.username, click.echo)
    await first_message(settings, owners, READY)
    click.echo("The first message is delivered.")
