"""voltaire backend: the supervisor of llama-server in the foreground."""

import click

from bot.cli.options import runs, settings_of
from bot.log import start_logging


@click.command("backend", help="Keep llama-server alive and answer the control socket.")
@click.option("--model", default="", help="A GGUF to run in place of the profile's.")
@click.pass_context
@runs
async def command(ctx: click.Context, model: str) -> None:
    from backend.service import serve_backend
    from bot.cli.connect import backend_config

    start_logging(ctx.obj.verbose, service=True)
    async with serve_backend(backend_config(settings_of(ctx), model)) as backend:
        await backend.ended()
