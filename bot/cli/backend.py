"""voltaire backend: the supervisor of llama-server in the foreground; voltaire backend history."""

import json

import click

from backend.service import serve_backend
from backend.state import RESTARTS, RestartHistory
from bot.cli.backend_config import backend_config
from bot.cli.command import Options, json_option, model_option, runs, serves, start_logging
from bot.cli.connect import wanted_model


@click.group(
    "backend",
    invoke_without_command=True,
    help="Keep llama-server alive and answer the control socket.",
)
@model_option
@click.pass_context
def command(context: click.Context, model: str) -> int | None:
    return None if context.invoked_subcommand else serve(model)


@serves
async def serve(options: Options, model: str) -> None:
    start_logging(options.verbose, service=True)
    settings = options.settings
    if model and settings.backend.kind == "managed":
        model = await wanted_model(settings, model, None)
    async with serve_backend(backend_config(settings, model)) as backend:
        await backend.ended()


@command.command("history")
@json_option
@runs
async def history(options: Options, as_json: bool) -> None:
    """When the model server, or the backend, was started again, and why; the newest last."""
    restarts = RestartHistory(options.settings.state_dir / RESTARTS).read()
    if as_json:
        click.echo(json.dumps([restart.model_dump(mode="json") for restart in restarts]))
        return
    for restart in restarts:
        click.echo(f"{restart.at.astimezone():%Y-%m-%d %H:%M:%S}  {restart.cause}")
    if not restarts:
        click.echo("No start is recorded yet.")
