"""One round over the jobs: enter what fell due, say what was missed, start what may run.

Every occurrence is a row, unique by job and due time, before anything is done
for it. A round may be cut off anywhere and made again: nothing is lost, nothing
runs twice. The clock may jump: a job's next time is never later than its rule
says from now on, and a time that was served before is not served again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from functools import partial
from zoneinfo import ZoneInfo

from agent.errors import AgentError
from agent.schedule.times import due_second, load, next_times
from agent.store import Store
from agent.store.jobs import Job
from agent.store.occurrences import DueTimes, Occurrence

log = logging.getLogger(__name__)

GRACE = 300  # seconds: a reminder that late is still the reminder, not a missed one
CATCH_UP = 10  # of "run all", at most this many
ATTEMPTS = 8  # one that takes the whole program down each time must end, too
_MISSED_AT_ONCE = 1000  # rows entered for one long absence; the count is told, not the rows


class Nothing(Exception):
    """A cheap check found nothing to do; `str` says so. `tell` it to the person or keep silent."""

    def __init__(self, why: str, *, tell: bool = False) -> None:
        super().__init__(why)
        self.tell = tell


Kind = Callable[[Job, Occurrence], Awaitable[str | None]]
"""Does it; gives the text to send (Markdown), or None when that is seen to already, as by a turn.

