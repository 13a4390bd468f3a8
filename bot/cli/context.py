"""voltaire context: where a chat's tokens go."""

import json

import click

from bot.cli.command import Options, chat_option, json_option, pass_options, runs
from bot.cli.connect import running_agent

BAR = 30


@click.command(
    "context", help="Tokens by part: system text, each tool, notes, summary, transcript, free."
)
@chat_option
@json_option
@pass_options
@runs
async def command(options: Options, chat: str, as_json: bool) -> None:
    async with running_agent(options.settings) as agent:
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
