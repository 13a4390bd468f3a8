"""Jobs made from words: understood or asked back, bounded, shown before they are made."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Literal
from zoneinfo import ZoneInfo

from agent.errors import ToolError
from agent.language import ENGLISH, plural, speaking, translated
from agent.schedule.due_times import next_due, next_times
from agent.schedule.night import Night
from agent.schedule.scheduler import NIGHT
from agent.schedule.times.draft import NotUnderstood
from agent.schedule.times.parser import ASK, parse
from agent.schedule.times.rule import (
    Calendar,
    Cron,
    Once,
    Rule,
    date_words,
    describe,
    dump,
    load,
)
from agent.schedule.times.task_text import parse_with_task, reminder_at_beginning
from agent.schedule.watches import USUAL, WATCH, parse_watch, watched
from agent.store import Store
from agent.store.jobs import OVERDUE_SECONDS, CatchUp, Job, JobSpec
from agent.store.turns import OpenTurn
from agent.timezones import local_time
from agent.tools.context import Approver

NOTHING_RUNS = "Nothing runs jobs now: it comes once the bot or voltaire chat runs."
ALIKE_SECONDS = 120  # between single times that are meant to be the same
Maker = Literal["person", "model"]
CATCH_UP_POLICY = {
    "once": "When times were missed, it runs once.",
    "all": "When times were missed, it runs for each of them, ten at most.",
    "missed": "When times were missed, it says so and does not run.",
}


KINDS = ("remind", "task", "summary")  # those that may be named; the others are read from the words
TAKES_DATA = ("remind", "task")
OWNERS_ONLY = ("profile",)  # kinds that touch more than their chat
_DIGEST = re.compile(r"(?:send me |give me )?(?:the |a )?(?:daily |health |gpu )*digest")
_SWITCH = re.compile(
    r"(?:please )?(?:(?:switch|change|go)(?: back)?(?: the (?:model|profile|backend))? to|use|load)"
    r"(?P<before>(?: the)?(?: model| profile)*) (?P<name>\S+?)(?P<after> (?:model|profile))?[.!]?"
)
_REMIND = re.compile(r"^remind me (?:(?:to|of|about|that) )?", re.IGNORECASE)


async def no_profiles() -> Collection[str]:
    return ()


@dataclass(frozen=True)
class JobClassifier:
    """Finds the kind of a job by the words of its task, which may name one of the `repos` or of the `profiles`."""

    repos: Collection[str] = ()
    profiles: Callable[[], Awaitable[Collection[str]]] = no_profiles

    async def classify(self, task: str, kind: str = "") -> tuple[str, str]:
        """The kind (as given, if it is one of KINDS), and the task as that kind stores it.

        Raises ToolError with the question to ask back.
        """
        words = task.lower()
        if not kind and _DIGEST.fullmatch(words):
            return "digest", "health digest"
        if kind in ("", "task") and (profile := await self.profile(words)):
            return "profile", profile
        named = [repo for repo in self.repos if repo.lower() in words.split()]
        if kind == "summary" or (not kind and named and "summar" in words):
            return "summary", self.repo(task, named)
        if kind not in KINDS:
            kind = "remind" if words.startswith("remind") else "task"
        return kind, _REMIND.sub("", task, count=1) if kind == "remind" else task

    async def profile(self, words: str) -> str:
        """The profile to switch to; empty where the words mean something else."""
        match = _SWITCH.fullmatch(words)
        if match is None:
            return ""
        known = await self.profiles()
        if match["name"] in known:
            return match["name"]
        if not (match["before"].strip(" the") or match["after"]):
            return ""
        form = translated("There is no model {name}.")
        if known:
            form = translated("There is no model {name}. There are: {known}.")
        raise ToolError(form.format(name=match["name"], known=", ".join(sorted(known))))

    def repo(self, task: str, named: list[str]) -> str:
        if named:
            return named[0]
        if task == "." or not self.repos:
            return task
        form = translated("Which repository? There are: {known}.")
        raise ToolError(form.format(known=", ".join(sorted(self.repos))))


def describe_task(kind: str, task: str) -> str:
    form = {
        "remind": translated("Reminder “{task}”"),
        "summary": translated("Summary of {task}"),
        WATCH: translated("Watch “{task}”"),
        NIGHT: translated("Night shift “{task}”"),
        "digest": translated("Health digest"),
        "profile": translated("Switch to the model {task}"),
    }.get(kind, translated("Task “{task}”"))
    return form.format(task=task)


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What a chat may hold, and how often a job that the model proposed may run."""

    jobs: int = 100
    by_model: int = 20
    model_interval: timedelta = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A job that could be made: `description` says what and when, with its next three times."""

    spec: JobSpec
    description: str

    @property
    def needs_approval(self) -> bool:
        return self.spec.timing["kind"] != "once" or self.spec.kind in OWNERS_ONLY


async def no_callback() -> None:
    """The `on_change` of a planner that tells nobody."""


@dataclass(frozen=True)
class Planner:
    """Plans and changes the jobs of one chat, whose time zone is `zone`. ToolError asks or says why not.

    `on_change` is called after each change; `night` is when the night shift runs; `note` is added to what was
    planned where no program runs jobs.
    """

    store: Store
    chat: str
    zone: str
    classifier: JobClassifier = field(default_factory=JobClassifier)
    limits: JobLimits = field(default_factory=JobLimits)
    on_change: Callable[[], Awaitable[None]] = no_callback
    night: Cron = Night().rule
    note: str = ""

    async def propose(
        self, when: str, task: str, kind: str = "", made_by: Maker = "model", asked: str = ""
    ) -> Proposal:
        with suppress(ToolError):  # a message for a watch alone says it better than a model
            if (meant := await self.propose_text(asked, made_by)).spec.kind == WATCH:
                return meant
        with asked_back():
            rule = parse_meant(when, asked, self.now())
        return await self.proposal(rule, when, task.strip(), kind, made_by)

    async def propose_text(self, text: str, made_by: Maker = "person") -> Proposal:
        """A proposal from one text that holds both the time and the task."""
        with asked_back():
            try:
                rule, task = parse_with_task(text, self.now())
            except NotUnderstood as question:
                if str(question) != translated(ASK) or not watched(text):
                    raise
                rule, task = parse(USUAL, self.now()), text
        return await self.proposal(rule, text, task, "", made_by)

    async def proposal(self, rule: Rule, when: str, task: str, kind: str, by: Maker) -> Proposal:
        if not task:
            raise ToolError(translated("What should be done then?"))
        options: Mapping[str, Any] = {}
        if kind != "remind" and watched(task) and not isinstance(rule, Once):
            with suppress(NotUnderstood):  # a small model repeats the time
                said, rest = parse_with_task(task, self.now())
                task = rest if by == "model" and said == rule and "at most" not in task else task
            kind, task = WATCH, watched(task)
            options = {WATCH: asdict(parse_watch(task))}
        else:
            kind, task = await self.classifier.classify(task, kind)
        self.check_room(await self.jobs(), by)
        self.check_interval(rule, by)
        timing, first = dump(rule), next_due(rule, self.now())
        spec = JobSpec(
            self.chat, kind, when, timing, self.zone, task, options, made_by=by, next_at=first
        )
        return Proposal(spec, self.describe_spec(spec, 3))

    async def work_tonight(self, words: str, turn: OpenTurn | None, stranger: str) -> Job:
        """Plan the words of a message, or of the message that a turn answered, for the night; return the job.

        Words that are planned already get no second job.
        """
        jobs, rule = await self.jobs(), self.night
        told = {"turn": turn.id, "conversation": turn.conversation} if turn else {}
        for job in jobs:
            if (job.spec.kind, job.spec.task, job.spec.options) == (NIGHT, words, told):
                return job
        self.check_room(jobs, "person")
        first, timing = next_due(rule, self.now()), dump(rule)
        spec = JobSpec(self.chat, NIGHT, "tonight", timing, rule.zone, words, told, next_at=first)
        return await self.add(replace(spec, stranger=stranger))

    def check_room(self, jobs: Sequence[Job], by: Maker) -> None:
        """Raise ToolError if the chat holds as many jobs as it may."""
        own = sum(job.spec.made_by == "model" for job in jobs)
        if len(jobs) >= self.limits.jobs or (by == "model" and own >= self.limits.by_model):
            form = plural(
                "This chat has {count} job already. Delete some with /jobs first.",
                "This chat has {count} jobs already. Delete some with /jobs first.",
                len(jobs),
            )
            raise ToolError(form.format(count=len(jobs)))

    def check_interval(self, rule: Rule, by: Maker) -> None:
        if by == "person" or isinstance(rule, Once):
            return
        times = pairwise(next_times(rule, self.now(), 8))
        if min((b - a for a, b in times), default=timedelta.max) < self.limits.model_interval:
            minutes = int(self.limits.model_interval.total_seconds() // 60)
            raise ToolError(f"The agent may plan nothing more often than every {minutes} minutes.")

    async def schedule(
        self,
        when: str,
        task: str,
        kind: str,
        approve: Approver,
        stranger: str = "",
        asked: str = "",
    ) -> tuple[str, str]:
        """Plan a job for the model (agent.tools.context.Jobs); `stranger` is whose text touches the chat. The model
        reads English, whoever approves it their own language."""
        try:
            with speaking(ENGLISH):
                proposal = await self.propose(when, task, kind, asked=asked)
        except ToolError as error:
            raise ToolError(f"Error: nothing is planned. {error}") from None
        if job := await self.planned_already(proposal.spec):
            known = self.describe_spec(job.spec, 3)
            return f"Planned already, as job {job.id}: {known}.", known
        shown = self.describe_spec(proposal.spec, 3)
        await approve(shown, scope="schedule" if proposal.needs_approval else "plan")
        job = await self.add(replace(proposal.spec, stranger=stranger))
        told = f"Planned as job {job.id}: {proposal.description}.\n{self.note}"
        return told.strip(), f"{shown}.\n{self.note}" if self.note else shown

    async def planned_already(self, spec: JobSpec) -> Job | None:
        """The job of this chat that does the same at the same time; of single times, within ALIKE_SECONDS."""
        for job in await self.jobs():
            same = (job.spec.kind, job.spec.timezone) == (spec.kind, spec.timezone)
            words = {each.task.casefold().strip(" .") for each in (job.spec, spec)}
            if same and len(words) == 1 and job.spec.state == "active":
                near = abs((job.spec.next_at or 0) - (spec.next_at or 0)) <= ALIKE_SECONDS
                once = (job.spec.timing["kind"], spec.timing["kind"]) == ("once", "once")
                if job.spec.timing == spec.timing or (once and near):
                    return job
        return None

    async def add(self, spec: JobSpec) -> Job:
        job = await self.store.jobs.add(spec)
        await self.look_first(job)
        await self.on_change()
        return job

    async def look_first(self, job: Job) -> None:
        """Let a new watch look at once: what it finds then is what changes are told of."""
        if job.spec.kind == WATCH:
            await self.store.occurrences.trigger(job.id, "")

    async def summarize_now(self, repo: str) -> Job:
        """Plan a summary for now, as a job: it survives a restart, and says so when there is nothing to summarize."""
        now = self.now()
        timing, due, options = dump(Once(now)), int(now.timestamp()), {"tell_nothing": True}
        return await self.add(
            JobSpec(self.chat, "summary", "now", timing, self.zone, repo, options, next_at=due)
        )

    async def offer(self, proposal: Proposal) -> Job:
        """Store a proposal, which does not run until it is confirmed."""
        return await self.store.jobs.add(replace(proposal.spec, state="proposed", next_at=None))

    async def confirm(self, number: int) -> Job:
        """Activate an offered job; its first time is counted from now."""
        job = await self.offered(number)
        first = next_due(load(job.spec.timing), self.now())
        if first is None:
            raise ToolError(translated("That time has passed; nothing was planned."))
        await self.look_first(job)
        return await self.change(job, replace(job.spec, state="active", next_at=first))

    async def withdraw(self, number: int) -> None:
        await self.store.jobs.set_state((await self.offered(number)).id, "deleted")

    async def offered(self, number: int) -> Job:
        job = await self.store.jobs.get(number)
        if job is None or job.spec.chat != self.chat or job.spec.state != "proposed":
            raise ToolError(translated("That was decided already."))
        return job

    async def jobs(self) -> list[Job]:
        found = await self.store.jobs.of_chat(self.chat)
        return [job for job in found if job.spec.state in ("active", "paused")]

    async def find(self, number: int) -> Job:
        """A job of this chat, or of one linked with it."""
        job = await self.store.jobs.get_of(self.chat, number)
        if job is None or job.spec.state in ("deleted", "proposed"):
            form = translated("There is no job {number} in this chat.")
            raise ToolError(form.format(number=number))
        return job

    async def pause(self, number: int, *, paused: bool) -> Job:
        """Pause or resume a job. What falls due while it is paused does not count as missed."""
        job = await self.find(number)
        upcoming = None if paused else next_due(load(job.spec.timing), self.now())
        state: Literal["paused", "active"] = "paused" if paused else "active"
        return await self.change(job, replace(job.spec, state=state, next_at=upcoming))

    async def edit(self, number: int, text: str) -> Job:
        """Give a job another time, or time and task, in words. A paused job stays paused."""
        job = await self.find(number)
        old, task = job.spec, ""
        with asked_back():
            try:
                rule = parse(text, self.now())
            except NotUnderstood:
                rule, task = parse_with_task(text, self.now())
        kind = old.kind if old.kind in KINDS else ""
        if task and old.kind == WATCH and not watched(task):
            task = f"{WATCH} {task}"
        spec = (await self.proposal(rule, text, task or old.task, kind, old.made_by)).spec
        if task:
            spec = replace(spec, options={**old.options, **spec.options})
        else:
            spec = replace(spec, kind=old.kind, task=old.task, options=old.options)
        if old.state == "paused":
            spec = replace(spec, state="paused", next_at=None)
        kept = replace(spec, chat=old.chat, catch_up=old.catch_up)
        return await self.change(job, replace(kept, stranger="" if task else old.stranger))

    async def adjust(self, number: int, catch_up: CatchUp | None, tell: bool | None) -> Job:
        """Change what happens to missed times, and whether the job says so when there is nothing to do; None keeps."""
        job = await self.find(number)
        options = job.spec.options if tell is None else {**job.spec.options, "tell_nothing": tell}
        spec = replace(job.spec, catch_up=catch_up or job.spec.catch_up, options=options)
        return await self.change(job, spec)

    async def change(self, job: Job, spec: JobSpec) -> Job:
        await self.store.jobs.change(job.id, spec)
        await self.on_change()
        return replace(job, spec=spec)

    async def move_to_zone(self) -> list[Job]:
        """Move the jobs to the chat's new time zone, where they keep their times of day; returns those that moved.

        Times that were given with a zone of their own ("at 9 Tokyo time") stay.
        """
        moved = []
        for job in await self.store.jobs.of_chat(self.chat):
            rule, spec = load(job.spec.timing), job.spec
            here = spec.chat == self.chat and spec.timezone != self.zone
            if spec.state not in ("active", "paused", "proposed") or not here:
                continue
            follows = isinstance(rule, Calendar | Cron) and rule.zone == spec.timezone
            spec = replace(spec, timezone=self.zone)
            if isinstance(rule, Calendar | Cron) and follows:
                rule = replace(rule, zone=self.zone)
                upcoming = next_due(rule, self.now()) if spec.state == "active" else None
                spec = replace(spec, timing=dump(rule), next_at=upcoming)
            await self.store.jobs.change(job.id, spec)
            if follows and spec.state != "proposed":
                moved.append(replace(job, spec=spec))
        await self.on_change()
        return moved

    async def remove(self, number: int) -> Job:
        job = await self.find(number)
        await self.store.jobs.set_state(number, "deleted")
        await self.on_change()
        return job

    async def run_now(self, number: int, data: str = "", by: str = "") -> Job:
        """Add an occurrence that is due this second; `data` is strangers' text for it, `by` who asked, for the ledger."""
        job = await self.find(number)
        if data and job.spec.kind not in TAKES_DATA:
            raise ToolError(translated("That job takes no data."))
        if not await self.store.occurrences.trigger(number, data, by) and data:
            raise ToolError(translated("Too many runs of that job wait already."))
        await self.on_change()
        return job

    def describe(self, job: Job, times: int = 3) -> str:
        """What the job does and when, with its next times, or that it is paused or overdue."""
        if job.spec.state == "paused":
            return translated("{what} (paused)").format(what=self.describe_spec(job.spec, 0))
        if self.overdue(job):
            what = self.describe_spec(job.spec, 0)
            return translated("{what} (overdue: nothing has run it yet)").format(what=what)
        return self.describe_spec(job.spec, times)

    def overdue(self, job: Job) -> bool:
        """Whether its time has passed and nothing has run it."""
        due, now = job.spec.next_at, self.store.clock()
        return job.spec.state == "active" and due is not None and due < now - OVERDUE_SECONDS

    def describe_spec(self, spec: JobSpec, times: int) -> str:
        rule, zone = load(spec.timing), ZoneInfo(self.zone)
        form, task = translated("{task}, {when}"), describe_task(spec.kind, spec.task)
        when = translated("at night") if spec.kind == NIGHT else describe(rule, self.zone)
        what = form.format(task=task, when=when)
        if isinstance(rule, Once) or not times:
            return what
        due = next_times(rule, self.now(), times)
        dates = translated(", ").join(date_words(at.astimezone(zone)) for at in due)
        return translated("{what}; next: {times}").format(what=what, times=dates)

    async def history(self, job: Job, most: int = 5) -> list[str]:
        """How its last occurrences ended, newest first, and what happens to missed ones."""
        runs = await self.store.occurrences.of_job(job.id, most)
        told = translated("told") if job.spec.kind == WATCH else ""
        lines = []
        for run in runs:
            how = ", ".join(filter(None, (run.state, run.data and told, run.detail)))
            lines.append(f"- {date_words(local_time(run.due_at, self.zone))}: {how}")
        return [*lines, translated(CATCH_UP_POLICY[job.spec.catch_up])]

    def now(self) -> datetime:
        return local_time(self.store.clock(), self.zone)


def parse_meant(when: str, asked: str, now: datetime) -> Rule:
    """The rule that a model's `when` means, or that of `asked`, the person's message, if that holds the time itself.

    Small models compute a date of their own: a wrong one for "in 20 minutes", one that is past, or a single one where
    the person said every week. Raises NotUnderstood with the question about `when`.
    """
    said = None
    if when.lower() not in asked.lower():
        if first := reminder_at_beginning(asked, now):
            return first
        with suppress(NotUnderstood):
            said, _ = parse_with_task(asked, now)
    try:
        rule = parse(when, now)
    except NotUnderstood:
        if said is None:
            raise
        return said
    return said if isinstance(rule, Once) and said and not isinstance(said, Once) else rule


@contextmanager
def asked_back() -> Iterator[None]:
    """Turn NotUnderstood into a ToolError with the question to ask back."""
    try:
        yield
    except NotUnderstood as question:
        raise ToolError(str(question)) from None
