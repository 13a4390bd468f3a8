"""Sends the ledger's head to the owners once a day, so that a later change of the ledger shows."""

import json
from collections.abc import Callable, Collection

from agent.store import chats, key_values, outbox
from agent.store.ledger import DAY, TOLD, LedgerTable, Verification, parsed

BROKEN = "ledger_broken_told"  # key of the instant at which the owners were told of a fault in it


async def tell_head(
    ledger: LedgerTable,
    owners: Collection[str],
    payload: Callable[[Verification], str],
    before: float,
) -> bool:
    """Post the head to the owners' chats, silently, if the ledger has rows from before that instant (the start
    of the day) that are newer than the head told last, or ends before that head. Whether it did.

    A fault is told once a day, since it stays.
    """
    told = parsed(await ledger.told())
    since, db = told[0] if told else 0, ledger.database
    last = await db.value("SELECT max(number) FROM ledger") or 0
    new = await db.value("SELECT 1 FROM ledger WHERE number > ? AND at < ? LIMIT 1", since, before)
    if not owners or not (new or last < since):
        return False
    sql = (
        "SELECT at <= ?2 AND ?2 - at < ?3 FROM"
        " (SELECT json_extract(value, '$') AS at FROM facts WHERE key = ?1 AND json_valid(value))"
    )
    if await db.value(sql, BROKEN, db.clock(), DAY):
        return False
    found = await ledger.verify()
    async with db.write() as tx:
        if found.problem:
            await tx.run(key_values.PUT, BROKEN, json.dumps(tx.now))
        for chat in owners:
            await chats.ensure(tx, chat)
            await outbox.put(tx, chat, [payload(found)], silent=True)
        await tx.run(key_values.PUT, TOLD, json.dumps(found.head))
    return True
