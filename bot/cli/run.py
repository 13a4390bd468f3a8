"""voltaire run: backend and bot together in the foreground, where there is no systemd."""

import click

from bot.cli.bot import serve
from bot.cli.command import Options, pass_options, runs
from bot.cli.connect import running_backend
from bot.log import start_logging


@click.command("run", help="Backend and bot together in the foreground.")
@click.option("--model", default="", help="A GGUF to run in place of the profile's.")
@pass_options
@runs
async def command(options: Options, model: str) -> None:
    start_logging(options.verbose, service=True)
    async with running_backend(options.settings, model) as backend:
        await serve(options.settings, backend)
