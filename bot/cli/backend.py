"""voltaire backend: the supervisor of llama-server in the foreground."""

import click

from backend.service import serve_backend
from bot.cli.backend_config import backend_config
from bot.cli.command import Options, model_option, serves, start_logging
from bot.cli.connect import wanted_model


@click.command("backend", help="Keep llama-server alive and answer the control socket.")
@model_option
@serves
async def command(options: Options, model: str) -> None:
    start_logging(options.verbose, service=True)
    settings = options.settings
    if model and settings.backend.kind == "managed":
        model = await wanted_model(settings, model, None)
    async with serve_backend(backend_config(settings, model)) as backend:
        await backend.ended()
