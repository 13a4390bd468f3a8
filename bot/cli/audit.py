"""voltaire audit: what was asked, decided, allowed, reached and changed, and whether the record is whole;
voltaire freeze and thaw."""

import json
import re
from datetime import datetime

import click

from agent.sandbox.output_buffer import visible
from agent.store.ledger import LedgerRow, Verification, parse_head
from agent.timezones import local_time
from bot.cli.command import Failed, Misused, Options, json_option, runs
from bot.cli.holder_client import change
from bot.state import DATABASE, open_state_read_only

SECONDS = {"m": 60, "h": 3600, "d": 86_400}


@click.command("audit", help="Print the ledger, oldest first. Exit code 1 where it is not whole.")
@click.option(
    "--since", default="", help="From a day (2026-11-22), an instant, 30m, 12h or 7d ago."
)
@click.option("--chat", default=None, help="Only this chat's entries.")
@json_option
@click.option(
    "--verify",
    "head",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[HEAD]",
    help="Only check the ledger, and that it still holds HEAD, which the bot has sent to an owner.",
)
@runs
async def command(
    options: Options, since: str, chat: str | None, as_json: bool, head: str | None
) -> int:
    settings, rows = options.settings, list[LedgerRow]()
    if not (settings.state_dir / DATABASE).exists():
        raise Failed(f"There is no state at {settings.state_dir} yet.")
    if head and not parse_head(head):
        raise Misused(f"{head} is no head: it looks like NUMBER:HASH.")
    async with open_state_read_only(settings) as store:
        found = await store.ledger.verify(head or "")
        if head is None:
            rows = await store.ledger.rows(instant(since, store.clock()), chat)
    if as_json:
        click.echo(json.dumps([fields(row) for row in rows] if head is None else summary(found)))
    else:
        for row in rows:
            click.echo(line(row, settings.agent.timezone))
        if head is not None and not found.problem:
            click.echo(f"The ledger is whole: {found.rows:,} rows. Its head: {found.head}")
    if found.problem:
        click.echo(f"The ledger is not whole. {found.problem}", err=True)
    return 1 if found.problem else 0


def instant(text: str, now: float) -> float:
    """Parse the value of --since, such as 2026-11-22 or 12h, to seconds since the epoch; "" is 0."""
    if ago := re.fullmatch(r"(\d{1,9})([mhd])", text):
        return now - int(ago[1]) * SECONDS[ago[2]]
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except (ValueError, OverflowError):
        raise Misused("--since is a day (2026-11-22), an instant, or 30m, 12h, 7d ago.") from None


def line(row: LedgerRow, zone: str) -> str:
    at = f"{local_time(row.at, zone):%Y-%m-%d %H:%M:%S}"
    told = " ".join(f"{name}={value}" for name, value in facts(row).items() if value != "")
    return visible(f"{row.number} {at} {row.kind} {row.chat or '-'} {told}").replace("\n", " ")


def facts(row: LedgerRow) -> dict[str, object]:
    try:
        found = json.loads(row.facts)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"facts": row.facts}


def fields(row: LedgerRow) -> dict[str, object]:
    at = local_time(row.at, "UTC").isoformat()
    of_row = {"number": row.number, "at": at, "kind": row.kind, "chat": row.chat}
    return {**of_row, "facts": facts(row), "hash": row.hash}


def summary(found: Verification) -> dict[str, object]:
    return {
        "whole": not found.problem,
        "rows": found.rows,
        "head": found.head,
        "problem": found.problem or None,
    }


@click.command("freeze", help="Stop all turns; no tool runs and no job starts until it is thawed.")
@runs
async def freeze(options: Options) -> None:
    turns, grants = await change(options.settings, "freeze")
    click.echo(
        f"Frozen: {turns} turns stopped, {grants} standing permissions ended. `voltaire thaw` ends it."
    )


@click.command("thaw", help="End what `voltaire freeze` or /freeze began.")
@click.option("--new-code", is_flag=True, help="Thaw nothing: set up codes for /thaw in the chat.")
@runs
async def thaw(options: Options, new_code: bool) -> None:
    if new_code:
        secret, address = await change(options.settings, "thaw-code")
        click.echo(f"For an authenticator app: {secret}\n{address}")
        click.echo("From now on /thaw with its code thaws in the chat. It is shown this once.")
    elif await change(options.settings, "thaw"):
        click.echo("Thawed. Standing permissions are not given back.")
    else:
        raise Failed("Nothing is frozen.")
