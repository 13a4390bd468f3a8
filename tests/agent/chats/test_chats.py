import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from agent.channels import Assignment, NoChannels, TurnReply
from agent.chats import chats as chats_module
from agent.chats.chats import RESUMES, Chats
from agent.context.window import ModelWindow
from agent.events import Emit, TurnFinished
from agent.leaks import LeakDetector
from agent.messages import Assistant, ToolResult, User
from agent.model import Piece, Request
from agent.store import Incoming, open_store
from agent.store.errors import StoreFull
from agent.store.inbox import CLI, InboxRow
from agent.store.set_aside import SetAsideTable
from agent.store.turns import OpenTurn, TurnTable
from fakes.model_caching import CachingModel
from fakes.patience import SECONDS, soon
from fakes.stored import set_aside
from fakes.words import saying
from tests.agent.chats.conftest import Bench, Gate, calling, echo, said, words_of


def _as_many(waits: Sequence[object], count: int) -> bool:
    return len(waits) == count


async def test_messages_are_answered_in_order_each_once(bench: Bench) -> None:
    async with bench.running() as chats:
        for number in range(5):
            assert await chats.submit(said(str(number), str(number)))
            assert not await chats.submit(said(str(number), str(number)))
        assert await bench.heard.replies("tg:1", 5) == [f"you said {n}" for n in range(5)]
        assert await chats.store.inbox.count_waiting() == 0
        assert await chats.store.outbox.counts() == {"waiting": 5}


