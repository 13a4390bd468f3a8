"""Passes over the jobs: enter what fell due, tell what was missed, start what may run.

Every occurrence is a row, unique by job and due time, before anything is done
for it. A pass may be cut off anywhere and made again: nothing is lost, nothing
runs twice. The clock may jump: a job's next time is never later than its rule
says from now on, and a time that was entered before is not entered again.

A pass is made when something falls due or was delivered, and twice a minute besides: the timer is not
enough by itself, after a suspend or a jump of the clock it would ring late.
"""

import asyncio
import logging
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from functools import partial
from itertools import islice, takewhile
from typing import Any, Self
from zoneinfo import ZoneInfo

from agent.aio import set_within
from agent.channels import Channels
from agent.errors import AgentError, NothingToDo
from agent.language import plural, speaking, translated
from agent.sandbox.output_buffer import clean
from agent.schedule.due_times import Timer, due_second, due_times, next_due
from agent.schedule.times.rule import date_words, describe, load
from agent.store import Incoming, Store
from agent.store.errors import StoreError
from agent.store.inbox import JOB
from agent.store.jobs import DueTimes, Job, Occurrence
from agent.summary.repo_summaries import RepoSummaries

log = logging.getLogger(__name__)

GRACE_SECONDS = 300  # a reminder that late is still the reminder, not a missed one
CATCH_UP = 10  # of "run all", at most this many
ATTEMPTS = 3  # an occurrence that takes the whole program down each time is ended after so many
PASS_SECONDS = 30.0
NIGHT = "night"  # the kind of job of agent.schedule.night
MISSED_ROWS = 1000  # most rows entered for one long absence


JobAction = Callable[[Job, Occurrence], Awaitable[str | None]]
"""Carries out an occurrence; gives the text to send (Markdown), or None when it has sent or will
send that itself. Raises agent.errors.NothingToDo, or an AgentError whose sentence goes to the person."""


async def remind(job: Job, occurrence: Occurrence) -> str:
    """Return the reminder's text without asking the model, with its data in a block of code."""
    data = clean(occurrence.data.strip())
    return f"🔔 {job.spec.task}\n\n{block(data)}" if data else f"⏰ {job.spec.task}"


def block(data: str) -> str:
    """Strangers' text as a block of code, which it cannot end."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", data))])
    return f"{fence}\n{data}\n{fence}"


def tell_change(text: str, change: str) -> str:
    """The message of a watch: its text, with the change in place of {change}."""
    return text.replace("{change}", f"\n{block(clean(change))}\n").strip()


def task_text(job: Job, data: str) -> str:
    """The task as the model reads it, with data from outside behind it."""
    if not data:
        return job.spec.task
    quoted = re.sub(r"</(?=\s*data)", "<\\/", clean(data.strip()), flags=re.IGNORECASE)
    return f"{job.spec.task}\n\n<data>\n{quoted}\n</data>"


@dataclass(frozen=True)
class SubmitTask:
    """Submits a turn in the chat's conversation, behind people in the GPU queue; its reply is the message."""

    submit: Callable[[Incoming], Awaitable[bool]]

    async def __call__(self, job: Job, occurrence: Occurrence) -> None:
        when = describe(load(job.spec.timing), job.spec.timezone)
        sources = (
            job.spec.stranger and f"job {job.id}, planned after {job.spec.stranger}",
            occurrence.data and f"data for job {job.id}",
        )
        await self.submit(
            Incoming(
                chat=job.spec.chat,
                source=JOB,
                update=f"{job.id}:{occurrence.due_at}",
                text=task_text(job, occurrence.data),
                kind="job",
                context_lines=(f"scheduled job {job.id}: {when}",),
                at=float(occurrence.due_at),
                stranger="; ".join(filter(None, sources)),
            )
        )


