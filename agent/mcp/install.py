"""Installs a server's package once, by the owner's command, into the folder that the server sees as /program; nothing
is fetched when it runs.

No code of a package runs here: of Python packages only wheels are taken, and npm's scripts are off.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

PYTHON = "/usr/bin/python3"
OLD_DAYS = 3  # malicious releases are mostly found within days
SECONDS = 900
NAME = re.compile(r"(@[\w.-]+/)?[\w.-]+")


class InstallError(Exception):
    """A package cannot be installed; `str(error)` is a sentence or two for the owner."""


def install(words: Sequence[str], program: Path, *, new: bool = False) -> list[str]:
    """Install what `uvx ...` or `npx ...` would run into the folder `program`; returns the command to run there. Other
    commands are returned as they are. `new`: also a release younger than OLD_DAYS."""
    tool, *rest = words
    if tool in ("docker", "podman"):
        raise InstallError(
            "A container cannot be started from inside a sandbox. Run that server yourself and give its address with --url."
        )
    if tool not in ("uvx", "npx"):
        return list(words)
    spec, name, arguments = package(rest)
    partial = program.with_name("program.new")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    before = (datetime.now(UTC) - timedelta(days=OLD_DAYS)).strftime("%Y-%m-%dT00:00:00Z")
    try:
        if tool == "uvx":
            installer, age, place = uv(), ["--exclude-newer", before], "--target"
        else:
            installer, age, place = npm(), [f"--before={before}"], "--prefix"
        run([*installer, *([] if new else age), place, os.fspath(partial), spec], new=new)
        script = script_of(partial, tool, name)
    except InstallError:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    for folder, _, files in os.walk(partial):  # readable for the servers' user, whatever the umask
        Path(folder).chmod(0o755)
        for file in files:
            path = Path(folder, file)
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o444)
    shutil.rmtree(program, ignore_errors=True)
    partial.rename(program)
    return [script, *arguments]


def package(words: Sequence[str]) -> tuple[str, str, list[str]]:
    """What to install, the name of the program to run, and its arguments."""
    words, source = list(words), ""
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("--from", "--package", "-p") and words:
            source = words.pop(0)
        elif option not in ("-y", "--yes", "--"):
            raise InstallError(f"{option} is not known here; give the package and its arguments.")
    named = NAME.match(words[0]) if words else None
    if named is None:
        raise InstallError("The package is missing, as in: uvx mcp-server-time")
    return source or words[0].replace("@latest", ""), named[0], words[1:]


def uv() -> list[str]:
    found = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if not found:
        raise InstallError("uv is not installed: pip install uv")
    if not Path(PYTHON).exists():
        raise InstallError(
            f"Servers run with {PYTHON}, which is not there: apt-get install python3"
        )
    return [found, "pip", "install", "--quiet", "--python", PYTHON, "--only-binary", ":all:"]


def npm() -> list[str]:
    found = shutil.which("npm")
    if not found:
        raise InstallError("npm is not installed: apt-get install npm")
    return [found, "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]


def run(argv: Sequence[str], *, new: bool) -> None:
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InstallError(f"The package was not there within {SECONDS // 60} minutes.") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-400:]
        hint = (
            ""
            if new
            else f" Releases younger than {OLD_DAYS} days are left out, and so are those whose index does not tell their "
            "age: --new takes them."
        )
        raise InstallError(f"It cannot be installed: {said}.{hint}")


def script_of(folder: Path, tool: str, name: str) -> str:
    """Name the program that a package has installed. Raises InstallError if several could be meant."""
    if tool == "npx":
        about = json.loads((folder / "node_modules" / name / "package.json").read_text("utf-8"))
        programs = about.get("bin")
        names = list(programs) if isinstance(programs, dict) else [name.rpartition("/")[2]]
    else:
        names = [path.name for path in (folder / "bin").glob("*")]
    if name in names or len(names) == 1:
        return name if name in names else names[0]
    raise InstallError(
        f"{name} has the programs {', '.join(sorted(names)) or 'none'}; name one with --from PACKAGE PROGRAM."
    )
