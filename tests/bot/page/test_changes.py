"""What is pressed on the page reaches the bot by its rows, and counts once."""

import asyncio
import json
import sqlite3
from contextlib import AsyncExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.agent import Agent
from agent.approvals import ApprovalRequest, Approvals, GuardedCall
from agent.sandbox.files import TAINTS, WorkspaceTaints
from agent.sandbox.history import WorkspaceHistory
from agent.sandbox.sandbox import folder_name
from agent.store import open_store
from backend.client import BackendClient
from backend.config import BackendConfig
from bot.cli.holder_api import serve_as_bot
from bot.cli.holder_client import holding_state
from bot.connected_terminals import ConnectedTerminals
from bot.holder import Holder
from fakes import gguf_maker
from fakes.backend_running import running
from fakes.page_state import backend_with_card, fill_state
from fakes.patience import within
from fakes.words import saying

from .conftest import Visitor, served, settings_of, visiting


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "voltaire.db")) as db:
        return db.execute(sql).fetchall()


async def question(visitor: Visitor) -> str:
    (asked,) = (await visitor.json("/api/now"))["questions"]
    return str(asked["id"])


@pytest.mark.parametrize("decision", ["once", "chat", "denied"])
async def test_a_question_is_decided_once(visitor: Visitor, tmp_path: Path, decision: str) -> None:
    id = await question(visitor)
    presses = [visitor.press("decide", id=id, decision=decision) for _ in range(5)]
    statuses = sorted(status for status, _ in await asyncio.gather(*presses))
    assert statuses == [200, 409, 409, 409, 409]
    decided = rows(tmp_path, "SELECT state, decided_by FROM approvals WHERE call = 'c'")
    assert decided == [(decision, "owner's page")]
    recorded = rows(tmp_path, "SELECT count(*) FROM ledger WHERE kind = 'decision'")
    assert recorded == [(1,)]
    granted = rows(tmp_path, "SELECT scope FROM grants")
    assert granted == ([("commit:website",)] if decision == "chat" else [])
    status, told = await visitor.press("decide", id=id, decision="once")
    assert (status, told) == (409, f"That was decided before: {decision} by owner's page.")
    assert (await visitor.json("/api/now"))["questions"] == []


async def test_a_question_has_its_chat_s_name_and_says_whether_it_can_be_allowed_for_it(
    visitor: Visitor, tmp_path: Path
) -> None:
    (asked,) = (await visitor.json("/api/now"))["questions"]
    assert (asked["title"], asked["may_last"]) == ("Tim", True)
    with closing(sqlite3.connect(tmp_path / "voltaire.db")) as db, db:
        db.execute("UPDATE approvals SET scope = 'page:example.org:443' WHERE call = 'c'")
    (asked,) = (await visitor.json("/api/now"))["questions"]
    assert asked["may_last"] is False


async def test_a_question_that_was_changed_grants_nothing(visitor: Visitor, tmp_path: Path) -> None:
    id = await question(visitor)
    with closing(sqlite3.connect(tmp_path / "voltaire.db")) as db, db:
        db.execute("UPDATE approvals SET what = 'something else'")
    assert (await visitor.press("decide", id=id, decision="once"))[0] == 409
    assert rows(tmp_path, "SELECT state FROM approvals WHERE call = 'c'") == [("asked",)]


async def test_a_question_shows_what_is_hidden_and_its_end(
    visitor: Visitor, tmp_path: Path
) -> None:
    unseen = "".join(chr(0xE0000 + ord(c)) for c in "rm")
    what = f"ls{unseen}\u3000\n" + "\n" * 3000 + "long " * 2000 + "; the end"
    with closing(sqlite3.connect(tmp_path / "voltaire.db")) as db, db:
        db.execute("UPDATE approvals SET what = ?, scope = 'page:x:443'", (what,))
    for path in ("/api/now", "/api/people"):
        (asked,) = [q for q in (await visitor.json(path))["questions"] if q["state"] == "asked"]
        assert asked["shown"].startswith("ls⟨U+E0072⟩⟨U+E006D⟩⟨U+3000⟩\n⟨3,000 empty lines⟩\nlong ")
        assert asked["shown"].endswith("; the end") and "characters in 1 lines" in asked["shown"]
        assert asked["whole"].count("long ") == 2000 and "⟨U+E0072⟩" in asked["whole"]
        assert asked["may_last"] is False  # such a step asks each time


async def no_taints() -> list[Any]:
    return []


