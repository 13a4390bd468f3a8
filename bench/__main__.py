"""Every figure in one run, as a table: `make bench`, under ten minutes.

python -m bench [--write] [--kills 50]

--write puts the table into docs/performance.md, between its two marks.
"""

import argparse
import asyncio
import os
import platform
import resource
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.path import compare
from bench.turn import Part, parts

PAGE = Path(__file__).parent.parent / "docs/performance.md"
BEGIN, END = "<!-- made by make bench: begin -->", "<!-- made by make bench: end -->"
PART_SECONDS = 300.0
TURNS = 40


class Row(NamedTuple):
    """The same work measured for the peers, what we want, and where our figure stands."""

    what: str
    nanobot: str
    hermes: str
    openclaw: str
    wanted: str
    key: str
    form: str = "{}"


PEERS = (
    "nanobot 0.3.5, Hermes 0.19.0 and OpenClaw 2026.9.6 did the same work, as Telegram gateways"
    " against a stub model, on another 2-core machine"
)
ROWS = (
    Row("first request, tokens (o200k)", "6,881", "11,964", "11,239-13,092", "at most 1,500", "first_request_tokens", "{:,}"),
    Row("prefix kept between turns", "100 % in a short script", "100 %, side requests break it", "97.5-99 %", "100 %", "prefix_kept_percent", "{:g} %"),
    Row("update received to model request, median", "254 ms", "232 ms", "708 ms", "at most 15 ms", "update_to_request_ms", "{:.1f} ms"),
    Row("model's last byte to final text sent", "18 ms", "35 ms", "680 ms", "at most 10 ms", "last_byte_to_sent_ms", "{:.1f} ms"),
    Row("CPU per turn", "80 ms", "70 ms", "1,120 ms", "at most 15 ms", "cpu_ms_per_turn", "{:.1f} ms"),
    Row("start to first poll", "1.0 s", "1.2 s", "13.4 s", "at most 0.9 s", "start_to_first_poll_s", "{:.2f} s"),
    Row("one-shot command, cold", "1.7 s", "2.0 s", "12.7 s", "at most 0.7 s", "one_shot_s", "{:.2f} s"),
    Row("resident memory after one turn", "149 MB", "188 MB", "1,300 MB", "bot at most 95 MB", "bot_mb", "{:.0f} MB"),
    Row("the same: backend", "", "", "", "at most 75 MB", "backend_mb", "{:.0f} MB"),
    Row("installed size", "416 MB", "281 MB", "836 MB", "at most 200 MB", "installed_mb", "{} MB"),
    Row("packages", "101", "83", "330", "at most 55", "packages"),
    Row("first picture (/gpu)", "", "", "", "at most 0.3 s", "first_picture_s", "{:.2f} s"),
    Row("killed mid-answer: answered after restart", "0 of 4", "2 of 4", "4 of 4", "50 of 50", "killed_mid_answer_answered"),
    Row("window of 8,192 tokens", "fails", "refuses", "fails", "works", "small_window"),
    Row("warm turn, more than the bare request", "", "", "", "at most 20 ms", "warm_turn_more_ms", "{:.0f} ms"),
    Row("messages a second, instant model", "", "", "", "", "messages_per_second", "{:.1f}"),
)  # fmt: skip


def table(figures: Mapping[str, Any]) -> str:
    """In Markdown; a figure that could not be measured is a question mark."""
    head = "| | nanobot | Hermes | OpenClaw | wanted | Voltaire |\n|---|---|---|---|---|---|\n"
    return head + "".join(_line(row, figures) for row in ROWS)


def _line(row: Row, figures: Mapping[str, Any]) -> str:
    ours = row.form.format(figures[row.key]) if row.key in figures else "?"
    return f"| {' | '.join(row[:5])} | **{ours}** |\n"


def machine() -> str:
    """Date, processor, kernel, Python, and how busy it was: figures of a busy machine say little."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "?")
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores ({model}), Linux"
        f" {platform.release()}, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )


def section(figures: Mapping[str, Any], where: str) -> str:
    return f"{table(figures)}\nMeasured by `make bench`: {where}. {PEERS}.\n"


def replace_section(page: str, text: str) -> str:
    """Return the page with the section between its marks; raise ValueError if it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} has no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{text}{END}{after}"


async def measured(kills: int) -> tuple[dict[str, Any], list[str]]:
    """All figures, and a sentence for each part that could not be measured."""
    figures: dict[str, Any] = {}
    troubles: list[str] = []
    every: dict[str, Part] = {**parts(TURNS, kills), "the whole path": partial(compare, 30)}
    for name, part in every.items():
        began = time.monotonic()
        try:
            figures |= await asyncio.wait_for(part(), PART_SECONDS)
        except Exception as error:
            troubles.append(f"{name} could not be measured: {type(error).__name__}: {error}")
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return figures, troubles


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--kills", type=int, default=50)
    chosen = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    where = machine()  # before our own load
    figures, troubles = asyncio.run(measured(chosen.kills))
    text = section(figures, where)
    print(text, *troubles, sep="\n", flush=True)
    if chosen.write and not troubles:
        PAGE.write_text(replace_section(PAGE.read_text("utf-8"), text), "utf-8")
    sys.exit(bool(troubles))


if __name__ == "__main__":
    main()
