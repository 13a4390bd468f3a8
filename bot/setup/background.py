"""A command that goes on after the wizard has ended, at the lowest priority."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bot.setup.units import COMPILE, SECONDS, SystemdScope, journal, systemd_runs

# What the command finds its programs and folders by; a transient unit has the manager's own.
PASSED = ("PATH", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "CUDA_HOME", "CUDA_PATH")


def start_in_background(scope: SystemdScope, command: Sequence[str], log: Path) -> str:
    """Start it; a sentence that says where its output goes.

    As a transient unit where systemd runs, so that it outlives the login; else as a process with a
    session of its own.
    """
    if systemd_runs() and shutil.which("systemd-run"):
        try:
            done = subprocess.run(
                transient_unit(scope, command), capture_output=True, timeout=SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            pass
        else:
            if done.returncode == 0:
                return f"Its output: {journal(scope, COMPILE)}"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        subprocess.Popen(
            [*lowest_priority(), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return f"Its output: {log}"


def transient_unit(scope: SystemdScope, command: Sequence[str]) -> list[str]:
    passed = [f"--setenv={name}={os.environ[name]}" for name in PASSED if name in os.environ]
    idle = ("--property=Nice=19", "--property=IOSchedulingClass=idle")
    unit = (f"--unit={COMPILE}", "--collect", "--description=Compiling a llama-server for Voltaire")
    return ["systemd-run", *scope.flags, *unit, *idle, *passed, "--", *command]


def lowest_priority() -> list[str]:
    """Of processor and disk."""
    ionice = ["ionice", "-c", "3"] if shutil.which("ionice") else []
    return ["nice", "-n", "19", *ionice]
