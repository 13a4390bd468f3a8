"""Scheduled jobs, and their occurrences: one row per job and due time, from due to delivered."""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter

from agent.store import chats, ledger, outbox
from agent.store.database import Database, Row, columns, storable
from agent.store.people import LINKED

OVERDUE_SECONDS = 60  # a job that late is not about to run
LOOKS = 20  # of a watch that found no change, as many are kept
MOST_WAITING = 50  # triggered occurrences of a job
MAX_ID = 2**63 - 1  # of SQLite; a person may type any number
JSON = TypeAdapter(dict[str, Any], config=ConfigDict(defer_build=True))
JobState = Literal["proposed", "active", "paused", "ended", "deleted"]
CatchUp = Literal["once", "all", "missed"]


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a job does and when. `timing` is a rule as agent.schedule.times stores it, `when` the time in the
    person's words, `next_at` whole seconds since the epoch. `stranger` names the strangers' text that its
    chat held when the model planned it."""

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
    """The scheduled jobs. Each function in `on_wake` is called after a job was made or changed."""

    database: Database
    on_wake: list[Callable[[], None]] = field(default_factory=list)

    def wake(self) -> None:
        for callback in self.on_wake:
            callback()

    async def add(self, spec: JobSpec) -> Job:
        async with self.database.write() as tx:
            await chats.ensure(tx, spec.chat)
            row = await tx.insert_returning(
                _JOB_COLUMNS, "jobs", **_values(spec), created_at=tx.now, changed_at=tx.now
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
        """The jobs of the chat and of chats linked with it, without deleted ones, oldest first."""
        return await self._where(f"chat IN {LINKED} AND state <> 'deleted' ORDER BY id", chat)

    async def get_of(self, chat: str, id: int) -> Job | None:
        """A job of the chat, or of one linked with it."""
        found = await self._where(f"chat IN {LINKED} AND id = ?2", chat, min(id, MAX_ID))
        return found[0] if found else None

    async def seen(self, id: int) -> str:
        """What a watch saw and told last, as it stored that; "" before its first look."""
        return str(await self.database.value("SELECT seen FROM jobs WHERE id = ?", id) or "")

    async def active(self, due_by: float = math.inf) -> list[Job]:
        """The active jobs; of those with a next time, the ones due by then."""
        due = "" if due_by == math.inf else "AND (next_at IS NULL OR next_at <= ?)"
        values = [due_by] if due else []
        return await self._where(f"state = 'active' {due} ORDER BY id", *values)

    async def _where(self, condition: str, *values: Any) -> list[Job]:
        sql = f"SELECT {_JOB_COLUMNS} FROM jobs WHERE {condition}"
        return [_job(row) for row in await self.database.all(sql, *values)]

    async def set_state(self, id: int, state: JobState) -> None:
        sql = "UPDATE jobs SET state = ?, changed_at = ? WHERE id = ?"
        await self.database.execute(sql, state, self.database.clock(), id)

    async def active_and_next(self) -> tuple[int, int | None]:
        """How many jobs are active, and the next due time."""
        sql = "SELECT count(*), min(next_at) FROM jobs WHERE state = 'active'"
        [(count, next_at)] = await self.database.all(sql)
        return count, next_at


_JOB_COLUMNS = "id, chat, kind, words, timing, timezone, task, options, catch_up, state, made_by, next_at, stranger, created_at"


def _values(spec: JobSpec) -> dict[str, Any]:
    values = {field.name: getattr(spec, field.name) for field in fields(spec)}
    values["words"] = values.pop("when")
    for name in ("timing", "options"):
        values[name] = json.dumps(dict(values[name]))
    return values


def _job(row: Row) -> Job:
    number, chat, kind, when, timing, zone, task, options, *rest, created = row
    spec = JobSpec(chat, kind, when, JSON.validate_json(timing), zone, task, JSON.validate_json(options), *rest)  # fmt: skip
    return Job(number, spec, created)


OccurrenceState = Literal["due", "running", "done", "missed", "failed"]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One due time of a job, and what became of it. `due_at` is in whole seconds since the epoch. "done" carries the id of what was delivered. `data` is
    text from outside that it runs with."""

    id: int
    job: int
    due_at: int
    state: OccurrenceState
    attempts: int
    message_id: str
    detail: str
    data: str


