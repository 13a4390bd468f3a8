"""What a chat's sandbox may use, and the host's repositories that it may see."""

import re
from dataclasses import dataclass
from pathlib import Path

REPO_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Per chat for disk and files, per call for everything else.

    `command_seconds` is what a command gets unless it asks for another time, of which
    it gets at most five times as much.
    """

    memory_mib: int = 2048
    pids: int = 256
    disk_mib: int = 1024
    files: int = 50_000
    command_seconds: int = 120
    output_kib: int = 8


@dataclass(frozen=True, slots=True)
class HostRepo:
    """A repository of the host, at /repos/NAME in the sandbox; read-only unless `write`. In one that is
    `mine` nobody but the owner writes; the text of every other is a stranger's."""

    name: str
    path: Path
    write: bool = False
    mine: bool = False

    def __post_init__(self) -> None:
        if not REPO_NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} cannot be the name of a repository")
