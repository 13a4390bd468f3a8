"""voltaire doctor: every check with pass, warn or fail, and the remedy."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict

import click

from bot.cli import doctor_machine as machine
from bot.cli import doctor_server as server
from bot.cli.command import Options, json_option, runs
from bot.cli.doctor_machine import Finding, failure
from bot.cli.progress import sign_of_life
from bot.settings import Settings

Check = Callable[[Settings], Awaitable[list[Finding]]]

CHECK_SECONDS = 180
MARKS = {"pass": "✓", "warn": "!", "fail": "✗"}
CHECKS: list[Check] = [
    machine.python,
    machine.owner,  # before others make files
    machine.sandbox,
    server.card,
    server.binary,
    server.model,
    server.fit,
    server.running,
    server.tool_calls,
    machine.search,
    machine.rendering,
    machine.calendar,
    machine.database,
    machine.telegram,
    machine.matrix,
    machine.ports,
    machine.disk,
    machine.backups,
    machine.clock,
    machine.font,
    machine.documents,
    machine.voice,
    machine.mcp,
    machine.mail,
    machine.secrets,
    machine.units,
]


@click.command("doctor", help="Check everything; each finding with its remedy. Exit 1 on a fail.")
@json_option
@runs
async def command(options: Options, as_json: bool) -> int:
    settings = options.settings
    findings = list[Finding]()
    with sign_of_life(lambda: f"checked: {len(findings)}"):
        for check in CHECKS:
            findings += await findings_of(check, settings)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False))
    else:
        for finding in findings:
            click.echo(f"{MARKS[finding.status]} {finding.check}: {finding.detail}")
            if finding.remedy:
                click.echo(f"    {finding.remedy}")
    return 1 if any(finding.status == "fail" for finding in findings) else 0


async def findings_of(check: Check, settings: Settings) -> list[Finding]:
    """Run a check and return its findings; an exception or a time-out is a finding, too."""
    name = check.__name__
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check(settings)
    except TimeoutError:
        detail = f"The check did not end within {CHECK_SECONDS} s."
        return [failure(name, detail, "Run it again with -v.")]
    except Exception as error:  # noqa: BLE001 - the other checks go on
        detail = f"The check itself failed: {type(error).__name__}: {error}."
        return [failure(name, detail, "Report this.")]
