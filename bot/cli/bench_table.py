"""Measurements as a table in the terminal: columns that this machine can fill, with their units."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from backend.measure.bench import BenchRow, Setting
    from backend.measure.comparison import Comparison
    from backend.measure.sweep import TriedVariant

NAME, WIDTH = 28, 9
SPEEDS = (("prefill", "tok/s"), ("decode", "tok/s"), ("first", "s"))
CARD = (("power", "W"), ("energy", "tok/J"), ("heat", "°C"), ("clock", "MHz"))
SHARES = (("drafts", "kept"), ("cache", "reused"))
TURN = (("turn", "s"),)
_SIZED = re.compile(r"(?<=-ram) \d+|(?<=-cram) \d+")  # by the memory that was free at the start


@dataclass
class Table:
    """Prints each row as it comes, under a heading for every setting that differs from the last."""

    shares: bool = True
    turns: bool = False
    _heading: tuple[str, str] = field(default=("", ""))

    def row(self, row: "BenchRow", name: str = "", seconds: float | None = None) -> None:
        self._head(row.setting, card=_has_card(row))
        cells = [
            _number(row.prefill_tok_s),
            _number(row.decode_tok_s, 1),
            _number(row.ttft_ms and row.ttft_ms / 1000, 2),
        ]
        if self.shares:
            cells += [_share(row.acceptance), _share(row.cache_hit)]
        if self.turns:
            cells.append(_number(seconds, 1))
        if _has_card(row):
            cells += _card(row)
        why = f"  slowed: {', '.join(row.conditions.throttle)}" if row.throttled else ""
        click.echo(_line(f"{name or row.name}{' !' if row.throttled else ''}", cells) + why)

    def tried(self, tried: "TriedVariant") -> None:
        words = f"{tried.words}{', again' if tried.again else ''}"
        if tried.row is None:
            click.echo(f"{words:<{NAME}}  does not start")
        else:
            self.row(tried.row, words, tried.seconds)

    def _head(self, used: "Setting", *, card: bool) -> None:
        driver = f", driver {used.driver}" if used.driver else ""
        server = f"{used.profile}: {used.server} {used.build}{driver}"
        # Of a sweep the flags are what differs; each line names them.
        flags = f"  KV {used.kv}: {_SIZED.sub(' …', used.flags)}"
        heading = (server, "" if self.turns else flags)
        if heading == self._heading:
            return
        self._heading = heading
        columns = SPEEDS + SHARES * self.shares + TURN * self.turns + CARD * card
        click.echo("\n".join(filter(None, heading)))
        click.echo(_line("", [title for title, _ in columns]))
        click.echo(_line("", [unit for _, unit in columns]))


def pairs(found: Iterable["Comparison"]) -> None:
    """What came out of a comparison of two servers, a line for each figure."""
    for pair in found:
        speeds = ", ".join(f"{_number(s, 1)} with {name}" for name, s in pair.speeds)
        click.echo(f"{pair.name}, {pair.figure}: {speeds}; {_verdict(pair)}")


def _verdict(pair: "Comparison") -> str:
    if pair.winner is None:
        return "no difference: their runs overlap"
    return f"{pair.winner} is {pair.lead:.0%} faster"


def _has_card(row: "BenchRow") -> bool:
    seen = row.conditions
    return any(v is not None for v in (seen.watts, seen.temperature_c, seen.sm_clock_mhz))


def _card(row: "BenchRow") -> list[str]:
    seen = row.conditions
    return [
        _number(seen.watts),
        _number(row.tokens_per_joule, 2),
        _number(seen.temperature_c),
        _number(seen.sm_clock_mhz),
    ]


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<{NAME}}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def _number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"