Raises Nothing, or an AgentError whose sentence is told to the person."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """Hours in which only what a person asked for at that very time is said."""

    start: time
    end: time
    zone: str

    @classmethod
    def parse(cls, text: str, zone: str) -> "Quiet | None":
        """ "22:00-07:00"; None for an empty text; ValueError when it is neither."""
        if not text:
            return None
        start, _, end = text.partition("-")
        return cls(time.fromisoformat(start.strip()), time.fromisoformat(end.strip()), zone)

    def now(self, at: datetime) -> bool:
        local = at.astimezone(ZoneInfo(self.zone)).time()
        if self.start <= self.end:
            return self.start <= local < self.end
        return local >= self.start or local < self.end


@dataclass
class Rounds:
    """`letter` makes the outbox's payload of a text; `clock` gives seconds since the epoch.

    `waits` says after a round whether an occurrence is to run, or runs, still.
    """

    store: Store
    kinds: Mapping[str, Kind]
    letter: Callable[[str], str]
    clock: Callable[[], float]
    quiet: Quiet | None = None
    waits: bool = False
    _running: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    async def recover(self) -> None:
        """At start: what a killed process had begun and not yet said begins again."""
        await self.store.occurrences.settle()
        await self.store.occurrences.requeue_interrupted()

    async def make(self, tasks: asyncio.TaskGroup) -> float | None:
        """One round; runs go into `tasks`. The next time that something falls due, or None."""
        await self.store.occurrences.settle()
        now = self.clock()
        jobs = await self.store.jobs.active()
        for job in jobs:
            await self._enter(job, now)
        waiting = await self.store.occurrences.open()
        self.waits = bool(waiting)
        for occurrence in waiting:
            if occurrence.state == "due":
                await self._start(occurrence, tasks, now)
        return (await self.store.jobs.active_and_next())[1]

    # -- entering ---------------------------------------------------------------

    async def _enter(self, job: Job, now: float) -> None:
        upcoming = _next(job, now)
        if job.spec.next_at is None or (upcoming and job.spec.next_at > upcoming):
            # New, or the clock had been ahead.
            await self.store.occurrences.add_due(
                DueTimes(job, (), (), upcoming), "", lambda _: None
            )
            return
        if job.spec.next_at > now:
            return
        await self._fall_due(job, _between(job, job.spec.next_at, now), upcoming, now)

    async def _fall_due(
        self, job: Job, due: Sequence[int], upcoming: int | None, now: float
    ) -> None:
        """Enter what is to run and what is missed, by the job's policy."""
        late = now - due[-1] > GRACE
        kept = {"once": 1, "all": CATCH_UP, "missed": 0 if late else 1}[job.spec.catch_up]
        run = due[len(due) - kept :] if kept else []
        gone = due[: len(due) - len(run)][-_MISSED_AT_ONCE:]
        fallen = DueTimes(job, run, gone, upcoming)
        await self.store.occurrences.add_due(
            fallen, "the host was off or busy", partial(self._notice, job)
        )

    def _notice(self, job: Job, missed: Sequence[int]) -> str | None:
        return self.letter(_missed(job, missed)) if job.spec.catch_up == "missed" else None

    # -- running ----------------------------------------------------------------

    async def _start(self, occurrence: Occurrence, tasks: asyncio.TaskGroup, now: float) -> None:
        job = await self.store.jobs.get(occurrence.job)
        if job is None or job.spec.state == "deleted":
            await self.store.occurrences.end(occurrence.id, "missed", "the job was deleted")
            return
        if self._silent(job, now) or occurrence.job in self._running:
            return
        keep = CATCH_UP if job.spec.catch_up == "all" else 1
        await self.store.occurrences.drop_older(job.id, keep, "a later one was due, too")
        begun = await self.store.occurrences.begin(occurrence.id)
        if begun:
            task = tasks.create_task(self._run(job, begun))
            self._running[job.id] = task
            task.add_done_callback(lambda _: self._running.pop(job.id, None))

    def _silent(self, job: Job, now: float) -> bool:
        """Whether it keeps quiet now: not what a person asked for at that very time, nor what says nothing."""
        once = job.spec.timing["kind"] == "once"
        asked = job.spec.made_by == "person" and (once or job.spec.kind == "remind")
        asked = asked or job.spec.kind == "profile"
        at = datetime.fromtimestamp(now, UTC)
        return not asked and self.quiet is not None and self.quiet.now(at)

    async def _run(self, job: Job, occurrence: Occurrence) -> None:
        try:
            text = await self._text(job, occurrence)
        except Nothing as nothing:
            await self._end_with_nothing(job, occurrence, nothing)
        except AgentError as error:
            await self._failed(job, occurrence, str(error))
        except Exception:
            log.exception("job failed job=%d kind=%s", job.id, job.spec.kind)
            await self._failed(job, occurrence, "It failed for a reason that is in the log.")
        else:
            if text is not None:
                await self._post(job, occurrence, text)
        log.info("job job=%d kind=%s due=%d", job.id, job.spec.kind, occurrence.due_at)

    async def _text(self, job: Job, occurrence: Occurrence) -> str | None:
        if occurrence.attempts > ATTEMPTS:
            raise AgentError(f"It was begun {ATTEMPTS} times and never came to its end.")
        kind = self.kinds.get(job.spec.kind)
        if kind is None:
            raise AgentError(f"There is no kind of job named {job.spec.kind}.")
        return await kind(job, occurrence)

    async def _end_with_nothing(self, job: Job, occurrence: Occurrence, nothing: Nothing) -> None:
        if nothing.tell:
            await self._post(job, occurrence, f"{job.spec.task}: {nothing}")
        else:
            await self.store.occurrences.end(occurrence.id, "done", str(nothing))

    async def _failed(self, job: Job, occurrence: Occurrence, why: str) -> None:
        told = self.letter(f"⚠️ The job “{job.spec.task}” failed. {why}")
        await self.store.occurrences.fail(occurrence.id, job.spec.chat, told, why)
        self.store.outbox.added.set()

    async def _post(self, job: Job, occurrence: Occurrence, text: str) -> None:
        await self.store.occurrences.post(occurrence.id, job.spec.chat, [self.letter(text)])
        self.store.outbox.added.set()


def _next(job: Job, now: float) -> int | None:
    found = next_times(load(dict(job.spec.timing)), datetime.fromtimestamp(now, UTC))
    return due_second(found[0]) if found else None


def _between(job: Job, first: int, now: float) -> list[int]:
    """The due times from `first` on, up to now; of a very long absence the newest thousand."""
    rule = load(dict(job.spec.timing))
    due, at = [first], datetime.fromtimestamp(first, UTC)
    while len(due) < 100 * _MISSED_AT_ONCE:
        found = next_times(rule, at, 64)
        past = [t for t in found if due_second(t) <= now]
        due += [due_second(t) for t in past]
        if not past or len(past) < len(found):
            break
        at = past[-1]
    return due


def _missed(job: Job, due: Sequence[int]) -> str:
    last = datetime.fromtimestamp(due[-1], ZoneInfo(job.spec.timezone))
    times = "once" if len(due) == 1 else f"{len(due)} times"
    return f"⏰ Missed {times} while I was off: {job.spec.task} (last due {last:%a %d %b %H:%M})."