async def test_a_bot_that_waits_takes_the_answer_of_the_page(tmp_path: Path) -> None:
    """The page asks the process that holds the state, in which the turn waits."""
    await fill_state(tmp_path / "voltaire.db", turns=1)
    asked = asyncio.Event()

    async def ask(request: ApprovalRequest) -> None:
        asked.set()

    call = GuardedCall("t00000", "c9", "tg:111", no_taints)
    async with (
        AsyncExitStack() as stack,
        open_store(tmp_path / "voltaire.db") as store,
        backend_with_card(tmp_path / "b.sock"),
        BackendClient(tmp_path / "b.sock") as backend,
        served(tmp_path) as page,
        visiting(page) as visitor,
        asyncio.TaskGroup() as group,
    ):
        approvals = Approvals(store.approvals, ask)
        agent = cast(Agent, SimpleNamespace(approvals=approvals))
        stack.enter_context(holding_state(tmp_path))
        holder = Holder(
            settings_of(tmp_path), backend, store, agent, None, ConnectedTerminals(store, None)
        )
        await stack.enter_async_context(serve_as_bot(holder))
        waiting = group.create_task(approvals.settle(call, "rm -r old", "run"))
        await asked.wait()
        id = next(
            q["id"]
            for q in (await visitor.json("/api/now"))["questions"]
            if q["what"] == "rm -r old"
        )
        with within(30):
            assert (await visitor.press("decide", id=id, decision="once"))[0] == 200
            _, decision, _ = await waiting
        assert decision == "once"


async def test_notes_are_kept_pinned_changed_deleted_and_restored(visitor: Visitor) -> None:
    async def notes() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await visitor.json("/api/chat?chat=tg:111"))["notes"]
        return found

    assert (await visitor.press("note-add", chat="tg:111", text="Bins on Tuesday."))[0] == 200
    added = next(note for note in await notes() if note["text"] == "Bins on Tuesday.")
    place = {"chat": "tg:111", "number": added["id"]}
    assert (await visitor.press("note-pin", **place, on=True))[0] == 200
    assert (await visitor.press("note-edit", **place, text="Bins on Monday."))[0] == 200
    assert (await visitor.press("note-edit", **place, text=" "))[0] == 409
    changed = next(note for note in await notes() if note["id"] == added["id"])
    assert (changed["text"], changed["pinned"]) == ("Bins on Monday.", 1)
    assert (await visitor.press("note-delete", **place))[0] == 200
    assert (await visitor.press("note-delete", **place))[0] == 409
    assert next(n for n in await notes() if n["id"] == added["id"])["deleted_at"]
    assert (await visitor.press("note-restore", **place))[0] == 200
    other = {"chat": "tg:222", "number": added["id"]}
    assert (await visitor.press("note-delete", **other))[0] == 409


async def test_jobs_are_paused_edited_run_and_deleted(visitor: Visitor, tmp_path: Path) -> None:
    place = {"chat": "tg:111", "number": 2}
    assert (await visitor.press("job-pause", **place, on=True))[0] == 200
    assert rows(tmp_path, "SELECT state, next_at FROM jobs WHERE id = 2") == [("paused", None)]
    assert (await visitor.press("job-pause", **place, on=False))[0] == 200
    assert (await visitor.press("job-edit", **place, text="every day at 7:15"))[0] == 200
    status, told = await visitor.press("job-edit", **place, text="whenever")
    assert status == 409 and told
    assert (await visitor.press("job-run", **place))[0] == 200
    due = rows(tmp_path, "SELECT count(*) FROM occurrences WHERE job = 2 AND state = 'due'")
    assert due == [(1,)]
    assert (await visitor.press("job-remove", **place))[0] == 200
    assert rows(tmp_path, "SELECT state, words FROM jobs WHERE id = 2") == [
        ("deleted", "every day at 7:15")
    ]
    assert (await visitor.press("job-run", chat="cli", number=1))[0] == 409


async def test_what_was_due_last_stands_first(visitor: Visitor) -> None:
    due = [each["due_at"] for each in (await visitor.json("/api/jobs"))["occurrences"]]
    assert len(due) == 18 and due == sorted(due, reverse=True)


async def test_a_text_in_doubt_is_shown_again_once(visitor: Visitor, tmp_path: Path) -> None:
    ((id,),) = rows(tmp_path, "SELECT id FROM outbox WHERE state = 'uncertain'")
    presses = [visitor.press("show-again", number=id) for _ in range(3)]
    assert sorted(status for status, _ in await asyncio.gather(*presses)) == [200, 409, 409]
    assert rows(tmp_path, f"SELECT state FROM outbox WHERE id = {id}") == [("waiting",)]


