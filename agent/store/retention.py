"""Deletion by age, and by size where the database has a bound; VACUUM."""

from dataclasses import dataclass
from typing import Any

from agent.store import Store
from agent.store.database import summed

DAY = 86_400.0
BATCH = 500  # rows per transaction, so that nobody waits for long


@dataclass(frozen=True, slots=True)
class Retention:
    """Days that things are kept, 0: for ever; `most_bytes` of the database, 0: no bound.

    `records` are answered messages, sent replies, decided approvals and deleted
    notes. Telegram repeats updates for a day, so fewer than two would be too few.
    """

    transcript: int = 0
    records: int = 30
    usage: int = 365
    ledger: int = 365
    most_bytes: int = 0


_PAST = (
    "(SELECT conversation FROM chats WHERE key = c.chat) IS NOT c.id"
    " AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.conversation = c.id AND t.state = 'open')"
)
# Messages of a prompt stay until their conversation is a past one, unused for as long.
_TRANSCRIPT = (
    "DELETE FROM transcript WHERE id IN (SELECT t.id FROM transcript t JOIN conversations c ON c.id = t.conversation"
    f" WHERE t.at < ?1 AND (t.live = 0 OR (c.active_at < ?1 AND {_PAST})) LIMIT ?2) RETURNING 1"
)
_TURNS = (
    "DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE state = 'done' AND ended_at < ?"
    " AND NOT EXISTS (SELECT 1 FROM transcript t WHERE t.turn = turns.id) LIMIT ?) RETURNING 1"
)
_CONVERSATIONS = (
    f"DELETE FROM conversations WHERE id IN (SELECT c.id FROM conversations c WHERE c.active_at < ? AND {_PAST}"
    " AND NOT EXISTS (SELECT 1 FROM transcript t WHERE t.conversation = c.id)"
    " AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.conversation = c.id) LIMIT ?) RETURNING 1"
)
_RECORDS = (
    "DELETE FROM inbox WHERE id IN (SELECT id FROM inbox WHERE state = 'done' AND received_at < ? LIMIT ?) RETURNING 1",
    "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE state IN ('delivered', 'failed') AND changed_at < ? LIMIT ?) RETURNING 1",
    "DELETE FROM set_aside WHERE id IN (SELECT id FROM set_aside WHERE at < ? LIMIT ?) RETURNING 1",
    "DELETE FROM budgets WHERE id IN (SELECT id FROM budgets WHERE at < ? LIMIT ?) RETURNING 1",
    "DELETE FROM approvals WHERE id IN (SELECT id FROM approvals WHERE state <> 'asked' AND decided_at < ? LIMIT ?) RETURNING 1",
    "DELETE FROM notes WHERE id IN (SELECT id FROM notes WHERE deleted_at < ? LIMIT ?) RETURNING 1",
)
_USAGE = (
    "DELETE FROM usage WHERE id IN (SELECT id FROM usage WHERE at < ? LIMIT ?) RETURNING 1",
    "DELETE FROM occurrences WHERE id IN (SELECT id FROM occurrences WHERE state NOT IN ('due', 'running') AND due_at < ? LIMIT ?) RETURNING 1",
)


async def prune(store: Store, retention: Retention) -> int:
    """Delete what is older than it is kept, then what is beyond the bound, in small transactions; how many rows."""
    removed = 0
    for days, statements in (
        (retention.transcript, (_TRANSCRIPT, _TURNS, _CONVERSATIONS)),
        (retention.records, _RECORDS),
        (retention.usage, _USAGE),
    ):
        for sql in statements if days else ():
            removed += await _delete_all(store, sql, store.clock() - days * DAY)
    if retention.ledger:
        removed += await store.ledger.prune(store.clock() - retention.ledger * DAY)
    await _merge_words(store, removed)
    return removed + await _shrink(store, retention.most_bytes)


async def used(store: Store) -> int:
    """Bytes of the database's pages in use, without what documents take: a folder of them must not drive
    out what was said."""
    async with store.database.read() as tx:
        pages, free, size = [await tx.value(f"PRAGMA {name}") for name in _PAGES]
        documents = await tx.value(f"SELECT {summed('max(bytes, 0)')} FROM documents")
    return max(0, int((pages - free) * size - _INDEXED * documents))


_INDEXED = 1.8  # bytes of the database for a byte of a document's text (bench/documents.py)
_PAGES = ("page_count", "freelist_count", "page_size")


async def vacuum(store: Store) -> bool:
    """Give free pages back to the disk when they are a quarter of the file; whether it did."""
    async with store.database.read() as tx:
        free, pages = await tx.value("PRAGMA freelist_count"), await tx.value("PRAGMA page_count")
    if free * 4 < pages or free < 256:
        return False
    async with store.database.without_transaction() as tx:
        await tx.run("VACUUM")
    return True


async def _delete_all(store: Store, sql: str, *values: Any) -> int:
    """Run a deletion until it finds no full batch; how many rows."""
    removed = 0
    while True:
        rows = await store.database.execute(sql, *values, BATCH)
        removed += len(rows)
        if len(rows) < BATCH:
            return removed


_LONGEST_UNUSED = (
    f"SELECT c.id FROM conversations c WHERE {_PAST} ORDER BY c.active_at, c.id LIMIT 1"
)
_MESSAGES = "DELETE FROM transcript WHERE conversation = ? RETURNING 1"
_CONVERSATION = "DELETE FROM conversations WHERE id = ? RETURNING 1"  # and its turns
_OUT_OF_PROMPT = (
    "DELETE FROM transcript WHERE id IN"
    " (SELECT id FROM transcript WHERE live = 0 ORDER BY id LIMIT ?) RETURNING 1"
)


async def _shrink(store: Store, most: int) -> int:
    """Delete past conversations, the longest unused first, then the oldest messages that stand in
    no prompt, until at most `most` bytes are used (0: no bound)."""
    removed = 0
    while most and await used(store) > most:
        async with store.database.write() as tx:
            past = await tx.value(_LONGEST_UNUSED)
            rows = len(await tx.all(_MESSAGES, past)) + len(await tx.all(_CONVERSATION, past))
        if not rows:
            rows = len(await store.database.execute(_OUT_OF_PROMPT, BATCH))
            rows += await _delete_all(store, _TURNS, store.clock())
        if not rows:
            break
        removed += rows
        await _merge_words(store, rows)
    return removed


_UNMERGED = "rows_unmerged"  # key of the value that holds how many rows left since the last merge
_SHARE = 20  # of the rows that are left, one in so many
_MERGE_PAGES = 200  # in one transaction
_MERGE = "INSERT INTO said (said, rank) VALUES ('merge', ?)"


async def _merge_words(store: Store, removed: int) -> None:
    """Write the index of words anew, without what left, once that is worth it.

    Of what is deleted the index only notes that it was, which takes more room; left alone, it
    would keep the database above its bound when nothing else may go.
    """
    if not removed:
        return
    removed += await store.key_values.get(_UNMERGED, int) or 0
    if worth := removed * _SHARE >= await store.database.value("SELECT count(*) FROM transcript"):
        pages, changes = -_MERGE_PAGES, 2  # negative: begin with all of it
        while changes >= 2:  # SQLite's own sign that there is more to do
            async with store.database.write(durable=False) as tx:
                before = await tx.value("SELECT total_changes()")
                await tx.run(_MERGE, pages)
                changes = await tx.value("SELECT total_changes()") - before
            pages = _MERGE_PAGES
    await store.key_values.put(_UNMERGED, 0 if worth else removed)