@dataclass(frozen=True)
class SummarizeRepo:
    """Summarizes a repository from where the last delivered summary ends.

    It posts the text itself, under the lock, because the next summary begins where this one ends, and
    delivery is certain only once the text is in the outbox.
    """

    summaries: RepoSummaries
    channels: Channels
    locks: dict[tuple[str, str], asyncio.Lock] = field(default_factory=dict)

    async def __call__(self, job: Job, occurrence: Occurrence) -> None:
        chat, repo = job.spec.chat, job.spec.task
        async with self.locks.setdefault((chat, repo), asyncio.Lock()):
            text = await self.summaries.make(chat, repo, occurrence.id)
            store = self.summaries.store
            await store.occurrences.post(occurrence.id, chat, [self.channels.payload(text)])
        store.outbox.wake()


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Hours in which only what a person asked for at that very time is sent. An `end` before `start` lies on
    the next day."""

    start: time
    end: time
    zone: str

    @classmethod
    def parse(cls, text: str, zone: str) -> "QuietHours | None":
        """ "22:00-07:00"; None for an empty text; ValueError when it is neither."""
        if not text:
            return None
        start, _, end = text.partition("-")
        return cls(time.fromisoformat(start.strip()), time.fromisoformat(end.strip()), zone)

    def hold(self, job: Job, at: datetime) -> bool:
        """Return whether the job has to wait for the end of the quiet hours."""
        once = job.spec.timing["kind"] == "once"
        asked = job.spec.made_by == "person" and (once or job.spec.kind == "remind")
        if asked or job.spec.kind in ("profile", NIGHT):  # they send nothing then
            return False
        return self.left(at) > 0

    def left(self, at: datetime) -> float:
        """Seconds until the quiet hours are over; 0 outside of them."""
        local = at.astimezone(ZoneInfo(self.zone))
        now, end = local.time(), datetime.combine(local.date(), self.end, local.tzinfo)
        within = self.start <= now < self.end
        if self.start > self.end:
            within = now >= self.start or now < self.end
        return (end - local).total_seconds() % 86_400 if within else 0.0


@dataclass
class JobRunner:
    """Makes the passes. `actions` are by kind of job; `open`: whether an occurrence was due or ran after the last."""

    store: Store
    actions: Mapping[str, JobAction]
    channels: Channels
    quiet: QuietHours | None = None
    open: bool = False
    running: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    held_up: Counter[int] = field(default_factory=Counter)  # attempts that only the store ended
    swept_at: float = -math.inf  # when the next times of all jobs were looked at

    def __post_init__(self) -> None:
        self.store.freeze.on_freeze.append(self.stop_all)

    async def run_pass(self, tasks: asyncio.TaskGroup) -> float | None:
        """Start what is due, in `tasks`; return the next time that something falls due, or None.

        What a killed process had begun and not yet posted begins again.
        """
        await self.store.occurrences.settle()
        await self.store.occurrences.requeue_interrupted(self.running)
        now = datetime.fromtimestamp(self.store.clock(), UTC)
        swept = 0 <= now.timestamp() - self.swept_at < PASS_SECONDS
        jobs = await self.store.jobs.active(now.timestamp() if swept else math.inf)
        if not swept:  # all of them: the clock may have been set back
            self.swept_at = now.timestamp()
        for job in filter(self._runs_here, jobs):
            await guarded(job.id, self.enter_due(job, now))
        occurrences = await self.store.occurrences.open()
        self.open = bool(occurrences)
        frozen = await self.store.freeze.since() is not None
        for occurrence in occurrences:
            if occurrence.state == "due" and not frozen:
                await guarded(occurrence.job, self.start(occurrence, tasks, now))
        return (await self.store.jobs.active_and_next())[1]

    def _runs_here(self, job: Job) -> bool:
        return self.channels.owns(job.spec.chat, JOB)

    async def enter_due(self, job: Job, now: datetime) -> None:
        """Store the occurrences to run and those missed, by the job's policy, and its next time."""
        rule = load(job.spec.timing)
        upcoming = next_due(rule, now)
        next_at = job.spec.next_at
        run: Sequence[int] = ()
        missed: Sequence[int] = ()
        if next_at is not None and not (upcoming and next_at > upcoming):
            if next_at > now.timestamp():
                return
            due = past_due_times(job, next_at, now)
            late = now.timestamp() - due[-1] > GRACE_SECONDS
            keep = {"once": 1, "all": CATCH_UP, "missed": 0 if late else 1}[job.spec.catch_up]
            run = due[len(due) - keep :] if keep else []
            missed = due[: len(due) - len(run)][-MISSED_ROWS:]
        # Else the job is new, or the clock had been ahead: only its next time is entered.
        with speaking(await self.language(job) if missed else ""):
            await self.store.occurrences.add_due(
                DueTimes(job, run, missed, upcoming),
                "the host was off or busy",
                partial(self.missed_notice, job),
            )

    def missed_notice(self, job: Job, missed: Sequence[int]) -> str | None:
        if job.spec.catch_up != "missed":
            return None
        last = datetime.fromtimestamp(missed[-1], ZoneInfo(job.spec.timezone))
        form = translated("⏰ Missed once while I was off: {task} (last due {last}).")
        if (count := len(missed)) > 1:
            form = plural(
                "⏰ Missed {count} time while I was off: {task} (last due {last}).",
                "⏰ Missed {count} times while I was off: {task} (last due {last}).",
                count,
            )
        return self.channels.payload(
            form.format(count=count, task=job.spec.task, last=date_words(last))
        )

    async def language(self, job: Job) -> str:
        """The language of the job's chat; "" where it is unknown."""
        known = await self.store.chats.get(job.spec.chat)
        return known.spoken if known else ""

    async def start(self, occurrence: Occurrence, tasks: asyncio.TaskGroup, now: datetime) -> None:
        """Start an occurrence, unless quiet hours hold it or another one of its job runs."""
        job = await self.store.jobs.get(occurrence.job)
        if job is None or job.spec.state == "deleted":
            await self.store.occurrences.end(occurrence.id, "missed", "the job was deleted")
            return
        held = self.quiet and self.quiet.hold(job, now)
        if held or job.id in self.running or not self._runs_here(job):
            return
        keep = CATCH_UP if job.spec.catch_up == "all" else 1
        await self.store.occurrences.drop_older(job.id, keep, "a later one was due, too")
        begun = await self.store.occurrences.begin(occurrence.id)
        if begun:
            self.running[job.id] = task = tasks.create_task(self.run(job, begun))
            task.add_done_callback(lambda _: self.running.pop(job.id, None))

    async def run(self, job: Job, occurrence: Occurrence) -> None:
        """Run an occurrence. A freeze cancels it, and it begins again after the thaw."""
        try:
            with speaking(await self.language(job)):
                await self.carry_out(job, occurrence)
        except StoreError as error:
            # Nothing is posted for it, so it begins again at the next pass.
            self.held_up[occurrence.id] += 1
            log.warning("job=%d waits: %s", job.id, error)
        except Exception:  # the others go on; begun again, it would fail again
            log.exception("job failed job=%d kind=%s", job.id, job.spec.kind)
            with suppress(Exception):
                await self.store.occurrences.end(occurrence.id, "failed", "see the log")
        else:
            log.info("job job=%d kind=%s due=%d", job.id, job.spec.kind, occurrence.due_at)

    def stop_all(self) -> int:
        """Cancel what runs, because everything is frozen; no turn is counted."""
        for task in self.running.values():
            task.cancel()
        return 0

    async def carry_out(self, job: Job, occurrence: Occurrence) -> None:
        """Run the job's action, and post its text, or why it failed."""
        kind, text = job.spec.kind, None
        try:
            if occurrence.attempts - self.held_up[occurrence.id] > ATTEMPTS:
                form = translated("It was started {count} times and never finished.")
                raise AgentError(form.format(count=ATTEMPTS))
            if kind not in self.actions:
                raise AgentError(
                    translated("There is no kind of job named {kind}.").format(kind=kind)
                )
            text = await self.actions[kind](job, occurrence)
        except NothingToDo as nothing:
            if job.spec.options.get("tell_nothing"):
                text = f"{job.spec.task}: {nothing}"
            else:
                await self.store.occurrences.end(occurrence.id, "done", str(nothing))
        except StoreError:
            raise
        except AgentError as error:
            await self.fail(job, occurrence, str(error))
        except Exception:
            log.exception("job failed job=%d kind=%s", job.id, kind)
            await self.fail(
                job, occurrence, translated("It failed for a reason that is in the log.")
            )
        if text is not None:
            await self.store.occurrences.post(
                occurrence.id, job.spec.chat, [self.channels.payload(text)]
            )
            self.store.outbox.wake()

    async def fail(self, job: Job, occurrence: Occurrence, why: str) -> None:
        form = translated("⚠️ The job “{task}” failed. {why}")
        payload = self.channels.payload(form.format(task=job.spec.task, why=why))
        await self.store.occurrences.fail(occurrence.id, job.spec.chat, payload, why)
        self.store.outbox.wake()


