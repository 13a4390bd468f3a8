"""What `voltaire bench` prints: a table with the columns that this machine can fill, or JSON."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import click

from backend.measure.bench import UNDRAFTED, BenchRow, Setting, compare
from backend.measure.sweep import READ, WRITE, SweepResult, TriedVariant, changed_flags
from backend.models.profile import Profile
from bot.cli.connect import profiles_folder

NAME, WIDTH = 28, 9
SPEEDS = (("prefill", "tok/s"), ("decode", "tok/s"), ("first", "s"))
CARD = (("power", "W"), ("energy", "tok/J"), ("heat", "°C"), ("clock", "MHz"))
SHARES = (("drafts", "kept"), ("cache", "reused"))
TURN = (("turn", "s"),)
SIZED = re.compile(r"(?<=-ram) \d+|(?<=-cram) \d+")  # by the memory that was free at the start


class BenchOutput:
    """Rows as they come: a table line each, or all of them as JSON at the end."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.rows: list[BenchRow] = []
        self._table = Table()
        self._reference: dict[str, Any] = {}

    def reference(self, profile: Profile) -> None:
        known = profile.reference
        self._reference = known.model_dump()
        if known.decode_tok_s and not self.as_json:
            prefill = f", prefill {known.prefill_tok_s:g}" if known.prefill_tok_s else ""
            click.echo(f"Reference: {known.decode_tok_s:g} tokens/s{prefill} ({known.source})")

    def row(self, row: BenchRow) -> None:
        if not self.as_json:
            self._table.row(row)
        self.rows.append(row)

    def end(self) -> None:
        pairs = list(compare(self.rows))
        if self.as_json:
            rows = [{**asdict(row), "throttled": row.throttled} for row in self.rows]
            whole = {"reference": self._reference, "rows": rows, "compared": [*map(asdict, pairs)]}
            click.echo(json.dumps(whole, ensure_ascii=False))
            return
        if any(row.throttled for row in self.rows):
            click.echo("! The card was slowed in the marked rows; they are no reference.")
        drafts = any(row.acceptance is not None for row in self.rows)
        if drafts and not any(row.name.endswith(UNDRAFTED) for row in self.rows):
            click.echo(
                "This server drafts for every request; voltaire bench sweep measures it without."
            )
        for pair in pairs:
            speeds = ", ".join(f"{number(speed, 1)} with {name}" for name, speed in pair.speeds)
            faster = f"{pair.winner} is {pair.lead:.0%} faster"
            verdict = faster if pair.winner else "no difference: their runs overlap"
            click.echo(f"{pair.name}, {pair.figure}: {speeds}; {verdict}")


@dataclass
class Table:
    """Prints each row as it comes, under a heading for every setting that differs from the last."""

    shares: bool = True
    turns: bool = False
    _heading: tuple[str, str] = field(default=("", ""))

    def row(self, row: BenchRow, name: str = "", seconds: float | None = None) -> None:
        seen = row.conditions
        card = any(v is not None for v in (seen.watts, seen.temperature_c, seen.sm_clock_mhz))
        self._print_heading(row.setting, card=card)
        cells = [
            number(row.prefill_tok_s),
            number(row.decode_tok_s, 1),
            number(row.ttft_ms and row.ttft_ms / 1000, 2),
        ]
        if self.shares:
            cells += [share(row.acceptance), share(row.cache_hit)]
        if self.turns:
            cells.append(number(seconds, 1))
        if card:
            cells += [
                number(seen.watts),
                number(row.tokens_per_joule, 2),
                number(seen.temperature_c),
                number(seen.sm_clock_mhz),
            ]
        why = f"  slowed: {', '.join(seen.throttle)}" if row.throttled else ""
        click.echo(line(f"{name or row.name}{' !' if row.throttled else ''}", cells) + why)

    def tried(self, tried: TriedVariant) -> None:
        words = f"{tried.words}{', again' if tried.again else ''}"
        if tried.row is None:
            click.echo(f"{words:<{NAME}}  does not start")
        else:
            self.row(tried.row, words, tried.seconds)

    def _print_heading(self, used: Setting, *, card: bool) -> None:
        driver = f", driver {used.driver}" if used.driver else ""
        server = f"{used.profile}: {used.server} {used.build}{driver}"
        # Of a sweep the flags are what differs; each line names them.
        flags = f"  KV {used.kv}: {SIZED.sub(' …', used.flags)}"
        heading = (server, "" if self.turns else flags)
        if heading == self._heading:
            return
        self._heading = heading
        columns = SPEEDS + SHARES * self.shares + TURN * self.turns + CARD * card
        click.echo("\n".join(filter(None, heading)))
        click.echo(line("", [title for title, _ in columns]))
        click.echo(line("", [unit for _, unit in columns]))


def print_sweep(profile: Profile, result: SweepResult, as_json: bool) -> None:
    """Which flags to write where, or all that was tried as JSON."""
    flags = changed_flags(profile, result.best.profile)
    if as_json:
        tried = [
            {
                "words": each.words,
                "again": each.again,
                "seconds": each.seconds,
                "row": asdict(each.row) if each.row else None,
            }
            for each in result.tried
        ]
        click.echo(json.dumps({"tried": tried, "flags": flags, "gain": result.gain}))
        return
    if not flags:
        click.echo("The profile's own flags are the fastest here.")
        return
    turn = f"a turn that reads {READ:,} tokens and writes {WRITE}"
    click.echo(f"{result.gain:.0%} faster here, for {turn}:")
    for name, value in flags.items():
        removed = profile.flag(name) is not None and not value
        click.echo(f"    without {name}" if removed else f'    "{name}" = "{value}"')
    path = profiles_folder() / f"{profile.name}.toml"
    click.echo(f"To keep it, put that under [flags.optional] of {path}")


def line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<{NAME}}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"
