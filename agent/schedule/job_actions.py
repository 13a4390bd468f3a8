"""What a job does when it is due: a reminder, a task, a repository's summary.

Cheap checks come first, so that a job with nothing to do costs no GPU time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agent.schedule.times.rule import describe, load
from agent.store import Incoming
from agent.store.jobs import Job, Occurrence
from agent.summary.repo_summaries import RepoSummaries

JobAction = Callable[[Job, Occurrence], Awaitable[str | None]]
"""Carries out an occurrence; gives the text to send (Markdown), or None when it has sent or will
send that itself. Raises agent.errors.NothingToDo, or an AgentError whose sentence goes to the person."""


async def remind(job: Job, _occurrence: Occurrence) -> str:
    """A message, without a model."""
    return f"⏰ {job.spec.task}"


@dataclass(frozen=True)
class SubmitTask:
    """Submits a turn in the chat's conversation, behind people in the GPU queue; its reply is the message."""

    submit: Callable[[Incoming], Awaitable[bool]]

    async def __call__(self, job: Job, occurrence: Occurrence) -> None:
        when = describe(load(job.spec.timing), job.spec.timezone)
        await self.submit(
            Incoming(
                chat=job.spec.chat,
                source="job",
                update=f"{job.id}:{occurrence.due_at}",
                text=job.spec.task,
                kind="job",
                context_lines=(f"scheduled job {job.id}: {when}",),
                at=float(occurrence.due_at),
                stranger=job.spec.stranger and f"job {job.id}, planned after {job.spec.stranger}",
            )
        )


@dataclass(frozen=True)
class SummarizeRepo:
    """Summarizes a repository from where the last delivered summary ends.

    It posts the text itself, under the lock, because the next summary begins where this one ends, and
    delivery is certain only once the text is in the outbox.
    """

    summaries: RepoSummaries
    payload: Callable[[str], str]
    locks: dict[tuple[str, str], asyncio.Lock] = field(default_factory=dict)

    async def __call__(self, job: Job, occurrence: Occurrence) -> None:
        chat, repo = job.spec.chat, job.spec.task
        async with self.locks.setdefault((chat, repo), asyncio.Lock()):
            text = await self.summaries.make(chat, repo, occurrence.id)
            store = self.summaries.store
            await store.occurrences.post(occurrence.id, chat, [self.payload(text)])
        store.outbox.wake()
