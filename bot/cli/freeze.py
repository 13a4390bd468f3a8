"""voltaire freeze: no tool runs and no job starts until voltaire thaw."""

import click

from bot.cli.command import Failed, Options, runs
from bot.cli.holder_client import change


@click.command("freeze", help="Stop all turns; no tool runs and no job starts until it is thawed.")
@runs
async def command(options: Options) -> None:
    turns, grants = await change(options.settings, "freeze")
    click.echo(f"Frozen: {turns} turns stopped, {grants} standing permissions ended.")


@click.command("thaw", help="End what `voltaire freeze` or /freeze began.")
@click.option("--new-code", is_flag=True, help="Thaw nothing: set up codes for /thaw in the chat.")
@runs
async def thaw(options: Options, new_code: bool) -> None:
    if new_code:
        secret, address = await change(options.settings, "thaw-code")
        click.echo(f"For an authenticator app: {secret}\n{address}")
        click.echo("From now on /thaw with its code thaws in the chat. It is shown this once.")
    elif await change(options.settings, "thaw"):
        click.echo("Thawed. Standing permissions are not given back.")
    else:
        raise Failed("Nothing is frozen.")
