"""voltaire run: backend and bot together in the foreground, where there is no systemd."""

import click

from bot.cli.options import runs, settings_of
from bot.log import start_logging


@click.command("run", help="Backend and bot together in the foreground.")
@click.option("--model", default="", help="A GGUF to run in place of the profile's.")
@click.pass_context
@runs
async def command(ctx: click.Context, model: str) -> None:
    from bot.cli.bot import serve
    from bot.cli.connect import running_backend

    start_logging(ctx.obj.verbose, service=True)
    settings = settings_of(ctx)
    async with running_backend(settings, model) as backend:
        await serve(settings, backend)
