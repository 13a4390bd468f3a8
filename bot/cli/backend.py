"""voltaire backend: the supervisor of llama-server in the foreground."""

import click

from backend.service import serve_backend
from bot.cli.command import Options, pass_options, runs, start_logging
from bot.cli.connect import backend_config


@click.command("backend", help="Keep llama-server alive and answer the control socket.")
@click.option("--model", default="", help="A GGUF to run in place of the profile's.")
@pass_options
@runs
async def command(options: Options, model: str) -> None:
    start_logging(options.verbose, service=True)
    async with serve_backend(backend_config(options.settings, model)) as backend:
        await backend.ended()