async def test_each_turn_is_one_line_of_the_log_without_what_was_said(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agent.chats.chats")
    async with bench.running() as chats:
        await chats.submit(said("a secret", "1"))
        await bench.heard.replies("tg:1", 1)
        last = await chats.store.turns.last("tg:1")
        await soon(lambda: caplog.messages)
    assert last
    (line,) = caplog.messages
    prompt, cached = bench.model.reads[0]
    written = "\\d+"
    assert re.fullmatch(
        f"turn turn={last[0].id} chat=tg:1 source=test reason=done tool_calls=0"
        f" prompt={prompt} cached={cached} completion={written} seconds={written}\\.{written}",
        line,
    )


async def test_a_chat_that_waits_holds_up_no_other(bench: Bench) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda r: (
        calling("gate") if words_of(r) == "wait" and isinstance(r.messages[-1], User) else echo(r)
    )
    async with bench.running() as chats:
        await chats.submit(said("wait", "1"))
        await gate.began.wait()
        for number in range(2, 30):
            await chats.submit(said("hello", str(number), f"tg:{number}"))
        for number in range(2, 30):
            assert await bench.heard.replies(f"tg:{number}", 1) == ["you said hello"]
        assert "tg:1" in chats.running()
        gate.open.set()
        await bench.heard.replies("tg:1", 1)


async def without_workers(chats: Chats) -> None:
    async with asyncio.timeout(SECONDS):
        while chats._workers:
            await chats.tasks.ended()


async def test_what_arrives_meanwhile_joins_the_turn_after_the_next_step(bench: Bench) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda r: calling("gate") if len(r.messages) == 2 else echo(r)
    async with bench.running() as chats:
        await chats.submit(said("one", "1"))
        await gate.began.wait()
        await chats.submit(said("no, two", "2"))
        gate.open.set()
        assert await bench.heard.replies("tg:1", 1) == ["you said no, two"]
        kinds = [type(m).__name__ for m in bench.model.requests[-1].messages]
        assert kinds == ["System", "User", "Assistant", "ToolResult", "User"]
        assert await chats.store.inbox.count_waiting() == 0


async def test_stop_ends_the_turn_and_the_next_message_is_answered(bench: Bench) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda r: calling("gate") if words_of(r) == "wait" else echo(r)
    async with bench.running() as chats:
        assert not await chats.stop("tg:1")
        await chats.submit(said("wait", "1"))
        await gate.began.wait()
        assert await chats.stop("tg:1")
        await bench.heard.replies("tg:1", 1)
        assert bench.heard.ends("tg:1")[0].reason == "cancelled"
        await chats.submit(said("go on", "2"))
        assert (await bench.heard.replies("tg:1", 2))[1] == "you said go on"
        last = bench.model.requests[-1].messages
        assert isinstance(last[3], ToolResult)
        assert "interrupted" in last[3].text


async def test_retry_asks_again_as_if_the_first_try_had_not_been(bench: Bench) -> None:
    answers = iter(["first", "bad", "good"])
    bench.model.answer = lambda r: Assistant(next(answers))
    async with bench.running() as chats:
        assert not await chats.retry("tg:1")
        await chats.submit(said("one", "1"))
        await bench.heard.replies("tg:1", 1)
        await chats.submit(said("two", "2"))
        await bench.heard.replies("tg:1", 2)
        assert await chats.retry("tg:1")
        assert (await bench.heard.replies("tg:1", 3))[2] == "good"
        texts = [m.text.rpartition("\n")[2] for m in bench.model.requests[-1].messages]
        assert texts[1:] == ["one", "first", "two"]


async def test_a_new_conversation_knows_notes_and_nothing_else(bench: Bench) -> None:
    async with bench.running() as chats:
        await chats.store.notes.add("tg:1", "likes tea")
        await chats.submit(said("my cat is Tom", "1"))
        await bench.heard.replies("tg:1", 1)
        old = await chats.store.chats.get("tg:1")
        await chats.store.chats.new_conversation("tg:1")
        await chats.submit(said("hello", "2"))
        await bench.heard.replies("tg:1", 2)
        fresh = "".join(m.text for m in bench.model.requests[-1].messages)
        assert "likes tea" in fresh
        assert "Tom" not in fresh
        assert old and old.conversation
        assert await chats.store.chats.resume("tg:1", old.conversation)
        await chats.submit(said("and the cat?", "3"))
        await bench.heard.replies("tg:1", 3)
        assert "Tom" in "".join(m.text for m in bench.model.requests[-1].messages)


async def test_an_album_becomes_one_turn_and_what_is_said_later_another(bench: Bench) -> None:
    async with bench.running() as chats:
        for number, at in enumerate((100.0, 100.4, 101.2, 160.0)):
            await chats.store.inbox.add(said(f"part {number}", str(number), settle_s=1.0, at=at))
        chats.wake("tg:1")
        assert await bench.heard.replies("tg:1", 2) == [
            "you said part 0\npart 1\npart 2",
            "you said part 3",
        ]


async def test_a_message_waits_for_what_may_follow_it(bench: Bench) -> None:
    async with bench.running() as chats:
        await chats.submit(said("first", "1", settle_s=2.0))
        await chats.submit(said("second", "2", settle_s=2.0))
        assert await bench.heard.replies("tg:1", 1) == ["you said first\nsecond"]


async def test_an_edit_after_its_answer_is_appended_as_a_correction(bench: Bench) -> None:
    async with bench.running() as chats:
        await chats.submit(said("teh cat", "1", ref="9"))
        await bench.heard.replies("tg:1", 1)
        await chats.submit(said("the cat", "2", ref="9", kind="edit"))
        await bench.heard.replies("tg:1", 2)
        first, second = (request.messages for request in bench.model.requests)
        assert second[: len(first)] == first
        assert 'correction: this replaces "teh cat"' in second[-1].text
        assert second[-1].text.endswith("\nthe cat")


async def test_an_edit_of_anothers_message_stops_no_turn_and_is_not_answered(bench: Bench) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda r: calling("gate") if len(r.messages) == 2 else echo(r)
    async with bench.running() as chats:
        await chats.submit(said("teh cat", "1", ref="9", author="tim"))
        await gate.began.wait()
        assert not await chats.submit(said("the dog", "2", ref="9", kind="edit", author="eve"))
        assert chats.running() == ["tg:1"]
        gate.open.set()
        await bench.heard.replies("tg:1", 1)
        assert await chats.store.inbox.count_waiting() == 0


async def test_a_failing_turn_is_told_and_the_next_one_runs(bench: Bench) -> None:
    def answer(request: Request) -> Assistant:
        if words_of(request) == "crash":
            raise RuntimeError("a bug")
        return echo(request)

    bench.model.answer = answer
    async with bench.running() as chats:
        await chats.submit(said("crash", "1"))
        await bench.heard.until(lambda: bench.heard.ends("tg:1"))
        assert bench.heard.ends("tg:1")[0].reason == "error"
        await chats.submit(said("fine", "2"))
        assert (await bench.heard.replies("tg:1", 2))[1] == "you said fine"
        assert await chats.store.outbox.counts() == {"waiting": 2}


async def test_a_chat_is_forgotten_once_its_turn_has_ended(bench: Bench) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda request: echo(request) if gate.entered else calling("gate")
    async with bench.running() as chats:
        await chats.submit(said("a secret", "1"))
        await gate.began.wait()
        await chats.store.inbox.add(said("and more", "2"))
        await chats.forget("tg:1")
        await bench.heard.replies("tg:1", 1)
        assert [end.reason for end in bench.heard.ends("tg:1")] == ["cancelled"]
        await without_workers(chats)
        assert await chats.store.chats.get("tg:1") is None
        await chats.submit(said("again", "3"))
        assert (await bench.heard.replies("tg:1", 2))[-1] == "you said again"
        assert "secret" not in str(bench.model.requests[-1].messages)


async def test_no_word_of_a_chat_reaches_another(bench: Bench) -> None:
    async with bench.running() as chats:
        for chat in ("tg:1", "tg:-100:1", "tg:-100:2"):
            await chats.store.notes.add(chat, f"note-{chat}")
            for number in range(3):
                await chats.submit(said(f"word-{chat}", f"{chat}{number}", chat))
        for chat in ("tg:1", "tg:-100:1", "tg:-100:2"):
            await bench.heard.replies(chat, 3)
        for request in bench.model.requests:
            text = "".join(message.text for message in request.messages)
            about = {
                c
                for c in ("tg:1", "tg:-100:1", "tg:-100:2")
                if f"word-{c}" in text or f"note-{c}" in text
            }
            assert len(about) == 1


@pytest.mark.parametrize("place", ["a call", "an answer"])
async def test_what_was_withheld_before_a_restart_is_told_after_it(
    bench: Bench, place: str
) -> None:
    secret, gate = "7311804495:AAHk3-9xTqLr_0vBwZyE2mNcD8sUuPfGa1o", Gate()
    bench.leaks = LeakDetector({"telegram.token": secret})
    bench.tools = [gate.tool()]
    held = [
        calling("gate", f'{{"word": "{secret}"}}') if place == "a call" else Assistant(secret),
        calling("gate", id="c2"),
    ]
    bench.model.answer = lambda request: held.pop(0)
    async with bench.running() as chats:
        await chats.submit(said("hello", "1"))
        await gate.began.wait()
    bench.model.answer = lambda request: Assistant("Done.")
    async with bench.running() as chats:
        [reply] = await bench.heard.replies("tg:1", 1)
        assert [row.kind for row in await chats.store.ledger.rows(0)] == ["withheld"]
    where = "gate" if place == "a call" else "an answer"
    assert reply == saying("Done.\n\n", f"withheld: {where}", "telegram.token")
    assert secret not in reply


async def test_a_full_disk_holds_a_message_up_and_loses_nothing(bench: Bench) -> None:
    long = " ".join(map(str, range(4000)))
    async with bench.running() as chats:
        async with chats.store.database.without_transaction() as tx:
            pages = await tx.value("PRAGMA page_count")
        gate = Gate()
        bench.tools = [gate.tool()]
        bench.model.answer = lambda r: calling("gate") if len(r.messages) == 2 else Assistant(long)
        await chats.submit(said("hello", "1"))
        await gate.began.wait()
        async with chats.store.database.without_transaction() as tx:
            pages = await tx.value("PRAGMA page_count")
            await tx.run(f"PRAGMA max_page_count = {pages}")
        gate.open.set()
        await bench.heard.until(lambda: bench.heard.waits)
        assert bench.heard.waits[0][1] == saying("full", "saved")
        with pytest.raises(StoreFull):
            await chats.store.key_values.put("a", "x" * 50_000)
        async with chats.store.database.without_transaction() as tx:
            await tx.run("PRAGMA max_page_count = 1000000")
        chats.wake("tg:1")
        assert await bench.heard.replies("tg:1", 1) == [long]
        assert gate.entered == 1


async def test_a_turn_that_a_full_disk_held_up_often_is_not_given_up(bench: Bench) -> None:
    async with bench.running() as chats:
        full = True

        async def writable(yes: bool) -> None:
            async with chats.store.database.without_transaction() as tx:
                await tx.run(f"PRAGMA query_only = {'OFF' if yes else 'ON'}")

        class Filling(CachingModel):
            async def stream(self, request: Request) -> AsyncGenerator[Piece]:
                await writable(not full)
                async for piece in super().stream(request):
                    yield piece

        bench.model = Filling(echo)
        await chats.submit(said("hello", "1"))
        for count in range(1, RESUMES + 3):
            await bench.heard.until(partial(_as_many, bench.heard.waits, count))
            full = count < RESUMES + 2
            await writable(True)
            chats.wake("tg:1")
        assert await bench.heard.replies("tg:1", 1) == ["you said hello"]


async def test_a_shutdown_leaves_the_turn_to_the_next_start(bench: Bench) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda r: calling("gate") if len(r.messages) == 2 else Assistant("done")
    async with bench.running() as chats:
        await chats.submit(said("wait", "1"))
        await gate.began.wait()
        await chats.submit(said("me too", "2", "tg:2"))
    assert bench.heard.ends("tg:1") == []
    again = Bench(bench.path)
    again.model.answer = lambda r: Assistant("resumed")
    async with again.running():
        assert await again.heard.replies("tg:1", 1) == ["resumed"]
        assert gate.entered <= 2
        [result] = [r.messages[3] for r in again.model.requests if "wait" in r.messages[1].text]
        assert isinstance(result, ToolResult)
        assert "interrupted" in result.text


async def test_a_turn_that_always_brings_the_program_down_is_given_up(bench: Bench) -> None:
    stuck = asyncio.Event()

    for _ in range(5):
        life = Bench(bench.path)
        life.model.before = lambda request: stuck.set()
        async with life.running() as chats:
            await chats.submit(said("hello", "1"))
            async with asyncio.timeout(SECONDS):
                await stuck.wait()
        stuck.clear()
        async with open_store(bench.path) as store, store.database.write() as tx:
            # As a kill would leave it: the answer was on its way.
            await tx.run("UPDATE turns SET state = 'open', ended_at = NULL")
            await tx.run("UPDATE inbox SET state = 'taken'")
            await tx.run("DELETE FROM outbox")
    last = Bench(bench.path)
    async with last.running() as chats:
        async with asyncio.timeout(SECONDS):
            while await chats.store.inbox.count_waiting():
                await chats.tasks.ended()
        assert last.model.requests == []
        found = await chats.store.turns.last("tg:1")
        assert found
        assert "several times" in found[1]


async def test_a_question_that_nobody_waits_for_is_dropped_and_its_call_told_as_interrupted(
    bench: Bench,
) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda r: calling("gate")
    async with bench.running() as chats:
        await chats.submit(Incoming("cli", CLI, "1", "left alone"))
        await gate.began.wait()
        await chats.store.inbox.add(Incoming("cli", CLI, "2", "never begun"))

    class OneLeft(NoChannels):
        def attends(self, incoming: Incoming) -> bool:
            return incoming.update == "3"

    again = Bench(bench.path, channels=OneLeft())
    async with again.running() as chats:
        assert await chats.store.inbox.count_waiting() == 2, "until the chat is wanted"
        await chats.submit(Incoming("cli", CLI, "3", "hello"))
        assert await again.heard.replies("cli", 1) == ["you said hello"]
        assert await chats.store.inbox.count_waiting() == 0
        results = [m for m in again.model.requests[0].messages if isinstance(m, ToolResult)]
        assert [("interrupted" in result.text) for result in results] == [True]


async def test_a_terminal_that_asks_again_gets_the_rest_of_its_turn(bench: Bench) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda r: calling("gate")
    asked = Incoming("cli", CLI, "1", "a question")
    async with bench.running() as chats:
        await chats.submit(asked)
        await gate.began.wait()
    again = Bench(bench.path)
    again.model.answer = lambda r: Assistant("resumed")
    async with again.running() as chats:
        assert not await chats.submit(asked)
        assert await chats.store.turns.answer_to(CLI, "1") is None
        chats.wake("cli")
        assert await again.heard.replies("cli", 1) == ["resumed"]
        assert await chats.store.turns.answer_to(CLI, "1") == ("resumed", "done")


async def test_an_unfinished_turn_of_the_bot_is_not_lost_to_a_command_line(bench: Bench) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda r: calling("gate")
    async with bench.running() as chats:
        await chats.submit(said("question", "1"))
        await gate.began.wait()

    class Command(NoChannels):
        def owns(self, chat: str, source: str) -> bool:
            return source == CLI

    command = Bench(bench.path, channels=Command())
    async with command.running() as chats:
        await chats.submit(Incoming("tg:1", CLI, "1", "hello"))
        assert await command.heard.replies("tg:1", 1) == ["you said hello"]
    bot = Bench(bench.path)
    async with bot.running():
        assert await bot.heard.replies("tg:1", 1) == ["you said question"]


async def test_what_comes_from_elsewhere_meanwhile_gets_a_turn_of_its_own(bench: Bench) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda r: (
        calling("gate") if words_of(r) == "slow" and isinstance(r.messages[-1], User) else echo(r)
    )
    async with bench.running() as chats:
        await chats.submit(Incoming("tg:1", CLI, "1", "slow"))
        await gate.began.wait()
        await chats.submit(said("from the phone", "2"))
        await chats.submit(Incoming("tg:1", CLI, "3", "another terminal"))
        gate.open.set()
        expected = ["you said slow", "you said from the phone", "you said another terminal"]
        assert await bench.heard.replies("tg:1", 3) == expected


async def test_a_listener_that_fails_ends_only_its_hearing(bench: Bench) -> None:
    class NoRecognizer:
        async def event(self, assignment: object, event: object) -> None:
            raise OSError("the line is dead")

        async def waiting(self, chat: str, why: str) -> None:
            raise OSError

    async with bench.running() as chats:
        deaf = Chats(
            chats.store,
            bench._run,
            chats._window,
            NoChannels(),
            NoRecognizer(),
        )
        async with deaf:
            await deaf.submit(Incoming("tg:5", "other", "1", "hello"))
            async with asyncio.timeout(SECONDS):
                while await chats.store.inbox.count_waiting():
                    await deaf.tasks.ended()
        last = await chats.store.turns.last("tg:5")
        assert last
        assert last[1] == "you said hello"


async def test_what_cannot_be_brought_along_keeps_no_message_from_its_answer(bench: Bench) -> None:
    class Broken(NoChannels):
        async def fetch(self, rows: Sequence[InboxRow]) -> Sequence[InboxRow]:
            raise RuntimeError("a bug")

    bench.channels = Broken()
    async with bench.running() as chats:
        await chats.submit(said("hello", "1"))
        assert await bench.heard.replies("tg:1", 1) == ["you said hello"]


async def test_a_disk_that_is_full_as_a_message_is_fetched_loses_nothing_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(NoChannels):
        async def fetch(self, rows: Sequence[InboxRow]) -> Sequence[InboxRow]:
            if full:
                raise full.pop()
            return [
                replace(row, incoming=replace(row.incoming, text="a recording")) for row in rows
            ]

    monkeypatch.setattr(chats_module, "STORE_RETRY_SECONDS", 0.0)
    bench.channels, full = Full(), [StoreFull("The disk is full.")] * 2
    async with bench.running() as chats:
        await chats.submit(said("hello", "1"))
        assert await bench.heard.replies("tg:1", 1) == ["you said a recording"]


async def test_a_crash_that_cannot_be_counted_keeps_no_message_from_its_answer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, crashes = TurnTable.begin, [KeyError("x")] * 4

    async def crashing(table: TurnTable, id: str, *of: Any) -> OpenTurn:
        if crashes:
            raise crashes.pop()
        return await begin(table, id, *of)

    async def full(*_: object) -> bool:
        raise StoreFull("The disk is full.")

    monkeypatch.setattr(chats_module, "CRASH_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(TurnTable, "begin", crashing)
    monkeypatch.setattr(SetAsideTable, "crashed", full)
    async with bench.running() as chats:
        await chats.submit(said("hello", "1"))
        assert await bench.heard.replies("tg:1", 1) == ["you said hello"]


@pytest.mark.parametrize(("deleted", "answered"), [(False, "you said new"), (True, "")])
async def test_a_message_that_is_changed_while_its_turn_begins_counts_as_it_is_then(
    bench: Bench, deleted: bool, answered: str
) -> None:
    class Fetching(NoChannels):
        async def fetch(self, rows: Sequence[InboxRow]) -> Sequence[InboxRow]:
            if rows[0].incoming.text == "old" and not begun.is_set():
                begun.set()
                await changed.wait()
            return rows

    begun, changed = asyncio.Event(), asyncio.Event()
    bench.channels = Fetching()
    async with bench.running() as chats:
        await chats.submit(Incoming("tg:1", "test", "1", "old", ref="9", author="7"))
        await begun.wait()
        if deleted:
            await chats.store.inbox.take_back("test", "9", "7")
        else:
            await chats.submit(Incoming("tg:1", "test", "2", "new", "edit", ref="9", author="7"))
        changed.set()
        await chats.submit(said("the next", "3"))
        first = [answered] if answered else []
        assert await bench.heard.replies("tg:1", len(first) + 1) == [*first, "you said the next"]
        assert await chats.store.inbox.count_waiting() == 0


async def test_a_message_that_is_edited_while_it_joins_a_turn_joins_as_it_is_then(
    bench: Bench,
) -> None:
    class Fetching(NoChannels):
        async def fetch(self, rows: Sequence[InboxRow]) -> Sequence[InboxRow]:
            if rows[0].incoming.text == "old":
                await chats.submit(Incoming("tg:1", "test", "3", "new", "edit", "9", author="7"))
            return rows

    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda r: calling("gate") if len(r.messages) == 2 else echo(r)
    bench.channels = Fetching()
    async with bench.running() as chats:
        await chats.submit(said("one", "1"))
        await gate.began.wait()
        await chats.submit(Incoming("tg:1", "test", "2", "old", ref="9", author="7"))
        gate.open.set()
        assert "you said new" in await bench.heard.replies("tg:1", 2)
        assert not [r for r in bench.model.requests if words_of(r) == "old"]


async def test_a_terminal_that_leaves_while_its_turn_begins_stops_it(bench: Bench) -> None:
    class Leaving(NoChannels):
        def attends(self, incoming: Incoming) -> bool:
            return incoming.update != "1" or not begun.is_set()

        async def fetch(self, rows: Sequence[InboxRow]) -> Sequence[InboxRow]:
            begun.set()
            return rows

    begun = asyncio.Event()
    bench.tools, bench.channels = [Gate().tool()], Leaving()
    bench.model.answer = lambda r: calling("gate")
    async with bench.running() as chats:
        await chats.submit(Incoming("cli", CLI, "1", "left alone"))
        await bench.heard.replies("cli", 1)
        assert bench.heard.ends("cli")[0].reason == "cancelled"


async def test_a_turn_that_cannot_be_ended_is_set_aside_at_the_third_crash(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(NoChannels):
        def compose(self, reply: TurnReply) -> Sequence[str]:
            raise KeyError("x")

    monkeypatch.setattr(chats_module, "CRASH_RETRY_SECONDS", 0.0)
    bench.channels = Broken()
    async with bench.running() as chats:
        await chats.submit(said("hello", "1"))
        async with asyncio.timeout(SECONDS):
            while not (aside := await set_aside(chats.store)):
                await asyncio.sleep(0.01)
        assert [row.table_name for row in aside] == ["turns"]
        assert await chats.store.inbox.count_waiting() == 0
        assert await chats.store.turns.unfinished("tg:1") is None


async def test_a_message_that_took_the_program_down_three_times_does_not_begin_again(
    bench: Bench,
) -> None:
    async with open_store(bench.path) as store:
        await store.inbox.add(said("deadly", "1"))
        await store.inbox.add(said("hello", "2"))
        (store.set_aside.attempts / "inbox-1").write_text("...")  # three programs ended at it
    async with bench.running() as chats:
        assert await bench.heard.replies("tg:1", 1) == ["you said hello"]
        [row] = await set_aside(chats.store)
    assert (row.table_name, row.row_id, row.chat) == ("inbox", "1", "tg:1")


async def test_a_worker_goes_on_by_itself_after_a_crash_until_nothing_waits(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever retires it hears of its end once: nobody else has to wake it."""
    monkeypatch.setattr(chats_module, "CRASH_RETRY_SECONDS", 0.0)
    ended, ran = [], []

    async def crashing(assignment: Assignment, emit: Emit) -> TurnFinished:
        ran.append(assignment.turn.id)
        return TurnFinished("done", "done", 0)  # and nothing is written: the turn stays open

    async def broken(*_: object) -> OpenTurn:
        raise KeyError("x")

    async with open_store(bench.path) as store:
        await store.inbox.add(said("hello", "1"))
        window = ModelWindow(store, bench.model, bench.queue, ())
        of = "tg:1", store, crashing, window, NoChannels(), bench.heard, "UTC"
        it = chats_module.Worker(*of, lambda: ended.append(1))
        monkeypatch.setattr(type(store.turns), "begin", broken)
        async with asyncio.timeout(SECONDS):
            await it.run()
        assert (ended, ran) == ([1], [])
        assert [row.crashes for row in await set_aside(store)] == [3]
        assert await store.inbox.count_waiting() == 0


async def test_a_worker_that_fails_at_no_row_ends_until_it_is_wanted_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []

    async def broken(*of: object) -> None:
        looks.append(of)
        raise KeyError("x")

    async def never(assignment: Assignment, emit: Emit) -> TurnFinished:
        raise AssertionError

    async with open_store(bench.path) as store:
        window = ModelWindow(store, bench.model, bench.queue, ())
        of = "tg:1", store, never, window, NoChannels(), bench.heard, "UTC"
        it = chats_module.Worker(*of, lambda: None)
        monkeypatch.setattr(type(store.turns), "pending", broken)
        async with asyncio.timeout(SECONDS):
            await it.run()
        assert len(looks) == 1


def row(id: int, **fields: object) -> InboxRow:
    values: dict[str, Any] = {"sender": "ann", "settle_s": 1.0, "at": 10.0, **fields}
    return InboxRow(id, 0.0, said(str(id), str(id), **values))


@pytest.mark.parametrize(
    ("rows", "taken"),
    [
        ([], 0),
        ([{}], 1),
        ([{}, {"at": 11.0}, {"at": 12.0}], 3),
        ([{}, {"at": 9.0}], 2),
        ([{}, {"at": 11.1}], 1),
        ([{}, {"at": 8.9}], 1),
        ([{}, {"at": 11.0}, {"at": 12.1}], 2),
        ([{"settle_s": 0.0}, {}], 1),
        ([{}, {"settle_s": 0.0}, {}], 2),
        ([{}, {"sender": "bob"}, {}], 1),
        ([{}, {"kind": "edit"}, {}], 1),
        ([{"kind": "job"}, {"kind": "job"}], 1),
    ],
    ids=[
        "nothing", "one", "in a row", "out of order", "late", "early", "by the one before",
        "nothing to wait for", "and then", "another person", "a correction", "jobs",
    ],
)  # fmt: skip
def test_what_was_sent_as_one_is_answered_as_one(rows: list[dict[str, object]], taken: int) -> None:
    made = [row(number, **fields) for number, fields in enumerate(rows)]
    assert chats_module.gathered(made) == made[:taken]


async def test_a_clock_that_is_set_back_holds_up_no_message_that_waits_for_another(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.chats.chats.SETTLE_BOUND_SECONDS", 1.0)
    async with bench.running() as chats:
        right = iter([time.time()])
        chats.store.clock = lambda: next(right, time.time() - 3600)
        await chats.submit(said("first", "1", settle_s=0.5))
        assert await bench.heard.replies("tg:1", 1) == ["you said first"]
