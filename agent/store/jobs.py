"""Scheduled jobs. Each time one falls due is an occurrence (agent.store.occurrences)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from zoneinfo import ZoneInfo

from pydantic import TypeAdapter

from agent.schedule.times.rule import load
from agent.store import chats
from agent.store.database import Database, Row
from agent.store.unreadable import readable

MAX_ID = 2**63 - 1  # of SQLite; a person may type any number
JSON = TypeAdapter(dict[str, Any])
JobState = Literal["proposed", "active", "paused", "ended", "deleted"]
CatchUp = Literal["once", "all", "missed"]


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a job does and when. `timing` is a rule as agent.schedule.times stores it, `when` the
    time in the person's words, `next_at` whole seconds since the epoch. `stranger` names the
    strangers' text that its chat held when the model planned it."""

    chat: str
    kind: str
    when: str
    timing: Mapping[str, Any]
    timezone: str
    task: str
    options: Mapping[str, Any]
    catch_up: CatchUp = "once"
    state: JobState = "active"
    made_by: Literal["person", "model"] = "person"
    next_at: int | None = None
    stranger: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    id: int
    spec: JobSpec
    created_at: float


@dataclass(frozen=True)
class JobTable:
    database: Database

    async def add(self, spec: JobSpec) -> Job:
        async with self.database.write() as tx:
            await chats.ensure(tx, spec.chat)
            row = await tx.insert_returning(
                _COLUMNS, "jobs", **_values(spec), created_at=tx.now, changed_at=tx.now
            )
        return _job(row)

    async def change(self, id: int, spec: JobSpec) -> None:
        values = {**_values(spec), "changed_at": self.database.clock()}
        sql = f"UPDATE jobs SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ?"
        await self.database.execute(sql, *values.values(), id)

    async def get(self, id: int) -> Job | None:
        if id > MAX_ID:
            return None
        found = await self._where("id = ?", id)
        return found[0] if found else None

    async def of_chat(self, chat: str) -> list[Job]:
        """Not the deleted ones, oldest first."""
        return await self._where("chat = ? AND state <> 'deleted' ORDER BY id", chat)

    async def active(self) -> list[Job]:
        return await self._where("state = 'active' ORDER BY id")

    async def _where(self, condition: str, *values: Any) -> list[Job]:
        """Those that can be read; the others are set aside."""
        rows = await self.database.all(f"SELECT {_COLUMNS} FROM jobs WHERE {condition}", *values)
        return await readable(self.database, "jobs", rows, _job)

    async def set_state(self, id: int, state: JobState) -> None:
        sql = "UPDATE jobs SET state = ?, changed_at = ? WHERE id = ?"
        await self.database.execute(sql, state, self.database.clock(), id)

    async def active_and_next(self) -> tuple[int, int | None]:
        """How many jobs are active, and the next due time."""
        sql = "SELECT count(*), min(next_at) FROM jobs WHERE state = 'active'"
        [(count, next_at)] = await self.database.all(sql)
        return count, next_at


_COLUMNS = "id, chat, kind, words, timing, timezone, task, options, catch_up, state, made_by, next_at, stranger, created_at"


def _values(spec: JobSpec) -> dict[str, Any]:
    return {
        "chat": spec.chat,
        "kind": spec.kind,
        "words": spec.when,
        "timing": json.dumps(dict(spec.timing)),
        "timezone": spec.timezone,
        "task": spec.task,
        "options": json.dumps(dict(spec.options)),
        "catch_up": spec.catch_up,
        "state": spec.state,
        "made_by": spec.made_by,
        "next_at": spec.next_at,
        "stranger": spec.stranger,
    }


def _job(row: Row) -> Job:
    """ValueError or LookupError for a rule or a time zone that this version does not know."""
    number, chat, kind, when, timing, zone, task, options, *rest, created = row
    spec = JobSpec(chat, kind, when, JSON.validate_json(timing), zone, task, JSON.validate_json(options), *rest)  # fmt: skip
    load(spec.timing)
    ZoneInfo(zone)
    return Job(number, spec, created)
