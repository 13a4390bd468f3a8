"""The state folder: its database, and what the running bot tells of itself to others on the machine."""

import os
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.store import Store, open_store
from bot.settings import Settings

DATABASE = "voltaire.db"
PRESENCE = Path("run") / "bot.json"  # in the state folder


def make_private(folder: Path) -> None:
    """Make the folder, readable to its owner alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def open_state(settings: Settings) -> AbstractAsyncContextManager[Store]:
    """The database; the state folder is made where there is none."""
    make_private(settings.state_dir)
    return open_store(settings.state_dir / DATABASE)


class Presence(BaseModel):
    """`started` is the process's start in clock ticks since boot, so that a reused pid is not it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    pid: int
    started: int
    username: str | None = None
    polling_ok: bool | None = None
    last_update_at: datetime | None = None
    problem: str | None = None  # why polling is not ok, one sentence


def write_presence(state: Path, presence: Presence) -> None:
    """Replace the file at once; a reader sees the old or the new."""
    path = state / PRESENCE
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_suffix(f".{presence.pid}.new")
    new.write_text(presence.model_dump_json(), "utf-8")
    new.replace(path)


def read_presence(state: Path) -> Presence | None:
    """The presence of a bot that still runs, else None."""
    try:
        presence = Presence.model_validate_json((state / PRESENCE).read_text("utf-8"))
    except (OSError, ValidationError):
        return None
    return presence if started(presence.pid) == presence.started else None


def started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])


def resident_mib(pid: int) -> float | None:
    """Resident memory of a process in MiB."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text("utf-8").split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