async def test_settings_are_those_of_the_chat(visitor: Visitor, tmp_path: Path) -> None:
    for fields, status in (
        ({"setting": "thinking", "text": "512"}, 200),
        ({"setting": "thinking", "text": "513"}, 409),
        ({"setting": "thinking", "text": "many"}, 409),
        ({"setting": "tools", "text": "none"}, 200),
        ({"setting": "tools", "text": "some"}, 409),
        ({"setting": "voice", "text": "same"}, 200),
        ({"setting": "voice", "text": "loud"}, 409),
        ({"setting": "language", "text": "de"}, 200),
        ({"setting": "language", "text": "xx"}, 409),
        ({"setting": "timezone", "text": "berlin"}, 200),
        ({"setting": "timezone", "text": "Atlantis"}, 409),
        ({"setting": "", "text": "x"}, 409),
        ({"setting": "conversation", "text": "1"}, 409),
    ):
        assert (await visitor.press("set", chat="tg:111", **fields))[0] == status, fields
    assert (await visitor.press("set", chat="tg:9", setting="tools", text="none"))[0] == 409
    ((settings, zone),) = rows(
        tmp_path, "SELECT settings, timezone FROM chats WHERE key = 'tg:111'"
    )
    assert (
        settings == '{"thinking": 512, "tools": "none", "voice": "same", "language": "de"}'
        and zone == "Europe/Berlin"
    )
    assert rows(tmp_path, "SELECT count(*) FROM chats") == [(3,)]


async def test_people_are_let_in_by_a_code_and_let_go(visitor: Visitor, tmp_path: Path) -> None:
    status, code = await visitor.press("pair")
    assert status == 200
    async with open_store(tmp_path / "voltaire.db") as store:
        assert await store.people.use_code("telegram", "333", "Eve", code) == "member"
    assert (await visitor.press("let-go", id="telegram:333"))[0] == 200
    assert (await visitor.press("let-go", id="telegram:333"))[0] == 409
    assert rows(tmp_path, "SELECT person FROM people") == [("222",)]


async def test_nothing_beyond_the_list_can_be_pressed(visitor: Visitor) -> None:
    for change in ("thaw", "restart", "forget", "__init__", "post"):
        assert (await visitor.press(change))[0] == 404
    assert (await visitor.press("stop", chat="tg:111", command="rm"))[0] == 400
    assert (await visitor.press("stop", chat="tg:111"))[0] == 409  # no process runs that turn


async def test_the_card_is_lent_and_taken_back(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    model, socket = gguf_maker.make(tmp_path / "m.gguf"), tmp_path / "b.sock"
    config = BackendConfig(tmp_path / "b", socket=socket, model=str(model), server="embedded")
    async with running(config) as it, served(tmp_path) as page, visiting(page) as visitor:
        await it.ready()
        assert (await visitor.press("lend", number=-1))[0] == 409
        assert await visitor.press("lend", number=3600) == (200, saying("unloaded until"))
        shown = (await visitor.json("/api/now"))["status"]["backend"]
        assert (shown["state"], bool(shown["lent_until"])) == ("sleeping", True)
        assert await visitor.press("lend", number=0) == (200, saying("loaded again"))
        await it.until(lambda now: now.backend.serving and now.backend.lent_until is None)
    acts = [json.loads(facts) for (facts,) in rows(tmp_path, "SELECT facts FROM ledger")]
    lent = [each["seconds"] for each in acts if each.get("act") == "lend"]
    assert lent == [-1, 3600, 0]


def two_turns(folder: Path) -> WorkspaceHistory:
    """Two turns that change files of the chat tg:111."""
    work = folder / "chats" / folder_name("tg:111") / "work"
    work.mkdir(parents=True)
    history = WorkspaceHistory(work, 64, WorkspaceTaints(work.with_name(TAINTS)))
    for number, text in enumerate(("one\ntwo\n", "one\n<b>2</b>\n"), 1):
        history.begin(f"t{number}")
        (work / "a.txt").write_text(text)
        history.end(f"t{number}")
    return history


async def test_what_turns_changed_is_shown(visitor: Visitor, tmp_path: Path) -> None:
    two_turns(tmp_path).undo(2)
    newest, first = (await visitor.json("/api/changes?chat=tg:111"))["changes"]
    assert (newest["number"], newest["turn"], newest["undone"]) == (2, "t2", True)
    assert (newest["changes"], newest["lines"][0]) == (["~ a.txt"], "~ a.txt")
    assert {"-two", "+<b>2</b>"} < set(newest["lines"])
    assert (first["changes"], first["undone"]) == (["+ a.txt"], False)
    assert (await visitor.json("/api/changes?chat=../../x"))["changes"] == []