@dataclass(frozen=True, slots=True)
class DueTimes:
    """The due times of a job that have come, to `run` or only to be recorded as `missed`, and the next one;
    `next_at` None ends the job."""

    job: Job
    run: Sequence[int]
    missed: Sequence[int]
    next_at: int | None


@dataclass(frozen=True, slots=True)
class LookResult:
    """The outcome of a watch's look. `seen` is its new state; `data` the change or failure that is to be told,
    `payload` the message that tells it, if no task does."""

    seen: str
    detail: str
    failed: bool = False
    data: str = ""
    payload: str = ""


MissedNotice = Callable[[Sequence[int]], str | None]
"""The payload of a notice of these missed due times, or None for no notice."""


@dataclass(frozen=True)
class OccurrenceTable:
    database: Database

    async def trigger(self, job: int, data: str, by: str = "") -> bool:
        """Add an occurrence that is due now, besides the job's times, and with `by` a row in the ledger; False where
        too many wait already.

        One without data is not added twice in a second.
        """
        sql = (
            "INSERT INTO occurrences (job, due_at, data) SELECT ?1, iif(?2 = '', ?3, max(?3,"
            " 1 + coalesce((SELECT max(due_at) FROM occurrences WHERE job = ?1), 0))), ?2"
            " WHERE ?4 > (SELECT count(*) FROM occurrences WHERE job = ?1 AND state = 'due')"
            " ON CONFLICT DO NOTHING RETURNING id"
        )
        async with self.database.write() as tx:
            added = await tx.all(sql, job, storable(data), int(tx.now), MOST_WAITING)
            if added and by:
                chat = await tx.value("SELECT chat FROM jobs WHERE id = ?", job)
                await ledger.record(tx, "admin", chat, act="trigger", job=str(job), by=by)
        return bool(added)

    async def add_due(self, due: DueTimes, why_missed: str, notice: MissedNotice) -> None:
        """Add the occurrences that have come due, and the notice of missed ones, in one transaction.

        Without effect if the job was edited, paused or deleted since it was read.
        """
        job = due.job
        async with self.database.write() as tx:
            sql = (
                "UPDATE jobs SET next_at = ?2, state = iif(?2 IS NULL, 'ended', 'active')"
                " WHERE id = ?1 AND state = 'active' AND timing = ?3 AND next_at IS ?4 RETURNING id"
            )
            unchanged = await tx.all(
                sql, job.id, due.next_at, json.dumps(dict(job.spec.timing)), job.spec.next_at
            )
            if not unchanged:
                return
            sql = (
                "INSERT INTO occurrences (job, due_at, state, detail, ended_at)"
                " SELECT ?1, value, 'missed', ?3, ?4 FROM json_each(?2) WHERE true"
                " ON CONFLICT DO NOTHING RETURNING due_at"
            )
            missed = await tx.all(sql, job.id, json.dumps(list(due.missed)), why_missed, tx.now)
            sql = (
                "INSERT INTO occurrences (job, due_at) SELECT ?1, value FROM json_each(?2) WHERE true"
                " ON CONFLICT DO NOTHING"
            )
            await tx.run(sql, job.id, json.dumps(list(due.run)))
            if missed and (payload := notice(sorted(row[0] for row in missed))):
                await outbox.put(tx, job.spec.chat, [payload])

    async def begin(self, id: int) -> Occurrence | None:
        """due -> running, unless another occurrence of that job runs; None when it may not start."""
        sql = (
            "UPDATE occurrences SET state = 'running', attempts = attempts + 1, started_at = ?2"
            " WHERE id = ?1 AND state = 'due' AND NOT EXISTS (SELECT 1 FROM occurrences other"
            " WHERE other.job = occurrences.job AND other.state = 'running')"
            f" RETURNING {_OCCURRENCE_COLUMNS}"
        )
        rows = await self.database.execute(sql, id, self.database.clock())
        return Occurrence(*rows[0]) if rows else None

    async def end(self, id: int, state: OccurrenceState, detail: str) -> None:
        """End an occurrence that has nothing to deliver."""
        sql = "UPDATE occurrences SET state = ?, detail = ?, ended_at = ? WHERE id = ?"
        await self.database.execute(sql, state, detail, self.database.clock(), id)

    async def fail(self, id: int, chat: str, payload: str, why: str) -> None:
        """End a running occurrence as failed and post `payload`, once."""
        async with self.database.write() as tx:
            sql = (
                "UPDATE occurrences SET state = 'failed', detail = ?2, ended_at = ?3"
                " WHERE id = ?1 AND state = 'running' RETURNING id"
            )
            ended = await tx.all(sql, id, why, tx.now)
            if ended:
                await outbox.put(tx, chat, [payload])

    async def post(self, id: int, chat: str, payloads: Sequence[str]) -> None:
        """Put an occurrence's messages into the outbox, once; it is done when they are delivered
        (OutboxTable.delivered). Without effect if its chat was forgotten meanwhile."""
        async with self.database.write() as tx:
            known = await tx.one("SELECT outbox FROM occurrences WHERE id = ?", id)
            if known is None or known[0]:
                return
            ids = await outbox.put(tx, chat, payloads)
            await tx.run("UPDATE occurrences SET outbox = ? WHERE id = ?", ids[-1], id)

    async def looked(self, id: int, look: LookResult) -> bool:
        """Record the look of a running occurrence, its watch's new state and its message, in one transaction; False
        where it runs no more. One with something to tell goes on until that is delivered, any other ends. Of the job's looks
        that told nothing, LOOKS are kept."""
        async with self.database.write() as tx:
            sql = "SELECT job, chat FROM occurrences JOIN jobs ON jobs.id = job WHERE occurrences.id = ? AND occurrences.state = 'running'"
            found = await tx.one(sql, id)
            if found is None:
                return False
            job, chat = found
            sent = await outbox.put(tx, chat, [look.payload]) if look.payload else [0]
            await tx.run("UPDATE jobs SET seen = ? WHERE id = ?", storable(look.seen), job)
            state = "running" if look.data else "failed" if look.failed else "done"
            sql = (
                "UPDATE occurrences SET state = ?2, detail = ?3, data = ?4, outbox = ?5,"
                " ended_at = iif(?2 = 'running', NULL, ?6) WHERE id = ?1"
            )
            data, detail = storable(look.data), storable(look.detail)
            await tx.run(sql, id, state, detail, data, sent[-1] or None, tx.now)
            await tx.run(_FORGET_LOOKS, job, LOOKS)
        return True

    async def open(self) -> list[Occurrence]:
        """Due or running occurrences, oldest first."""
        rows = await self.database.all(
            f"SELECT {_OCCURRENCE_COLUMNS} FROM occurrences WHERE state IN ('due', 'running')"
            " ORDER BY due_at, id"
        )
        return [Occurrence(*row) for row in rows]

    async def of_job(self, job: int, limit: int = 20) -> list[Occurrence]:
        """Return the occurrences of a job, newest first."""
        sql = f"SELECT {_OCCURRENCE_COLUMNS} FROM occurrences WHERE job = ? ORDER BY due_at DESC LIMIT ?"
        return [Occurrence(*row) for row in await self.database.all(sql, job, limit)]

    async def delivered(self, id: int) -> bool:
        """Whether it is done, or its messages are in the outbox and not refused."""
        sql = (
            "SELECT occurrences.state = 'done' OR coalesce(outbox.state, 'failed') <> 'failed'"
            " FROM occurrences LEFT JOIN outbox ON outbox.id = occurrences.outbox WHERE occurrences.id = ?"
        )
        return bool(await self.database.value(sql, id))

    async def failures(self, since: float) -> tuple[int, int]:
        """How many turns ended with an error, and how many occurrences failed, since an instant."""
        sql = "SELECT count(*) FROM turns WHERE reason IN ('error', 'backend') AND ended_at >= ?"
        turns = await self.database.value(sql, since)
        sql = "SELECT count(*) FROM occurrences WHERE state = 'failed' AND ended_at >= ?"
        jobs = await self.database.value(sql, since)
        return int(turns), int(jobs)

    async def settle(self) -> None:
        """End the running occurrences whose messages were delivered, refused or uncertain.

        A task's turn is found by its inbox row ("job:due"). An uncertain send has a notice of its own, so
        the occurrence counts as failed.
        """
        async with self.database.write() as tx:
            await tx.run(_FIND_TURN)
            await tx.run(_FIND_OUTBOX)
            await tx.run(_END_BY_OUTBOX, tx.now)
            await tx.run(_END_SILENT, tx.now)

    async def drop_older(self, job: int, keep: int, why: str) -> None:
        """Mark all but the newest `keep` due occurrences of a job as missed; those with data stay."""
        sql = (
            "UPDATE occurrences SET state = 'missed', detail = ?3, ended_at = ?4"
            " WHERE job = ?1 AND state = 'due' AND data = '' AND due_at NOT IN (SELECT due_at FROM"
            " occurrences WHERE job = ?1 AND state = 'due' AND data = '' ORDER BY due_at DESC LIMIT ?2)"
        )
        await self.database.execute(sql, job, keep, why, self.database.clock())

    async def requeue_interrupted(self, running: Collection[int]) -> None:
        """Set running occurrences to due again that a process has left: without a row in outbox or inbox, and of
        no job that is `running` in this process."""
        await self.database.execute(
            f"UPDATE {_OPEN} SET state = 'due' WHERE {_RUNNING} AND outbox IS NULL"
            f" AND NOT EXISTS (SELECT 1 FROM inbox WHERE {_ITS_ROW})"
            " AND job NOT IN (SELECT value FROM json_each(?))",
            json.dumps(list(running)),
        )


