"""voltaire freeze: no tool runs and no job starts until voltaire thaw."""

import click

from bot import totp
from bot.cli.command import Failed, Options, runs
from bot.state import make_private, open_state

BY = "terminal"


@click.command("freeze", help="Stop all turns; no tool runs and no job starts until it is thawed.")
@runs
async def command(options: Options) -> None:
    async with open_state(options.settings) as store:
        turns, grants = await store.freeze.freeze(BY)
    click.echo(f"Frozen: {turns} turns stopped, {grants} standing permissions ended.")


@click.command("thaw", help="End what `voltaire freeze` or /freeze began.")
@click.option("--new-code", is_flag=True, help="Thaw nothing: set up codes for /thaw in the chat.")
@runs
async def thaw(options: Options, new_code: bool) -> None:
    settings = options.settings
    async with open_state(settings) as store:
        if new_code:
            make_private(settings.state_dir)
            secret = totp.make_secret(settings.state_dir)
            await store.ledger.record("admin", act="thaw code", by=BY)
            click.echo(f"For an authenticator app: {secret}\n{totp.address(secret)}")
            click.echo("From now on /thaw with its code thaws in the chat. It is shown this once.")
        elif await store.freeze.thaw(BY):
            click.echo("Thawed. Standing permissions are not given back.")
        else:
            raise Failed("Nothing is frozen.")
