"""python -m tests.attacks [--plain | --unit | --walls] [--whole] [--folder DIR] [AREA ...]"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fakes.booted import lacking
from tests.attacks import walls
from tests.attacks.attack import CHORE, Attack
from tests.attacks.cases import ATTACKS, WHOLE
from tests.attacks.suite import IdleSandboxError, against_nothing, against_sandbox
from tests.attacks.unit import against_unit


async def main(folder: Path, attacks: Sequence[Attack], *, plain: bool) -> int:
    run = against_nothing if plain else against_sandbox
    blocked = count = 0
    async for outcome in run(folder, attacks):
        count += 1
        blocked += not outcome.success
        if bool(outcome.success) != plain:
            state = outcome.success or "blocked"
            print(f"{outcome.attack.area} - {outcome.attack.name}: {state}", flush=True)
    print(f"{blocked} of {count} blocked{' without walls' * plain}")
    return int(not plain and blocked < count)


async def in_unit(folder: Path, areas: Sequence[str]) -> int:
    if why := await lacking():
        print(f"The unit was not attacked: {why}.")
        return 0
    code, said = await against_unit(folder, areas)
    print(said, end="")
    return code


async def chosen(folder: Path, options: argparse.Namespace) -> int:
    areas = options.area or [a.area for a in ATTACKS if a.area != WHOLE or options.whole]
    if options.unit:
        return await in_unit(folder, [*options.area, *["--whole"] * options.whole])
    if options.walls:
        return walls.table(options.area, folder)
    attacks = [a for a in ATTACKS if a.area in (CHORE, *areas)]
    try:
        return await main(options.folder or folder, attacks, plain=options.plain)
    except IdleSandboxError as error:
        print(f"The sandbox runs nothing, so nothing was attacked: {error}")
        return 1


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that goes away, however deep attackers have dug into it."""
    folder = tempfile.mkdtemp(prefix="va")
    try:
        yield Path(folder)
    finally:
        if subprocess.run(["rm", "-rf", folder], check=False, capture_output=True).returncode:
            subprocess.run(["chmod", "-R", "u+rwx", folder], check=False, capture_output=True)
            subprocess.run(["rm", "-rf", folder], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    subject = parser.add_mutually_exclusive_group()
    subject.add_argument("--plain", action="store_true", help="attack a plain subprocess instead")
    subject.add_argument("--unit", action="store_true", help="attack as the bot's unit (as root)")
    subject.add_argument("--walls", action="store_true", help="take each wall down once")
    parser.add_argument("--whole", action="store_true", help=f"also what takes long: {WHOLE}")
    parser.add_argument("--folder", type=Path, help="an empty folder of the running user")
    parser.add_argument("area", nargs="*", help="only these areas, or walls")
    with scratch() as made:
        sys.exit(asyncio.run(chosen(made, parser.parse_args())))
