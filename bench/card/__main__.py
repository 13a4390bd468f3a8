"""One command on a machine with a card and no network: unpack the kit, and measure with what is in it.

    python -m bench.card [--kit FILE] [--cpu] [--server FILE] [--folder DIR] [--out FILE]

`--cpu` takes every step on a processor with NVML's stand-in, to try the command
where there is no card. Without a kit the packages must be installed, and the
sources are fetched. Until the kit is unpacked the standard library has to do.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from bench.card.kit import KIT, environment, unpack

INSTALLED = Path("/usr/local/bin/bwrap")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kit", type=Path, default=KIT)
    parser.add_argument("--folder", type=Path, default=Path("build/card"))
    asked, words = parser.parse_known_args()
    words += ["--folder", str(asked.folder)]
    variables = dict(os.environ)
    if asked.kit.exists():
        asked.folder.mkdir(parents=True, exist_ok=True)
        unpacked = unpack(asked.kit, asked.folder.resolve())
        install_bubblewrap(unpacked)
        variables = environment(unpacked, variables)
        words = ["--sources", str(unpacked / "llama.cpp"), *words]
    else:
        print(f"There is no kit ({asked.kit}): make card-kit packs one.", file=sys.stderr)
    os.execve(sys.executable, [sys.executable, "-m", "bench.card.run", *words], variables)


def install_bubblewrap(kit: Path) -> None:
    """Put the kit's bubblewrap where the sandbox looks for it, as root and where the machine has none."""
    if os.geteuid() == 0 and not shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin"):
        INSTALLED.write_text(f'#!/bin/sh\nexec "{kit}/bin/bwrap" "$@"\n', "utf-8")
        INSTALLED.chmod(0o755)
        print(f"bubblewrap was missing; {INSTALLED} is the kit's.", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
