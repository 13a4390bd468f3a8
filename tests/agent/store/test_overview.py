"""What the owner's page reads: where a turn's seconds went, and turns found by what they have in common."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from agent.store import Store, open_store
from agent.store.database import open_read_only
from agent.store.errors import StoreError
from agent.store.overview import Overview, TurnFilter
from fakes.page_state import fill_state


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    path = tmp_path / "voltaire.db"
    await fill_state(path, turns=120, now=1_800_000_000.0)
    async with open_read_only(path, lambda: 1_800_000_000.0) as database:
        yield Store(database, tmp_path / "attempts")


async def test_a_turns_seconds_by_part(tmp_path: Path) -> None:
    path = tmp_path / "voltaire.db"
    async with open_store(path) as writer, writer.database.write() as tx:
        await tx.run("INSERT INTO chats (key, number, created_at, active_at) VALUES ('c', 1, 0, 0)")
        await tx.run(
            "INSERT INTO conversations (id, chat, created_at, active_at) VALUES (1, 'c', 0, 0)"
        )
        await tx.run(
            "INSERT INTO turns (id, chat, conversation, kind, source, state, reason, text, started_at, ended_at)"
            " VALUES ('t', 'c', 1, 'message', 's', 'done', 'done', 'yes', 100, 120)"
        )
        await tx.run(
            "INSERT INTO inbox (source, update_id, chat, kind, words, state, turn, said_at, received_at)"
            " VALUES ('s', '1', 'c', 'message', 'well?', 'done', 't', 97, 98)"
        )
        await tx.run(
            "INSERT INTO transcript (conversation, position, turn, role, text, extra, at)"
            """ VALUES (1, 1, 't', 'assistant', 'abcd', '{"thought": "123456789012"}', 110)"""
        )
        await tx.run(
            "INSERT INTO usage (chat, conversation, turn, prompt_tokens, cached_tokens, completion_tokens, reread,"
            " ttft_ms, decode_tok_s, at) VALUES ('c', 1, 't', 1000, 900, 40, 30, 2000, 10, 111)"
        )
        await tx.run("INSERT INTO tool_runs VALUES ('t', 'x', 112, 119)")
        await tx.run(
            "INSERT INTO approvals (id, chat, turn, call, what, scope, state, asked_at, expires_at, decided_at)"
            " VALUES ('a', 'c', 't', 'x', 'w', 's', 'once', 113, 400, 117)"
        )
        await tx.run(
            "INSERT INTO outbox (chat, turn, payload, state, created_at, changed_at)"
            " VALUES ('c', 't', '{}', 'delivered', 120, 120.5)"
        )
    async with open_read_only(path) as database:
        line = await Overview(database).turn("t")
    assert line is not None
    assert line.seconds == {
        "waiting": 2.0,
        "reading": 2.0,
        "thinking": 3.0,
        "writing": 1.0,
        "tools": 3.0,
        "approvals": 4.0,
        "sending": 0.5,
        "other": 7.0,
    }
    assert (line.asked, line.answered, line.reread) == ("well?", "yes", 30)


async def test_turns_are_found(store: Store) -> None:
    overview = Overview(store.database)
    everything = await overview.turns(TurnFilter(), 500)
    assert len(everything) == 121  # and the one that runs
    assert [t.started_at for t in everything] == sorted(
        (t.started_at for t in everything), reverse=True
    )
    for wanted, fits in (
        (TurnFilter(words="invoice plumber"), lambda t: "invoice" in t.asked or "invoice" in t.answered),
        (TurnFilter(chat="tg:222"), lambda t: t.chat == "tg:222"),
        (TurnFilter(tool="grep"), lambda t: "grep" in t.tools),
        (TurnFilter(reason="done"), lambda t: t.reason == "done"),
        (TurnFilter(slow=5), lambda t: (t.ended_at or 9e9) - t.started_at >= 5),
        (TurnFilter(reread=True), lambda t: t.reread > 0),
        (TurnFilter(before=everything[50].started_at), lambda t: t.started_at < everything[50].started_at),
    ):  # fmt: skip
        found = await overview.turns(wanted, 500)
        assert found == [turn for turn in everything if fits(turn)], wanted
        assert 0 < len(found) < len(everything)
    assert await overview.turns(TurnFilter(words='"" OR NEAR(')) == []
    assert await overview.turns(TurnFilter(words="!?")) == []


async def test_a_page_of_turns_has_the_figures_of_each(store: Store) -> None:
    overview = Overview(store.database)
    for line in await overview.turns(TurnFilter(), 20):
        assert line == await overview.turn(line.id)


async def test_reading_writes_nothing(store: Store) -> None:
    with pytest.raises(StoreError):
        await store.chats.open("new")
    with pytest.raises(StoreError):
        await store.freeze.freeze("nobody")


async def test_another_versions_state_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "voltaire.db"
    await fill_state(path, turns=1)
    for version, told in ((0, "older"), (99, "newer")):
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(StoreError, match=told):
            async with open_read_only(path):
                pass
