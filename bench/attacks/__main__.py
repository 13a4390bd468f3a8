"""python -m bench.attacks [--plain] [--folder DIR] [AREA ...]"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.attacks.attack import CHORE, Attack
from bench.attacks.cases import ATTACKS
from bench.attacks.suite import against_nothing, against_sandbox


async def main(folder: Path, attacks: Sequence[Attack], *, plain: bool) -> int:
    run = against_nothing if plain else against_sandbox
    blocked = count = 0
    async for outcome in run(folder, attacks):
        count += 1
        blocked += not outcome.success
        if bool(outcome.success) != plain:
            state = outcome.success or "blocked"
            print(f"{outcome.attack.area} - {outcome.attack.name}: {state}", flush=True)
    print(f"{blocked} of {count} blocked")
    return int(not plain and blocked < count)


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
    parser.add_argument("--plain", action="store_true", help="attack a plain subprocess instead")
    parser.add_argument("--folder", type=Path, help="an empty folder of the running user")
    parser.add_argument("area", nargs="*", help="only these areas")
    options = parser.parse_args()
    chosen = [a for a in ATTACKS if not options.area or a.area in (CHORE, *options.area)]
    with scratch() as made:
        sys.exit(asyncio.run(main(options.folder or made, chosen, plain=options.plain)))
