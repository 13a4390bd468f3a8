"""voltaire tool: one tool exactly as the agent would run it."""

import json
import secrets

import click

from bot.cli import Misused
from bot.cli.options import chat_option, json_option, runs, settings_of


@click.command("tool", help="Run one tool as the agent would and print what the model would see.")
@click.argument("name")
@click.argument("arguments")
@chat_option
@json_option
@click.pass_context
@runs
async def command(ctx: click.Context, name: str, arguments: str, chat: str, as_json: bool) -> int:
    from bot.tool_run import run_tool

    call = secrets.token_hex(4)
    output = await run_tool(settings_of(ctx), chat, call, name, _object(arguments))
    if as_json:
        fields = {"id": call, "name": name, "ok": output.ok, "output": output.text}
        click.echo(json.dumps(fields, ensure_ascii=False))
    else:
        click.echo(output.text)
    return 0 if output.ok else 1


def _object(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Misused(f"The arguments are not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise Misused('The arguments must be a JSON object, such as {"path": "notes.txt"}.')
    return value
