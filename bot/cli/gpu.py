"""voltaire gpu: the card is lent to other programs for a time, or taken back."""

import click

from bot.cli.command import Failed, Misused, Options, runs
from bot.cli.connect import backend_client
from bot.cli.holder_client import record_act
from bot.commands.status import lent_seconds

command = click.Group("gpu", help="Lend the card to other programs.")


@command.command("lend")
@click.argument("time")
@runs
async def lend(options: Options, time: str) -> None:
    """Unload the model for a TIME such as 2h or 90m. Messages wait, reminders and watches go on."""
    seconds = lent_seconds(time)
    if seconds is None:
        raise Misused(f"{time!r} is no time such as 2h or 90m, of at most a day.")
    await lend_for(options, seconds)


@command.command("back")
@runs
async def back(options: Options) -> None:
    """Load the model again before the time is over."""
    await lend_for(options, 0)


async def lend_for(options: Options, seconds: int) -> None:
    settings = options.settings
    if settings.backend.kind == "external":
        raise Failed("The model server is another's (backend.kind): its card cannot be lent.")
    async with backend_client(settings) as backend:
        told = await backend.lend(seconds)
    await record_act(settings, act="lend", seconds=seconds)
    click.echo(told)
