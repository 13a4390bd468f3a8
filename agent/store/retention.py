"""Deletion by age and, if the database has a bound, by size; VACUUM."""

from dataclasses import dataclass
from typing import Any

from agent.store import Store

DAY = 86_400.0
BATCH = 500  # rows per transaction, so that other writers do not wait for long


@dataclass(frozen=True, slots=True)
class Retention:
    """Days that rows are kept, 0: for ever; `most_bytes` of the database, 0: no bound.

    `records` are answered messages, sent replies, decided approvals and deleted notes. They need two days
    at least: Telegram repeats updates for one.
    """

    transcript: int = 0
    records: int = 30
    usage: int = 365
    ledger: int = 365
    most_bytes: int = 0


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
# Both for the bound of the database's size; a conversation takes its turns with it.
_LONGEST_UNUSED = (
    f"SELECT c.id FROM conversations c WHERE {_PAST} ORDER BY c.active_at, c.id LIMIT 1"
)
_OUT_OF_PROMPT = _deletion("transcript", "live = 0 ORDER BY id")

_INDEXED = 1.8  # bytes of the database for a byte of a document's text

_UNMERGED = "rows_unmerged"  # key of the number of rows deleted since the last merge
_SHARE = 20  # the index is merged once one row in so many was deleted
_MERGE_PAGES = 200  # in one transaction


async def prune(store: Store, retention: Retention) -> int:
    """Delete rows past their age, then those beyond the bound, in small transactions; how many."""
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
    """Bytes of the database's pages in use, without those of documents: a folder of them must not drive
    out conversations."""
    async with store.database.read() as tx:
        pages = await tx.value("PRAGMA page_count") - await tx.value("PRAGMA freelist_count")
        size = await tx.value("PRAGMA page_size")
        documents = await tx.value("SELECT coalesce(sum(bytes), 0) FROM documents")
    return max(0, int(pages * size - _INDEXED * documents))


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
    """Run a deletion until it finds no full batch; how many rows it deleted."""
    removed = 0
    while True:
        rows = await store.database.execute(sql, *values, BATCH)
        removed += len(rows)
        if len(rows) < BATCH:
            return removed


async def _shrink(store: Store, most: int) -> int:
    """Delete past conversations, the longest unused first, then the oldest messages that stand in
    no prompt, until at most `most` bytes are used (0: no bound)."""
    removed = 0
    while most and await used(store) > most:
        async with store.database.write() as tx:
            past = await tx.value(_LONGEST_UNUSED)
            gone = await tx.all("DELETE FROM transcript WHERE conversation = ? RETURNING 1", past)
            gone += await tx.all("DELETE FROM conversations WHERE id = ? RETURNING 1", past)
        rows = len(gone)
        if not rows:
            rows = len(await store.database.execute(_OUT_OF_PROMPT, BATCH))
            rows += await _delete_all(store, _TURNS, store.clock())
        if not rows:
            break
        removed += rows
        await _merge_words(store, rows)
    return removed


async def _merge_words(store: Store, removed: int) -> None:
    """Rebuild the index of words without deleted messages, once that is worth it.

    Deleting only adds a mark to the index, so it would grow, and keep the database above its bound when
    nothing else may be deleted.
    """
    if not removed:
        return
    removed += await store.key_values.get(_UNMERGED, int) or 0
    if worth := removed * _SHARE >= await store.database.value("SELECT count(*) FROM transcript"):
        pages, changes = -_MERGE_PAGES, 2  # negative: begin with all of it
        while changes >= 2:  # SQLite's own sign that there is more to do
            async with store.database.write(durable=False) as tx:
                before = await tx.value("SELECT total_changes()")
                await tx.run("INSERT INTO said (said, rank) VALUES ('merge', ?)", pages)
                changes = await tx.value("SELECT total_changes()") - before
            pages = _MERGE_PAGES
    await store.key_values.put(_UNMERGED, 0 if worth else removed)
