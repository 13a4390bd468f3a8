"""From an occurrence to its delivery: what is posted for it, and how that ended."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.store import outbox
from agent.store.chats import Clock
from agent.store.database import Database, Tx
from agent.store.jobs import Job


@dataclass(frozen=True, slots=True)
class Fallen:
    """What fell due of a job: times to `run`, times only recorded as `missed`, and what comes next.

    `next_at` None ends the job.
    """

    job: Job
    run: Sequence[int]
    missed: Sequence[int]
    next_at: int | None


Notice = Callable[[Sequence[int]], str | None]
"""The outbox's payload that tells of these missed due times, or None to keep silent."""


@dataclass(frozen=True)
class Ledger:
    """Beside JobTable: the steps of an occurrence that touch the outbox and turns."""

    database: Database
    clock: Clock

    async def enter(self, fallen: Fallen, why: str, notice: Notice) -> None:
        """All of it in one transaction, so that a kill in between loses no occurrence and no word of it.

        Nothing where the job was edited, paused or deleted since it was read.
        """
        job = fallen.job
        async with self.database.write() as tx:
            if not await self._moved(tx, fallen):
                return
            new = await self._missed(tx, job.id, fallen.missed, why)
            await tx.run(_DUE, job.id, json.dumps(list(fallen.run)))
            if new and (payload := notice(new)):
                await outbox.put(tx, job.plan.chat, [payload], self.clock())

    async def _moved(self, tx: Tx, fallen: Fallen) -> bool:
        """Give the job its next time, if it is still the job that was read."""
        job = fallen.job
        rows = await tx.all(
            "UPDATE jobs SET next_at = ?2, state = iif(?2 IS NULL, 'ended', 'active')"
            " WHERE id = ?1 AND state = 'active' AND timing = ?3 AND next_at IS ?4 RETURNING id",
            job.id,
            fallen.next_at,
            json.dumps(dict(job.plan.timing)),
            job.plan.next_at,
        )
        return bool(rows)

    async def fail(self, occurrence: int, chat: str, payload: str, why: str) -> None:
        """End a running occurrence and tell why, once."""
        async with self.database.write() as tx:
            ended = await tx.all(
                "UPDATE occurrences SET state = 'failed', detail = ?2, ended_at = ?3"
                " WHERE id = ?1 AND state = 'running' RETURNING id",
                occurrence,
                why,
                self.clock(),
            )
            if ended:
                await outbox.put(tx, chat, [payload], self.clock())

    async def post(self, occurrence: int, chat: str, payloads: Sequence[str]) -> None:
        """Put what an occurrence says into the outbox, once, however often it is asked."""
        async with self.database.write() as tx:
            if await tx.value("SELECT outbox FROM occurrences WHERE id = ?", occurrence):
                return
            ids = await outbox.put(tx, chat, payloads, self.clock())
            await tx.run("UPDATE occurrences SET outbox = ? WHERE id = ?", ids[-1], occurrence)

    async def said(self, occurrence: int) -> bool:
        """Whether what it had to say is out, on its way, or in doubt and told: not cut off, not refused."""
        async with self.database.read() as tx:
            return bool(await tx.value(_SAID, occurrence))

    async def failures(self, since: float) -> tuple[int, int]:
        """Turns that ended by a fault, and occurrences that failed, since an instant."""
        async with self.database.read() as tx:
            turns = await tx.value(
                "SELECT count(*) FROM turns WHERE reason IN ('error', 'backend') AND ended_at >= ?",
                since,
            )
            jobs = await tx.value(
                "SELECT count(*) FROM occurrences WHERE state = 'failed' AND ended_at >= ?", since
            )
        return int(turns), int(jobs)

    async def settle(self) -> None:
        """End running occurrences whose messages have met their end.

        A task's turn is found by the inbox row it was put in as ("job:due"). A
        send of which nobody knows the end is told by its own notice; the
        occurrence does not claim it.
        """
        async with self.database.write() as tx:
            await tx.run(_FIND_TURN)
            await tx.run(_FIND_OUTBOX)
            await tx.run(_END_BY_OUTBOX, self.clock())
            await tx.run(_END_SILENT, self.clock())

    async def drop_older(self, job: int, keep: int, why: str) -> list[int]:
        """Of the occurrences of a job that wait, all but the newest `keep` are missed; their due times."""
        async with self.database.write() as tx:
            rows = await tx.all(
                "UPDATE occurrences SET state = 'missed', detail = ?3, ended_at = ?4"
                " WHERE job = ?1 AND state = 'due' AND due_at NOT IN (SELECT due_at FROM occurrences"
                " WHERE job = ?1 AND state = 'due' ORDER BY due_at DESC LIMIT ?2) RETURNING due_at",
                job,
                keep,
                why,
                self.clock(),
            )
        return sorted(row[0] for row in rows)

    async def _missed(self, tx: Tx, job: int, due: Sequence[int], why: str) -> list[int]:
        """Enter occurrences that are only recorded; the due times that were not known before."""
        rows = await tx.all(
            "INSERT INTO occurrences (job, due_at, state, detail, ended_at)"
            " SELECT ?1, value, 'missed', ?3, ?4 FROM json_each(?2) WHERE true"
            " ON CONFLICT DO NOTHING RETURNING due_at",
            job,
            json.dumps(list(due)),
            why,
            self.clock(),
        )
        return sorted(row[0] for row in rows)

    async def interrupted(self) -> list[int]:
        """At start: running occurrences with nothing in the outbox and no inbox row begin again."""
        async with self.database.write() as tx:
            rows = await tx.all(
                f"UPDATE {_OPEN} SET state = 'due' WHERE {_RUNNING} AND outbox IS NULL"
                f" AND NOT EXISTS (SELECT 1 FROM inbox WHERE {_ITS_ROW}) RETURNING id"
            )
        return [row[0] for row in rows]


_SAID = """
SELECT occurrences.state = 'done' OR coalesce(outbox.state, 'failed') <> 'failed'
FROM occurrences LEFT JOIN outbox ON outbox.id = occurrences.outbox WHERE occurrences.id = ?"""

_DUE = """
INSERT INTO occurrences (job, due_at) SELECT ?1, value FROM json_each(?2) WHERE true ON CONFLICT DO NOTHING"""

_ITS_ROW = "inbox.source = 'job' AND inbox.update_id = occurrences.job || ':' || occurrences.due_at"

# By way of the index of those few, past the years of those that have ended; its
# condition stands here as it does there, or SQLite would not see that it serves.
_OPEN = "occurrences INDEXED BY occurrences_open"
_RUNNING = "state IN ('due', 'running') AND state <> 'due'"

# Looked up each time: a turn that was put back is played anew under another id.
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

# A turn that ended without anything to send (a chat that reads events itself), or was put aside.
_END_SILENT = f"""
UPDATE {_OPEN} SET ended_at = ?1, state = iif(turn IS NULL, 'missed', 'done'),
    detail = iif(turn IS NULL, 'it was put aside', 'answered')
WHERE {_RUNNING} AND outbox IS NULL
    AND EXISTS (SELECT 1 FROM inbox WHERE {_ITS_ROW} AND inbox.state = 'done')"""
