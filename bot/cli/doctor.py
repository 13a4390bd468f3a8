"""voltaire doctor: every check with pass, warn or fail, and the remedy."""

import asyncio
import json
from dataclasses import asdict

import click

from bot.cli.checks import Check, Finding
from bot.cli.options import json_option, runs, settings_of
from bot.settings import Settings

CHECK_SECONDS = 180
MARKS = {"pass": "✓", "warn": "!", "fail": "✗"}


@click.command("doctor", help="Check everything; each finding with its remedy. Exit 1 on a fail.")
@json_option
@click.pass_context
@runs
async def command(ctx: click.Context, as_json: bool) -> int:
    settings = settings_of(ctx)
    findings = [finding for check in checks() for finding in await _checked(check, settings)]
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False))
    else:
        for finding in findings:
            click.echo(f"{MARKS[finding.status]} {finding.check}: {finding.detail}")
            if finding.remedy:
                click.echo(f"    {finding.remedy}")
    return 1 if any(finding.status == "fail" for finding in findings) else 0


def checks() -> list[Check]:
    from bot.cli.checks import machine, people, server
    from bot.cli.checks.fit import fit

    return [
        machine.python,
        machine.sandbox,
        server.card,
        server.binary,
        server.model,
        fit,
        server.running,
        server.tool_calls,
        people.database,
        people.telegram,
        machine.disk,
        machine.clock,
        machine.secrets,
        machine.units,
    ]


async def _checked(check: Check, settings: Settings) -> list[Finding]:
    """A check that itself fails is a finding, not an end."""
    name = check.__name__
    try:
        return await asyncio.wait_for(check(settings), CHECK_SECONDS)
    except TimeoutError:
        return [
            Finding(
                name,
                "fail",
                f"The check did not end within {CHECK_SECONDS} s.",
                "Run it again with -v.",
            )
        ]
    except Exception as error:  # noqa: BLE001 - the other checks go on
        return [
            Finding(
                name,
                "fail",
                f"The check itself failed: {type(error).__name__}: {error}.",
                "Report this.",
            )
        ]
