"""What each kind of job does, cheap checks first: nothing new costs no GPU time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agent.schedule.occurrences import Nothing
from agent.schedule.times import load, tell
from agent.store import Incoming
from agent.store.jobs import Job
from agent.store.occurrences import Occurrence
from agent.summary.report import Summaries

Submit = Callable[[Incoming], Awaitable[bool]]


async def remind(job: Job, _occurrence: Occurrence) -> str:
    """A message; no model."""
    return f"⏰ {job.spec.task}"


@dataclass(frozen=True)
class Task:
    """A turn in the chat's conversation, behind people in the GPU queue; its reply is the message."""

    submit: Submit

    async def __call__(self, job: Job, occurrence: Occurrence) -> None:
        due = datetime.fromtimestamp(occurrence.due_at, UTC)
        told = tell(load(dict(job.spec.timing)), job.spec.timezone)
        await self.submit(
            Incoming(
                chat=job.spec.chat,
                source="job",
                update=f"{job.id}:{occurrence.due_at}",
                text=job.spec.task,
                kind="job",
                context_lines=(f"scheduled job {job.id}: {told}",),
                at=due.timestamp(),
            )
        )


@dataclass(frozen=True)
class Summary:
    """A repository's summary since the last one that was delivered.

    It posts by itself, because the next one of that repository must begin where
    this one ends: only once it is in the outbox is it sure to be told.
    """

    summaries: Summaries
    letter: Callable[[str], str]
    _turns: dict[tuple[str, str], asyncio.Lock] = field(default_factory=dict)

    async def __call__(self, job: Job, occurrence: Occurrence) -> None:
        chat, repo = job.spec.chat, job.spec.task
        async with self._turns.setdefault((chat, repo), asyncio.Lock()):
            report = await self.summaries.make(chat, repo, occurrence.id)
            if report.nothing:
                raise Nothing(report.nothing, tell=bool(job.spec.options.get("tell_nothing")))
            store = self.summaries.store
            await store.occurrences.post(occurrence.id, chat, [self.letter(report.text)])
        store.outbox.added.set()
