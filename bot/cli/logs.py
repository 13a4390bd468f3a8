"""voltaire logs: what the services wrote, or the model server where there are none."""

import asyncio
import os

import click

from backend.client import BackendUnavailable
from bot.cli.command import NoBackend, Options, runs
from bot.cli.connect import backend_client
from bot.setup import units

LINES = 100
LOOK_SECONDS = 1.0


@click.command("logs", help="Print what the services wrote; without services, the model server.")
@click.option("-f", "--follow", is_flag=True, help="Go on with each new line, until Ctrl-C.")
@runs
async def command(options: Options, follow: bool) -> None:
    scope = units.SystemdScope.here()
    if names := units.installed(scope):
        chosen = [word for name in names for word in ("-u", name)]
        more = ["--follow"] if follow else ["--no-pager"]
        os.execvp("journalctl", ["journalctl", *scope.flags, "-n", str(LINES), *chosen, *more])  # noqa: S606 - the user's own
    shown: list[str] = []
    async with backend_client(options.settings) as backend:
        while True:
            try:
                lines = await backend.logs(LINES)
            except BackendUnavailable:
                raise NoBackend(
                    "Nothing runs: `voltaire run`, `chat` and `ask` write to their own terminals."
                ) from None
            for line in lines[overlap(shown, lines) :]:
                click.echo(line)
            shown = lines
            if not follow:
                return
            await asyncio.sleep(LOOK_SECONDS)


def overlap(before: list[str], now: list[str]) -> int:
    """The number of lines at the beginning of `now` that were shown already."""
    sizes = range(min(len(before), len(now)), 0, -1)
    return next((size for size in sizes if before[-size:] == now[:size]), 0)
