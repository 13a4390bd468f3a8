"""Planned work and its ledger: each occurrence is one row, unique by job and due time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent.store import chats
from agent.store.chats import Clock
from agent.store.database import Database

JobState = Literal["proposed", "active", "paused", "ended", "deleted"]
OccurrenceState = Literal["due", "running", "done", "missed", "failed"]
CatchUp = Literal["once", "all", "missed"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A job as it is made. `timing` is the planner's own, `words` the time as the person said it."""

    chat: str
    kind: str
    words: str
    timing: Mapping[str, Any]
    timezone: str
    task: str
    options: Mapping[str, Any]
    catch_up: CatchUp = "once"
    state: JobState = "active"
    made_by: Literal["person", "model"] = "person"
    next_at: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    id: int
    plan: Plan
    created_at: float


@dataclass(frozen=True, slots=True)
class Occurrence:
    """`due_at` is in whole seconds since the epoch. "done" carries the id of what was delivered."""

    id: int
    job: int
    due_at: int
    state: OccurrenceState
    attempts: int
    turn: str | None
    outbox: int | None
    message_id: str
    detail: str
    started_at: float | None
    ended_at: float | None


@dataclass(frozen=True)
class JobTable:
    database: Database
    clock: Clock

    async def add(self, plan: Plan) -> Job:
        now = self.clock()
        async with self.database.write() as tx:
            await chats.ensure(tx, plan.chat, now)
            row = await tx.one(
                "INSERT INTO jobs (chat, kind, words, timing, timezone, task, options, catch_up,"
                " state, made_by, next_at, created_at, changed_at)"
                f" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {_JOB}",
                *_values(plan),
                now,
                now,
            )
        assert row
        return _job(row)

    async def change(self, id: int, plan: Plan) -> None:
        async with self.database.write() as tx:
            await tx.run(
                "UPDATE jobs SET chat = ?, kind = ?, words = ?, timing = ?, timezone = ?, task = ?,"
                " options = ?, catch_up = ?, state = ?, made_by = ?, next_at = ?, changed_at = ?"
                " WHERE id = ?",
                *_values(plan),
                self.clock(),
                id,
            )

    async def get(self, id: int) -> Job | None:
        async with self.database.read() as tx:
            row = await tx.one(f"SELECT {_JOB} FROM jobs WHERE id = ?", id)
        return _job(row) if row else None

    async def of_chat(self, chat: str) -> list[Job]:
        """Not the deleted ones, oldest first."""
        async with self.database.read() as tx:
            rows = await tx.all(
                f"SELECT {_JOB} FROM jobs WHERE chat = ? AND state <> 'deleted' ORDER BY id", chat
            )
        return [_job(row) for row in rows]

    async def active(self) -> list[Job]:
        async with self.database.read() as tx:
            rows = await tx.all(f"SELECT {_JOB} FROM jobs WHERE state = 'active' ORDER BY id")
        return [_job(row) for row in rows]

    async def set_state(self, id: int, state: JobState) -> None:
        async with self.database.write() as tx:
            await tx.run(
                "UPDATE jobs SET state = ?, changed_at = ? WHERE id = ?", state, self.clock(), id
            )

    async def fall_due(self, job: int, due_at: int, next_at: int | None) -> Occurrence | None:
        """Enter an occurrence and the job's next time in one transaction; None when it was entered before."""
        async with self.database.write() as tx:
            row = await tx.one(
                "INSERT INTO occurrences (job, due_at) VALUES (?, ?) ON CONFLICT DO NOTHING"
                f" RETURNING {_OCCURRENCE}",
                job,
                due_at,
            )
            await tx.run("UPDATE jobs SET next_at = ? WHERE id = ?", next_at, job)
        return Occurrence(*row) if row else None

    async def begin(self, id: int) -> Occurrence | None:
        """due -> running, unless another occurrence of that job runs; None when it may not start."""
        async with self.database.write() as tx:
            row = await tx.one(
                "UPDATE occurrences SET state = 'running', attempts = attempts + 1, started_at = ?2"
                " WHERE id = ?1 AND state = 'due' AND NOT EXISTS (SELECT 1 FROM occurrences other"
                " WHERE other.job = occurrences.job AND other.state = 'running')"
                f" RETURNING {_OCCURRENCE}",
                id,
                self.clock(),
            )
        return Occurrence(*row) if row else None

    async def link(self, id: int, *, turn: str | None = None, outbox: int | None = None) -> None:
        """Which turn works on it, which outbox row delivers it (`outbox.delivered` ends it then)."""
        async with self.database.write() as tx:
            await tx.run(
                "UPDATE occurrences SET turn = coalesce(?, turn), outbox = coalesce(?, outbox)"
                " WHERE id = ?",
                turn,
                outbox,
                id,
            )

    async def end(
        self, id: int, state: OccurrenceState, detail: str = "", message_id: str = ""
    ) -> None:
        async with self.database.write() as tx:
            await tx.run(
                "UPDATE occurrences SET state = ?, detail = ?, message_id = ?, ended_at = ?"
                " WHERE id = ?",
                state,
                detail,
                message_id,
                self.clock(),
                id,
            )

    async def open_occurrences(self) -> list[Occurrence]:
        """Due or running, oldest first: what a start finds unfinished."""
        async with self.database.read() as tx:
            rows = await tx.all(
                f"SELECT {_OCCURRENCE} FROM occurrences WHERE state IN ('due', 'running')"
                " ORDER BY due_at, id"
            )
        return [Occurrence(*row) for row in rows]

    async def occurrences(self, job: int, limit: int = 20) -> list[Occurrence]:
        """Newest first."""
        async with self.database.read() as tx:
            rows = await tx.all(
                f"SELECT {_OCCURRENCE} FROM occurrences WHERE job = ? ORDER BY due_at DESC LIMIT ?",
                job,
                limit,
            )
        return [Occurrence(*row) for row in rows]

    async def outlook(self) -> tuple[int, int | None]:
        """How many jobs are active, and the next due time."""
        async with self.database.read() as tx:
            row = await tx.one("SELECT count(*), min(next_at) FROM jobs WHERE state = 'active'")
        assert row
        return row[0], row[1]


_JOB = "id, chat, kind, words, timing, timezone, task, options, catch_up, state, made_by, next_at, created_at"
_OCCURRENCE = (
    "id, job, due_at, state, attempts, turn, outbox, message_id, detail, started_at, ended_at"
)


def _values(plan: Plan) -> tuple[Any, ...]:
    return (
        plan.chat,
        plan.kind,
        plan.words,
        json.dumps(dict(plan.timing)),
        plan.timezone,
        plan.task,
        json.dumps(dict(plan.options)),
        plan.catch_up,
        plan.state,
        plan.made_by,
        plan.next_at,
    )


def _job(row: tuple[Any, ...]) -> Job:
    number, chat, kind, words, timing, zone, task, options, *rest, created = row
    plan = Plan(chat, kind, words, json.loads(timing), zone, task, json.loads(options), *rest)
    return Job(number, plan, created)
