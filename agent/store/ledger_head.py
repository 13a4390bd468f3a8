"""The ledger's head goes to the owners once a day, so that a later change of the ledger shows."""

import json
from collections.abc import Callable, Collection

from agent.store import chats, outbox
from agent.store.ledger import DAY, TOLD, LedgerTable, Verification, parsed

BROKEN = (
    "ledger_broken_told"  # key of the instant at which the owners were told what is wrong in it
)


async def tell_head(
    ledger: LedgerTable,
    owners: Collection[str],
    payload: Callable[[Verification], str],
    before: float,
) -> bool:
    """Put the head into the outbox of the owners' chats, silently, where anything was written before
    that instant (the day's beginning) since the last time, or what was told is gone. Whether it did.

    What is wrong stays so, and is told once a day.
    """
    told = parsed(await ledger.told())
    since, db = told[0] if told else 0, ledger.database
    last = await db.value("SELECT max(number) FROM ledger WHERE number < 1 << 53") or 0
    new = await db.value("SELECT 1 FROM ledger WHERE number > ? AND at < ? LIMIT 1", since, before)
    if not owners or not (new or last < since):
        return False
    if await db.value(_TOLD_BROKEN, BROKEN, db.clock(), DAY):
        return False
    found = await ledger.verify()
    async with db.write() as tx:
        if found.problem:
            await tx.run(_KEEP, BROKEN, json.dumps(tx.now))
        for chat in owners:
            await chats.ensure(tx, chat)
            await outbox.put(tx, chat, [payload(found)], silent=True)
        await tx.run(_KEEP, TOLD, json.dumps(found.head))
    return True


_KEEP = "INSERT INTO facts (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2"
_TOLD_BROKEN = """
SELECT at <= ?2 AND ?2 - at < ?3 FROM
    (SELECT json_extract(value, '$') AS at FROM facts WHERE key = ?1 AND json_valid(value))
"""
