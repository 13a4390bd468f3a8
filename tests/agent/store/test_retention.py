"""What leaves the database, and what never does."""

import pytest

from agent.approvals import ApprovalRequest, question_id
from agent.events import TokenUsage
from agent.messages import Assistant, User
from agent.store import Incoming, Store
from agent.store.retention import DAY, Retention, prune
from agent.store.turns import OpenTurn, RenderedMessage, TurnEnd
from tests.agent.store.conftest import Clock

HOUR, YEARS = 3600.0, 3650 * DAY


async def talk(store: Store, turn: str, words: str, chat: str = "tg:1") -> OpenTurn:
    """A whole turn, answered with the same words."""
    await store.inbox.add(Incoming(chat, "s", turn, words))
    begun = await store.turns.begin(
        turn, await store.inbox.waiting(chat), RenderedMessage("", User(words))
    )
    await store.turns.end(begun, TurnEnd(Assistant(words), words, "done", TokenUsage()))
    return begun


async def said(store: Store) -> list[str]:
    async with store.database.read() as tx:
        return [row[0] for row in await tx.all("SELECT text FROM transcript ORDER BY id")]


async def count(store: Store, table: str) -> int:
    async with store.database.read() as tx:
        return int(await tx.value(f"SELECT count(*) FROM {table}"))


async def test_what_is_old_goes_and_what_is_open_stays(store: Store, clock: Clock) -> None:
    await store.inbox.add(Incoming("tg:1", "s", "open", "still to answer"))
    await store.inbox.add(Incoming("tg:1", "s", "done", "answered"))
    rows = await store.inbox.waiting("tg:1")
    await store.inbox.discard("tg:1", [rows[1].id])
    [sent, _] = await store.outbox.add("tg:1", ["1", "2"])
    await store.outbox.claim("tg:1")
    await store.outbox.delivered(sent, ["9"])
    note, _ = await store.notes.add("tg:1", "old")
    await store.notes.add("tg:1", "kept")
    await store.notes.delete("tg:1", note.id)
    q1 = question_id("q1", "tg:1", "what", "scope")
    await store.approvals.open(
        ApprovalRequest(q1, "t", "c", "tg:1", "what", "scope", clock.now + 9)
    )
    await store.approvals.open(
        ApprovalRequest("q2", "t", "d", "tg:1", "what", "scope", clock.now + 9)
    )
    await store.approvals.decide(q1, "once", clock.now, "ann")
    clock.pass_(31 * DAY)
    assert await prune(store, Retention()) == 4
    assert [r.incoming.text for r in await store.inbox.waiting("tg:1")] == ["still to answer"]
    assert await store.outbox.counts() == {"waiting": 1}
    assert [n.text for n in await store.notes.all("tg:1")] == ["kept"]
    assert not await store.notes.restore("tg:1", note.id)
    assert await count(store, "approvals") == 1
    assert await prune(store, Retention()) == 0


async def test_past_conversations_leave_whole_and_a_prompt_stays(
    store: Store, clock: Clock
) -> None:
    first = await talk(store, "a1", "long past")
    await store.chats.new_conversation("tg:1")
    await talk(store, "b1", "past but used again")
    clock.pass_(10 * DAY)
    await talk(store, "b2", "lately")
    await store.chats.new_conversation("tg:1")
    await talk(store, "c1", "now")
    await talk(store, "x1", "the only one", chat="tg:2")
    clock.pass_(25 * DAY)
    removed = 2 + 1 + 1 + 2  # of transcript, turns, conversations; answered messages
    assert await prune(store, Retention(transcript=30)) == removed
    assert await said(store) == [
        "past but used again", "past but used again", "lately", "lately",
        "now", "now", "the only one", "the only one",
    ]  # fmt: skip
    assert {f.text for f in await store.search.candidates("tg:1", "past")} == {
        "past but used again"
    }
    assert first.conversation not in [c.id for c in await store.chats.conversations("tg:1")]
    clock.pass_(365 * DAY)
    for _ in range(32):  # a day each
        await prune(store, Retention(transcript=30))
    assert await said(store) == ["now", "now", "the only one", "the only one"]
    assert await count(store, "turns") == 2


async def test_what_left_a_prompt_goes_when_it_is_old(store: Store, clock: Clock) -> None:
    await talk(store, "a1", "compacted away")
    await talk(store, "a2", "still in the prompt")
    async with store.database.write() as tx:
        await tx.run("UPDATE transcript SET live = 0 WHERE turn = 'a1'")
    clock.pass_(DAY)
    assert await prune(store, Retention(transcript=2)) == 0
    clock.pass_(2 * DAY)
    assert await prune(store, Retention(transcript=2)) == 0
    assert await prune(store, Retention(transcript=2)) == 3
    assert await said(store) == ["still in the prompt"] * 2


@pytest.mark.parametrize(
    ("jumps", "kept"),
    [
        ([0], True),
        ([YEARS], True),
        ([YEARS] * 3, True),
        ([YEARS, -YEARS], True),
        ([YEARS, *[HOUR] * 23], True),
        ([YEARS, *[HOUR] * 28, -YEARS, HOUR], True),
        ([-YEARS, YEARS], True),
        ([-YEARS, *[HOUR] * 50, YEARS, *[HOUR] * 10], True),
        ([29 * DAY], True),
        ([DAY] * 29, True),
        ([DAY] * 32, False),
        ([DAY / 2] * 63, False),
        ([40 * DAY, *[HOUR] * 10], True),
        ([40 * DAY, *[HOUR] * 32], False),
        ([3 * DAY] * 32, False),
        ([YEARS, -YEARS, *[DAY] * 32], False),
    ],
)
async def test_a_clock_that_is_years_ahead_deletes_nothing_at_once(
    store: Store, clock: Clock, jumps: list[float], kept: bool
) -> None:
    """Each jump stands before one round of deletions by the records' 30 days."""
    await prune(store, Retention())
    await store.inbox.add(Incoming("tg:1", "s", "1", "answered"))
    [row] = await store.inbox.waiting("tg:1")
    await store.inbox.discard("tg:1", [row.id])
    for seconds in jumps:
        clock.pass_(seconds)
        await prune(store, Retention())
    assert await count(store, "inbox") == kept


@pytest.mark.parametrize("table", ["outbox", "turns", "transcript", "notes", "conversations"])
async def test_no_deletion_walks_through_a_table_that_grows(store: Store, table: str) -> None:
    """Deleting a parent looks for its children; each way there must be an index."""
    async with store.database.read() as tx:
        children = [
            row[0]
            for row in await tx.all(
                "SELECT name FROM sqlite_schema WHERE sql LIKE ?", f"%REFERENCES {table}%"
            )
        ]
        keys = [
            (child, key[3])
            for child in children
            for key in await tx.all(f"PRAGMA foreign_key_list({child})")
            if key[2] == table
        ]
        plans = {
            (child, column): await tx.all(
                f"EXPLAIN QUERY PLAN SELECT 1 FROM {child} WHERE {column} = ?", 1
            )
            for child, column in keys
        }
    walked = [key for key, [(*_, plan)] in plans.items() if plan.startswith("SCAN")]
    assert [key for key in walked if key[0] != "chats"] == []  # as many as there are chats
