"""Small programs of this package, run by an interpreter that loads nothing else."""

import os
import subprocess
import sys
from pathlib import Path

_CODE = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from importlib import import_module; "
    "import_module('agent.sandbox.' + sys.argv[2]).main(*map(int, sys.argv[3:]))"
)


def run_isolated(module: str, *arguments: int, fd: int) -> "subprocess.Popen[bytes]":
    """Start `main` of a module that uses the standard library only; it inherits `fd`."""
    code = os.fspath(Path(__file__).parents[2])
    argv = [sys.executable, "-I", "-S", "-c", _CODE, code, module, *map(str, arguments)]
    return subprocess.Popen(
        argv, env={}, pass_fds=[fd], stdin=subprocess.DEVNULL, cwd="/", start_new_session=True
    )
