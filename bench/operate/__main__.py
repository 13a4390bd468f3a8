"""What an operator does to an installation, under a systemd of its own: `make operate`.

    python -m bench.operate [--system] [--user] [--tool] [--pipx] [--tool-as-root]
        [--away 30] [--patience 15] [--real] [--parts] [--corruptions 100] [--seed 1] [--only REGEX]

A machine is booted in namespaces for each way to install (all, unless some are
named), and a phone talks to what is installed there while it is administered,
killed, stopped and starved. With --parts the page, Matrix (a Synapse of its own) and voice are switched on first.
What is tested is the commit, not what is not committed.
Prints one line per step; exit code 1 when one failed. Needs root; leaves nothing but
the wheels that it fetched, in .cache/operate-wheels, for the next run.
"""

import argparse
import asyncio
import re
import shutil
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from bench.operate.parts import parts
from bench.operate.site import BACKEND, BOT, KINDS, Kind, Site, StepFailed, site
from bench.operate.steps import STEPS, Course, Step
from fakes import synapse
from fakes.booted import lacking

REAL_AWAY, REAL_PATIENCE = 600.0, 90.0  # of the units themselves
FIRST = ("install", "setup", "page, Matrix and voice")
PARTS_AFTER = "message"


async def passed(
    kind: Kind, course: Course, patience: float, only: str, keep: bool, with_parts: bool
) -> bool:
    folder = Path(tempfile.mkdtemp(prefix="vo"))
    failures = 0
    try:
        async with site(kind, folder, patience) as it, AsyncExitStack() as stack:
            steps = list(STEPS.items())
            if with_parts:
                at = [name for name, _ in steps].index(PARTS_AFTER) + 1
                steps[at:at] = (await stack.enter_async_context(parts(it, folder))).steps().items()
            for name, step in steps:
                if re.search(only, name) or name in FIRST:
                    good = await _taken(it, name, step, course)
                    failures += not good
                    if not good and keep:
                        for unit in (BOT, BACKEND):
                            print((await it.journal(unit))[-6000:], file=sys.stderr)
                    if not good and name in FIRST:
                        break
    except StepFailed as error:  # of the machine itself
        print(f"{kind.name:12} {'the machine':26} FAILED  {error}")
        failures += 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return not failures


async def _taken(it: Site, name: str, step: Step, course: Course) -> bool:
    began = time.monotonic()
    try:
        good, found = True, await step(it, course)
    except (StepFailed, TimeoutError, OSError) as error:
        good, found = False, str(error) or type(error).__name__
    seconds = time.monotonic() - began
    print(
        f"{it.kind.name:12} {name:26} {'ok' if good else 'FAILED':6} {seconds:6.1f} s  {found}",
        flush=True,
    )
    return good


async def all_passed(kinds: list[Kind], course: Course, given: argparse.Namespace) -> bool:
    if why := await lacking(alone=True):
        print(f"Nothing was operated: {why}.")
        return False
    if given.parts and not synapse.PYTHON.exists():
        print("Nothing was operated: --parts wants a homeserver: make .cache/synapse/.stamp")
        return False
    patience = REAL_PATIENCE if given.real else given.patience
    chosen = (given.only, given.verbose, given.parts)
    good = [await passed(kind, course, patience, *chosen) for kind in kinds]
    return all(good)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in KINDS:
        parser.add_argument(f"--{name}", action="append_const", dest="kinds", const=name)
    parser.add_argument("--away", type=float, default=30.0, help="seconds without Telegram")
    parser.add_argument("--patience", type=float, default=15.0, help="seconds of the watchdogs")
    parser.add_argument("--real", action="store_true", help="ten minutes, and the units' watchdogs")
    parser.add_argument("--parts", action="store_true", help="the page, Matrix and voice too")
    parser.add_argument("--corruptions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", default="", help="steps whose names this regular expression finds"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="the journals after a failure")
    given = parser.parse_args()
    course = Course(REAL_AWAY if given.real else given.away, given.corruptions, given.seed)
    kinds = [KINDS[name] for name in given.kinds or KINDS]
    sys.exit(not asyncio.run(all_passed(kinds, course, given)))


if __name__ == "__main__":
    main()
