"""voltaire config: the configuration's path, what is set, and the defaults that it replaces."""

import json
from collections.abc import Iterator
from typing import Any

import click

from bot.cli.command import Options, runs
from bot.settings import Settings, config_folder


@click.command("config", help="The configuration: its path, what is set, and the defaults.")
@runs
async def command(options: Options) -> None:
    settings = options.settings
    click.echo(
        settings.path or f"No file: all defaults ({config_folder() / 'config.toml'} is read)."
    )
    defaults = dict(flat(Settings.model_construct().model_dump(mode="json")))
    for key, value in flat(settings.model_dump(mode="json", exclude_unset=True)):
        default = defaults.get(key, "")
        note = "the default" if value == default else f"default: {json.dumps(default)}"
        click.echo(f"{key} = {json.dumps(value, ensure_ascii=False)}  ({note})")
    click.echo(f"The state is in {settings.state_dir}. All keys: docs/configuration.md")


def flat(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Each value with its key, such as agent.sandbox.pids."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
