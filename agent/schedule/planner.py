"""A job made from words: understood or asked back, bounded, shown before it is made."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal
from zoneinfo import ZoneInfo

from agent.errors import ToolError
from agent.schedule import job_kind
from agent.schedule.job_kind import Wishes
from agent.schedule.times import (
    Calendar,
    NotUnderstood,
    Once,
    Rule,
    due_second,
    dump,
    load,
    next_times,
    read,
    split,
    tell,
)
from agent.store import Store
from agent.store.jobs import CatchUp, Job, JobSpec
from agent.tools.context import Approver

Maker = Literal["person", "model"]
CAUGHT_UP = {
    "once": "When times were missed, it runs once.",
    "all": "When times were missed, it runs for each of them, ten at most.",
    "missed": "When times were missed, it says so and does not run.",
}
OWNERS_ONLY = ("profile",)  # kinds that touch more than their chat
Changed = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """What a chat may hold, and how often a job that the model proposed may run."""

    jobs: int = 100
    by_model: int = 20
    model_interval: timedelta = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A job that could be made: `told` says in words what and when, with its next three times."""

    spec: JobSpec
    told: str

    @property
    def repeats(self) -> bool:
        return bool(self.spec.timing["kind"] != "once")

    @property
    def owners_only(self) -> bool:
        return self.spec.kind in OWNERS_ONLY


async def _nobody() -> None:
    """A change that nobody needs to hear of."""


