"""Rows of the state that tests write or read by themselves."""

from types import SimpleNamespace

from agent.store import Store, approvals, chats
from agent.store.jobs import Occurrence


async def grant(store: Store, chat: str, scope: str, by: str) -> None:
    """Give a standing permission, as an owner's answer does."""
    async with store.database.write() as tx:
        await chats.ensure(tx, chat)
        await approvals.add_grant(tx, chat, scope, by)


async def fall_due(store: Store, job: int, at: int, next_at: int | None = None) -> Occurrence:
    """Enter a due time of a job, and its next one."""
    async with store.database.write() as tx:
        await tx.run("INSERT INTO occurrences (job, due_at) VALUES (?, ?)", job, at)
        await tx.run("UPDATE jobs SET next_at = ? WHERE id = ?", next_at, job)
    [run] = [each for each in await store.occurrences.of_job(job, 100) if each.due_at == at]
    return run


async def set_aside(store: Store) -> list[SimpleNamespace]:
    """What was set aside, oldest first, by its columns."""
    sql = "SELECT * FROM set_aside WHERE at IS NOT NULL ORDER BY at, id"
    return [SimpleNamespace(**row) for row in await store.database.dicts(sql)]
