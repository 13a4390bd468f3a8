"""The state folder: its database, and what the running bot publishes about itself on this machine."""

import json
import os
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from agent.files import replacing
from agent.store import Store, open_store
from agent.store.database import open_read_only
from agent.store.errors import damaged
from agent.store.jobs import OVERDUE_SECONDS
from agent.store.retention import DAY
from agent.timezones import local_time
from bot.settings import Settings

DATABASE = "voltaire.db"
RUNTIME = Path("/run/voltaire")  # of the units of the machine, open to their group
SHARED = "bot-status.json"
MATRIX = "matrix"  # the session and the keys of the Matrix account
PRESENCE = Path("run") / "bot.json"  # in the state folder


def make_private(folder: Path) -> None:
    """Make the folder, readable to its owner alone; it and its chats' folders that nobody can enter are opened."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for below in ("", "chats", "chats/*", "chats/*/work"):
        for path in folder.glob(below) if below else [folder]:
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode) and not mode & 0o100:
                path.chmod(stat.S_IMODE(mode) | 0o700)


@asynccontextmanager
async def open_state(settings: Settings) -> AsyncIterator[Store]:
    """Open the database; the state folder is created if needed. Root gives its files to the folder's owner."""
    state = settings.state_dir
    make_private(state)
    async with open_store(state / DATABASE) as store:
        if os.geteuid() == 0:
            owner = state.stat()
            for path in state.glob(f"{DATABASE}*"):
                os.chown(path, owner.st_uid, owner.st_gid)
        yield store


@asynccontextmanager
async def open_checked_state(settings: Settings) -> AsyncIterator[Store]:
    """Open the database after a check of its whole file. Raises StoreDamaged."""
    async with open_state(settings) as store:
        if await store.database.damage():
            raise damaged(store.database.path)
        yield store


@asynccontextmanager
async def open_state_read_only(settings: Settings) -> AsyncIterator[Store]:
    """Open the database read-only. Raises StoreError if there is none."""
    path = settings.state_dir / DATABASE
    async with open_read_only(path) as reader:
        yield Store(reader, path.with_name("attempts"))


class Presence(BaseModel):
    """What a running bot publishes. `started` is its process's start in clock ticks since boot, by which a
    reused pid is told apart."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    pid: int
    started: int
    username: str | None = None
    polling_ok: bool | None = None
    last_update_at: datetime | None = None
    problem: str | None = None  # why polling is not ok, one sentence
    mcp_running: int | None = None  # servers of tools; None where none is configured


def write_presence(state: Path, presence: Presence) -> None:
    path = state / PRESENCE
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with replacing(path, suffix=str(presence.pid)) as new:
        new.write_text(presence.model_dump_json(), "utf-8")


def read_presence(state: Path) -> Presence | None:
    """The presence of a bot that is still running, else None."""
    try:
        presence = Presence.model_validate_json((state / PRESENCE).read_text("utf-8"))
    except (OSError, ValueError):  # damaged, or no text
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


async def bot_facts(bot: Presence | None, store: Store | None) -> dict[str, Any]:
    """The bot's part of `voltaire status`; what is unknown is None."""
    return with_presence(await state_facts(store), bot)


async def state_facts(store: Store | None) -> dict[str, Any]:
    """The part of the bot's facts that is read from the database."""
    counts: Mapping[Any, int] = await store.outbox.counts() if store else {}
    frozen = await store.freeze.since() if store else None
    active, due = await store.jobs.active_and_next() if store else (0, None)
    return {
        "bot": {
            "inbox_waiting": await store.inbox.count_waiting() if store else 0,
            "outbox_waiting": counts.get("waiting", 0) + counts.get("sending", 0),
            "outbox_uncertain": counts.get("uncertain", 0),
            "outbox_failed": counts.get("failed", 0),
            "set_aside": await store.set_aside.count() if store else 0,
        },
        "chats": await store.chats.count() if store else 0,
        "idle": {"tokens": await store.usage.read_ahead(store.clock() - DAY) if store else 0},
        "frozen_since": frozen and local_time(frozen, "UTC").isoformat(),
        "jobs": {
            "active": active,
            "next_at": due and local_time(due, "UTC").isoformat(),
            "overdue": bool(store and due and due < store.clock() - OVERDUE_SECONDS),
        },
    }


def with_presence(facts: Mapping[str, Any], bot: Presence | None) -> dict[str, Any]:
    """Add what the running bot published to these facts."""
    at = bot.last_update_at if bot else None
    return {
        **facts,
        "bot": {
            "username": bot.username if bot else None,
            "polling_ok": bot.polling_ok if bot else None,
            "last_update_at": at.isoformat() if at else None,
            "problem": bot.problem if bot else None,
            "pid": bot.pid if bot else None,
            **facts["bot"],
        },
        "mcp": {"running": bot.mcp_running if bot else None},
        "memory_mib": {"bot": resident_mib(bot.pid) if bot else None},
    }


def share_facts(here: Presence, facts: dict[str, Any], folder: Path = RUNTIME) -> None:
    """Write the bot's facts where members of the machine's group may read them."""
    with replacing(folder / SHARED) as new:
        new.write_text(json.dumps({"process": (here.pid, here.started), **facts}), "utf-8")
        new.chmod(0o640)


async def shared_facts(folder: Path = RUNTIME) -> dict[str, Any]:
    """The facts that `share_facts` wrote, while that bot runs; else all unknown."""
    facts: dict[str, Any] = {"process": (0, 0)}
    with suppress(OSError, ValueError):
        facts = json.loads((folder / SHARED).read_text("utf-8"))
    pid, began = facts.pop("process")
    if started(pid) != began:  # that bot is gone
        facts = await bot_facts(None, None)
        facts["bot"] |= dict.fromkeys(key for key, value in facts["bot"].items() if value == 0)
        unknown = {
            "idle": {"tokens": None},
            "jobs": {"active": None, "next_at": None, "overdue": None},
        }
        facts |= {"chats": None, **unknown}
    return facts