@dataclass(frozen=True)
class Planner:
    """The jobs of one chat. `zone` is the chat's; `changed` is called after each change."""

    store: Store
    chat: str
    zone: str
    wishes: Wishes = field(default_factory=Wishes)
    limits: PlanLimits = field(default_factory=PlanLimits)
    changed: Changed = _nobody

    async def propose(
        self, when: str, task: str, kind: str = "", made_by: Maker = "model"
    ) -> Proposal:
        """Understand it, or raise ToolError with the question to ask back."""
        try:
            rule = read(when, self._now())
        except NotUnderstood as question:
            raise ToolError(str(question)) from None
        return await self._proposal(rule, when, task.strip(), kind, made_by)

    async def schedule(self, when: str, task: str, kind: str, approve: Approver) -> str:
        """agent.tools.context.Jobs: what the model plans; an owner is asked about what repeats."""
        proposal = await self.propose(when, task, kind)
        if proposal.repeats or proposal.owners_only:
            await approve(proposal.told, scope="schedule")
        job = await self.add(proposal)
        return f"Planned as job {job.id}: {proposal.told}."

    async def propose_text(self, text: str, made_by: Maker = "person") -> Proposal:
        """The same of one text that holds both time and task."""
        try:
            rule, task = split(text, self._now())
        except NotUnderstood as question:
            raise ToolError(str(question)) from None
        return await self._proposal(rule, text, task, "", made_by)

    async def add(self, proposal: Proposal) -> Job:
        """Make the job; its first time is counted from now."""
        job = await self.store.jobs.add(proposal.spec)
        await self.changed()
        return job

    async def summarise(self, repo: str) -> Job:
        """A summary now, as a job of its own: it survives a restart, and says so when there is nothing."""
        now = self._now()
        once, due = dump(Once(now)), int(now.timestamp())
        plan = JobSpec(self.chat, "summary", "now", once, self.zone, repo, {"tell_nothing": True}, next_at=due)  # fmt: skip
        return await self.add(Proposal(plan, ""))

    async def offer(self, proposal: Proposal) -> Job:
        """Keep it without running it, until it is confirmed or withdrawn."""
        return await self.store.jobs.add(replace(proposal.spec, state="proposed", next_at=None))

    async def confirm(self, number: int) -> Job:
        """Make the job that was offered; its first time is counted from now."""
        job = await self._offered(number)
        first = self._first(load(dict(job.spec.timing)))
        if first is None:
            raise ToolError("That time is over; nothing was planned.")
        return await self._changed(job, replace(job.spec, state="active", next_at=first))

    async def withdraw(self, number: int) -> None:
        await self.store.jobs.set_state((await self._offered(number)).id, "deleted")

    async def jobs(self) -> list[Job]:
        found = await self.store.jobs.of_chat(self.chat)
        return [job for job in found if job.spec.state in ("active", "paused")]

    async def find(self, number: int) -> Job:
        """A job of this chat, or ToolError."""
        job = await self.store.jobs.get(number)
        gone = ("deleted", "proposed")
        if job is None or job.spec.chat != self.chat or job.spec.state in gone:
            raise ToolError(f"There is no job {number} in this chat.")
        return job

    async def pause(self, number: int, *, paused: bool) -> Job:
        """Paused jobs miss nothing: their next time counts from when they go on."""
        job = await self.find(number)
        upcoming = None if paused else self._first(load(dict(job.spec.timing)))
        plan = replace(job.spec, state="paused" if paused else "active", next_at=upcoming)
        return await self._changed(job, plan)

    async def edit(self, number: int, text: str) -> Job:
        """Another time, or time and task, in words; a paused job stays so."""
        job = await self.find(number)
        rule, task = self._edited(text)
        kind = job.spec.kind if job.spec.kind in job_kind.KINDS else ""
        checked = (
            await self._proposal(rule, text, task or job.spec.task, kind, job.spec.made_by)
        ).spec
        if not task:
            checked = replace(checked, kind=job.spec.kind, task=job.spec.task)
        if job.spec.state == "paused":
            checked = replace(checked, state="paused", next_at=None)
        plan = replace(checked, catch_up=job.spec.catch_up, options=job.spec.options)
        return await self._changed(job, plan)

    async def adjust(self, number: int, catch_up: CatchUp | None, tell: bool | None) -> Job:
        """What happens to times that were missed, and whether it says so when there is nothing to say."""
        job = await self.find(number)
        options = job.spec.options if tell is None else {**job.spec.options, "tell_nothing": tell}
        plan = replace(job.spec, catch_up=catch_up or job.spec.catch_up, options=options)
        return await self._changed(job, plan)

    async def move_to_zone(self) -> list[Job]:
        """The chat has another time zone: its jobs keep their times of day there; those that moved.

        Times that were given with a zone of their own ("at 9 Tokyo time") stay.
        """
        moved = []
        for job in await self.store.jobs.of_chat(self.chat):
            rule, spec = load(dict(job.spec.timing)), job.spec
            if spec.state not in ("active", "paused", "proposed") or spec.timezone == self.zone:
                continue
            follows = isinstance(rule, Calendar) and rule.zone == spec.timezone
            spec = replace(spec, timezone=self.zone)
            if isinstance(rule, Calendar) and follows:
                rule = replace(rule, zone=self.zone)
                upcoming = self._first(rule) if spec.state == "active" else None
                spec = replace(spec, timing=dump(rule), next_at=upcoming)
            await self.store.jobs.change(job.id, spec)
            if follows and spec.state != "proposed":
                moved.append(replace(job, spec=spec))
        await self.changed()
        return moved

    async def remove(self, number: int) -> Job:
        job = await self.find(number)
        await self.store.jobs.set_state(number, "deleted")
        await self.changed()
        return job

    async def run_now(self, number: int) -> Job:
        """An occurrence of its own, due this second."""
        job = await self.find(number)
        await self.store.occurrences.add(number, int(self.store.clock()), job.spec.next_at)
        await self.changed()
        return job

    def told(self, job: Job, times: int = 3) -> str:
        """One job in words."""
        rule = load(dict(job.spec.timing))
        if job.spec.state == "paused":
            return f"{_what(job.spec)}, {tell(rule, self.zone)} (paused)"
        return f"{_what(job.spec)}, {tell(rule, self.zone)}{self._next(rule, times)}"

    async def history(self, job: Job, most: int = 5) -> list[str]:
        """How its last times ended, newest first, and what becomes of those that are missed."""
        zone = ZoneInfo(self.zone)
        runs = await self.store.occurrences.of_job(job.id, most)
        lines = [
            f"- {datetime.fromtimestamp(run.due_at, zone):%a %d %b %H:%M}: {run.state}"
            + (f", {run.detail}" if run.detail else "")
            for run in runs
        ]
        return [*lines, CAUGHT_UP[job.spec.catch_up]]

    # -- ------------------------------------------------------------------------

    async def _offered(self, number: int) -> Job:
        job = await self.store.jobs.get(number)
        if job is None or job.spec.chat != self.chat or job.spec.state != "proposed":
            raise ToolError("That was decided already.")
        return job

    async def _changed(self, job: Job, plan: JobSpec) -> Job:
        await self.store.jobs.change(job.id, plan)
        await self.changed()
        return replace(job, spec=plan)

    def _edited(self, text: str) -> tuple[Rule, str]:
        """The rule, and the task where the words name one."""
        with suppress(NotUnderstood):
            return read(text, self._now()), ""
        try:
            return split(text, self._now())
        except NotUnderstood as question:
            raise ToolError(str(question)) from None

    async def _proposal(self, rule: Rule, words: str, task: str, kind: str, by: Maker) -> Proposal:
        if not task:
            raise ToolError("What shall be done then?")
        kind, task = await self.wishes.read(task, kind)
        await self._check(rule, by)
        first = self._first(rule)
        plan = JobSpec(
            self.chat, kind, words, dump(rule), self.zone, task, {}, made_by=by, next_at=first
        )
        return Proposal(plan, f"{_what(plan)}, {tell(rule, self.zone)}{self._next(rule, 3)}")

    async def _check(self, rule: Rule, by: Maker) -> None:
        jobs = await self.jobs()
        own = [job for job in jobs if job.spec.made_by == "model"]
        if len(jobs) >= self.limits.jobs or (by == "model" and len(own) >= self.limits.by_model):
            raise ToolError(
                f"This chat has {len(jobs)} jobs already. Delete some with /jobs first."
            )
        if (
            by == "model"
            and not isinstance(rule, Once)
            and self._gap(rule) < self.limits.model_interval
        ):
            minutes = int(self.limits.model_interval.total_seconds() // 60)
            raise ToolError(f"The agent may plan nothing more often than every {minutes} minutes.")

    def _gap(self, rule: Rule) -> timedelta:
        due = next_times(rule, self._now(), 8)
        gaps = [later - earlier for earlier, later in pairwise(due)]
        return min(gaps, default=timedelta.max)

    def _first(self, rule: Rule) -> int | None:
        found = next_times(rule, self._now())
        return due_second(found[0]) if found else None

    def _next(self, rule: Rule, count: int) -> str:
        if isinstance(rule, Once) or not count:
            return ""
        zone = ZoneInfo(self.zone)
        due = [f"{t.astimezone(zone):%a %d %b %H:%M}" for t in next_times(rule, self._now(), count)]
        return f"; next: {', '.join(due)}"

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.store.clock(), UTC).astimezone(ZoneInfo(self.zone))


def _what(plan: JobSpec) -> str:
    return job_kind.told(plan.kind, plan.task)