async def guarded(job: int, work: Coroutine[Any, Any, None]) -> None:
    """Await the work of a job. If it crashes, the others go on."""
    try:
        await work
    except StoreError:
        raise
    except Exception:
        log.exception("job=%d cannot be scheduled", job)


def past_due_times(job: Job, first: int, now: datetime) -> list[int]:
    """The due times from `first` up to now, 100,000 at most."""
    later = map(due_second, due_times(load(job.spec.timing), datetime.fromtimestamp(first, UTC)))
    past = takewhile(lambda at: at <= now.timestamp(), later)
    return [first, *islice(past, 100 * MISSED_ROWS)]


class Scheduler:
    """An async context manager around the runner; a change of a job wakes it."""

    def __init__(self, runner: JobRunner, pass_seconds: float = PASS_SECONDS) -> None:
        self.runner = runner
        self._pass_seconds = pass_seconds
        self._wanted = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.runner.store.outbox.on_end.append(self._delivered)
        self.runner.store.jobs.on_wake.append(self.wake)
        self._loop = asyncio.create_task(self._run(), name="scheduler")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._loop
        self.runner.store.outbox.on_end.remove(self._delivered)
        self.runner.store.jobs.on_wake.remove(self.wake)
        self._loop.cancel()
        await asyncio.wait([self._loop])

    def wake(self) -> None:
        """Read the jobs' rows now instead of at the next pass."""
        self._wanted.set()

    async def _ring(self) -> None:
        self._wanted.set()

    def _delivered(self) -> None:
        """Another occurrence may have waited for the end of the one that was delivered."""
        if self.runner.open:
            self._wanted.set()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks, Timer(self._ring) as timer:
            while True:
                self._wanted.clear()
                try:
                    next_at = await self.runner.run_pass(tasks)
                except StoreError as error:
                    log.warning("the schedule could not be read, trying again: %s", error)
                else:
                    if next_at is not None:
                        wait = timedelta(seconds=next_at - self.runner.store.clock())
                        timer.set(datetime.now(UTC) + wait)
                await set_within(self._wanted, self._pass_seconds)
