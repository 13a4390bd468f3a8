"""Every figure in one run, as a table: `make bench`.

python -m bench [--write]     --write puts it into docs/benchmarks.md as well
"""

import argparse
import asyncio
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.turn import measure

TARGET = Path(__file__).parent.parent / "docs" / "benchmarks.md"
POCKET = Path(__file__).parent.parent / "backend" / "pocket" / "pocket.gguf"
# The same work measured for the peers on a 2-core machine; what we want; our key in bench.turn.
ROWS = (
    ("first request, tokens (o200k)", "6,881", "11,964", "11,239-13,092", "at most 1,500", "first_request_tokens"),
    ("prefix kept between turns", "100 %", "100 %, side requests break it", "97.5-99 %", "100 %", "prefix_kept"),
    ("update received to model request, median", "254 ms", "232 ms", "708 ms", "at most 15 ms", "update_to_request_ms"),
    ("model's last byte to final text sent", "18 ms", "35 ms", "680 ms", "at most 10 ms", "last_byte_to_sent_ms"),
    ("CPU per turn", "80 ms", "70 ms", "1,120 ms", "at most 15 ms", "cpu_ms_per_turn"),
    ("start to first poll", "1.0 s", "1.2 s", "13.4 s", "at most 0.9 s", "start_to_first_poll_s"),
    ("one-shot command, cold", "1.7 s", "2.0 s", "12.7 s", "at most 0.7 s", "one_shot_s"),
    ("resident memory after a turn: bot, MiB", "149", "188", "1,300", "at most 95", "bot_mib"),
    ("the same: backend, MiB", "-", "-", "-", "at most 75", "backend_mib"),
    ("installed, MiB", "416", "281", "836", "at most 300", "installed_mib"),
    ("packages", "101", "83", "330", "at most 70", "packages"),
    ("killed mid-answer: answered after restart", "0 of 4", "2 of 4", "4 of 4", "50 of 50", "killed_mid_answer_answered"),
)  # fmt: skip
MORE = (
    ("The sandbox", ["bench.sandbox"]),
    ("The prompt cache", ["bench.cache"]),
    ("The database", ["bench.store"]),
    ("The backend, idle", ["bench.backend_idle", "--model", str(POCKET)]),
)


def table(figures: dict[str, Any]) -> str:
    head = "| | nanobot | Hermes | OpenClaw | wanted | Voltaire |\n|---|---|---|---|---|---|\n"
    return head + "".join(
        f"| {' | '.join(row[:5])} | **{figures.get(row[5], '?')}** |\n" for row in ROWS
    )


def machine() -> str:
    model = next(
        (
            line.partition(": ")[2]
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "?",
    )
    load = os.getloadavg()[0]
    return f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores ({model}), {platform.release()}, Python {platform.python_version()}, load {load:.1f} at the start"


def printed(words: list[str]) -> str:
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
    return (done.stdout if done.returncode == 0 else done.stdout + done.stderr).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--kills", type=int, default=50)
    chosen = parser.parse_args()
    parts = ["# Benchmarks", "", f"Made by `make bench` ({machine()}).", ""]
    parts += [table(asyncio.run(measure(50, chosen.kills)))]
    print("\n".join(parts), flush=True)
    for title, words in MORE:
        part = [f"## {title}", "", "```", printed(words), "```", ""]
        print("\n".join(part), flush=True)
        parts += part
    if chosen.write:
        TARGET.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
