"""voltaire context: where a chat's tokens go."""

import json

import click

from bot.cli.connect import running_agent
from bot.cli.options import chat_option, json_option, runs, settings_of

BAR = 30


@click.command(
    "context", help="Tokens by part: system text, each tool, notes, summary, transcript, free."
)
@chat_option
@json_option
@click.pass_context
@runs
async def command(ctx: click.Context, chat: str, as_json: bool) -> None:

    settings = settings_of(ctx)
    async with running_agent(settings) as agent:
        await agent.ready()
        parts = await agent.context(chat)
    limit = sum(parts.values())
    if as_json:
        click.echo(json.dumps({"chat": chat, "limit": limit, "parts": parts}, ensure_ascii=False))
        return
    width = max(map(len, parts))
    for name, tokens in parts.items():
        bar = "█" * round(BAR * tokens / limit)
        click.echo(f"{name:<{width}} {tokens:>7,} {bar}".rstrip())
    click.echo(f"{'window':<{width}} {limit:>7,}")
