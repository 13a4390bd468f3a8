"""The console script and, once installed from a wheel, the package around all others.

Other projects have packages called bot, agent and backend, too. A wheel therefore holds ours inside this
one (see setup.py): installing it overwrites no other package, and no other program imports ours by mistake.
They import each other by the same names as in the checkout, because their folder is put first on sys.path.
"""

import sys
from pathlib import Path


def main() -> None:
    here = Path(__file__).resolve().parent
    sys.path.insert(0, str(here if (here / "bot").is_dir() else here.parent))
    from bot.cli import main as command_line

    command_line()
