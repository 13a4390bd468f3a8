"""Deletion by age; VACUUM."""

from dataclasses import dataclass
from typing import Any

from agent.store import Store

DAY = 86_400.0
REACHED = "pruned_until"  # the key of the time by which rows were deleted last
BATCH = 500  # rows per transaction, so that other writers do not wait for long


@dataclass(frozen=True, slots=True)
class Retention:
    """Days that rows are kept, 0: for ever.

    `records` are answered messages, sent replies, decided approvals and deleted notes. They need two days
    at least: Telegram repeats updates for one.
    """

    transcript: int = 0
    records: int = 30
    usage: int = 365
    ledger: int = 365


def _deletion(table: str, condition: str) -> str:
    return f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE {condition} LIMIT ?) RETURNING 1"


_PAST = (
    "(SELECT conversation FROM chats WHERE key = c.chat) IS NOT c.id"
    " AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.conversation = c.id AND t.state = 'open')"
)
# Messages of a prompt stay until their conversation is a past one, unused for as long.
_TRANSCRIPT = (
    "DELETE FROM transcript WHERE id IN (SELECT t.id FROM transcript t JOIN conversations c ON c.id = t.conversation"
    f" WHERE t.at < ?1 AND (t.live = 0 OR (c.active_at < ?1 AND {_PAST})) LIMIT ?2) RETURNING 1"
)
_TURNS = _deletion(
    "turns",
    "state = 'done' AND ended_at < ?"
    " AND NOT EXISTS (SELECT 1 FROM transcript t WHERE t.turn = turns.id)",
)
_CONVERSATIONS = (
    f"DELETE FROM conversations WHERE id IN (SELECT c.id FROM conversations c WHERE c.active_at < ? AND {_PAST}"
    " AND NOT EXISTS (SELECT 1 FROM transcript t WHERE t.conversation = c.id)"
    " AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.conversation = c.id) LIMIT ?) RETURNING 1"
)
_RECORDS = (
    _deletion("inbox", "state = 'done' AND received_at < ?"),
    _deletion("outbox", "state IN ('delivered', 'failed') AND changed_at < ?"),
    _deletion("set_aside", "at < ?"),
    _deletion("budgets", "at < ?"),
    _deletion("approvals", "state <> 'asked' AND decided_at < ?"),
    _deletion("notes", "deleted_at < ?"),
)
_USAGE = (
    _deletion("usage", "at < ?"),
    _deletion("occurrences", "state NOT IN ('due', 'running') AND due_at < ?"),
)


async def prune(store: Store, retention: Retention) -> int:
    """Delete rows past their age, in small transactions; how many. What counts as now advances by at most a day with each
    call: a clock that is years ahead deletes nothing at once."""
    now, removed = store.clock(), 0
    if reached := await store.key_values.get(REACHED, float):
        now = min(now, reached + DAY)
    await store.key_values.put(REACHED, now)
    for days, statements in (
        (retention.transcript, (_TRANSCRIPT, _TURNS, _CONVERSATIONS)),
        (retention.records, _RECORDS),
        (retention.usage, _USAGE),
    ):
        for sql in statements if days else ():
            removed += await _delete_all(store, sql, now - days * DAY)
    if retention.ledger:
        removed += await store.ledger.prune(now - retention.ledger * DAY)
    return removed


async def vacuum(store: Store) -> bool:
    """Give free pages back to the disk when they are a quarter of the file; False when they are fewer."""
    async with store.database.read() as tx:
        free, pages = await tx.value("PRAGMA freelist_count"), await tx.value("PRAGMA page_count")
    if free * 4 < pages or free < 256:
        return False
    async with store.database.without_transaction() as tx:
        await tx.run("VACUUM")
    return True


async def _delete_all(store: Store, sql: str, *values: Any) -> int:
    """Run a deletion until it finds no full batch; return how many rows it deleted."""
    removed = 0
    while True:
        rows = await store.database.execute(sql, *values, BATCH)
        removed += len(rows)
        if len(rows) < BATCH:
            return removed