_OCCURRENCE_COLUMNS = columns(Occurrence)

_ITS_ROW = "inbox.source = 'job' AND inbox.update_id = occurrences.job || ':' || occurrences.due_at"

# Uses the index of the few open occurrences; SQLite does so only if the condition repeats the index's own.
_OPEN = "occurrences INDEXED BY occurrences_open"
_RUNNING = "state IN ('due', 'running') AND state <> 'due'"

# Looked up each time: a cancelled turn runs again under another id.
_FIND_TURN = f"""
UPDATE {_OPEN} SET turn = (SELECT turn FROM inbox WHERE {_ITS_ROW})
WHERE {_RUNNING} AND outbox IS NULL AND EXISTS (SELECT 1 FROM inbox WHERE {_ITS_ROW})"""

_FIND_OUTBOX = f"""
UPDATE {_OPEN} SET outbox = (SELECT max(id) FROM outbox WHERE outbox.turn = occurrences.turn)
WHERE {_RUNNING} AND turn IS NOT NULL AND outbox IS NULL"""

_END_BY_OUTBOX = f"""
UPDATE {_OPEN} SET ended_at = ?1,
    state = CASE (SELECT state FROM outbox WHERE id = occurrences.outbox) WHEN 'delivered' THEN 'done' ELSE 'failed' END,
    message_id = coalesce((SELECT message_ids ->> '$[#-1]' FROM outbox WHERE id = occurrences.outbox), ''),
    detail = (SELECT CASE state WHEN 'failed' THEN error WHEN 'uncertain' THEN 'nobody knows whether it arrived' ELSE '' END
              FROM outbox WHERE id = occurrences.outbox)
WHERE {_RUNNING} AND EXISTS (SELECT 1 FROM outbox
    WHERE id = occurrences.outbox AND outbox.state IN ('delivered', 'failed', 'uncertain'))"""

# A turn that ended with nothing to send (its chat reads events itself), or a task that was discarded.
_END_SILENT = f"""
UPDATE {_OPEN} SET ended_at = ?1, state = iif(turn IS NULL, 'missed', 'done'),
    detail = iif(turn IS NULL, 'it was discarded', 'answered')
WHERE {_RUNNING} AND outbox IS NULL
    AND EXISTS (SELECT 1 FROM inbox WHERE {_ITS_ROW} AND inbox.state = 'done')"""


_FORGET_LOOKS = """
DELETE FROM occurrences WHERE job = ?1 AND state IN ('done', 'failed', 'missed') AND data = '' AND due_at < (
    SELECT due_at FROM occurrences WHERE job = ?1 AND data = '' ORDER BY due_at DESC LIMIT 1 OFFSET ?2)"""
