import asyncio
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent.chats.chats import Chats
from agent.chats.maintenance import HOUR, PRUNE, QUIET_SECONDS, VACUUM, Maintenance
from agent.context.window import ModelWindow
from agent.errors import BackendAway
from agent.llm.queued_model import GpuHold
from agent.memory.search import Embedder, SemanticSearch
from agent.model import Completion, ModelRefused, Request
from agent.store.backup import SNAPSHOT
from agent.store.retention import DAY
from agent.store.search import Vector
from agent.store.usage import CacheReuse
from backend.protocol import PERSON
from fakes.patience import soon
from tests.agent.chats.conftest import Bench, Gate, calling, echo, said


class Server:
    """Which life of the model server serves; None: none does."""

    def __init__(self) -> None:
        self.serving: str | None = "first"

    async def life(self) -> str | None:
        return self.serving

    def dies(self, bench: Bench, next: str | None) -> None:
        self.serving = next
        bench.model.cache.clear()


def idle_of(chats: Chats, server: Server, **fields: Any) -> Maintenance:
    assert isinstance(chats._window, ModelWindow)
    return Maintenance(chats.store, chats._window, chats, server.life, poll_seconds=0.01, **fields)


@asynccontextmanager
async def beside(idle: Maintenance) -> AsyncIterator[None]:
    running = asyncio.create_task(idle.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])


async def until_warm(idle: Maintenance, life: str) -> None:
    await soon(lambda: idle.warmed == life)


async def greet(bench: Bench, chats: Chats, count: int) -> None:
    for number in range(count):
        await chats.submit(said(f"hello from {number}", str(number), f"tg:{number}"))
        await bench.heard.replies(f"tg:{number}", 1)


def warmed(bench: Bench) -> list[str]:
    """Whose prompts were read in, in order."""
    single = [request for request in bench.model.requests if request.max_tokens == 1]
    return [request.messages[1].text.rpartition(" ")[2] for request in single]


async def test_after_a_start_the_chats_used_last_are_read_in_the_newest_last(bench: Bench) -> None:
    async with bench.running() as chats:
        await greet(bench, chats, 5)
    again = Bench(bench.path)
    async with again.running() as chats:
        idle = idle_of(chats, Server())
        async with beside(idle):
            await until_warm(idle, "first")
        assert warmed(again) == ["2", "3", "4"]
        assert again.model.cache
        await chats.submit(said("more", "more", "tg:4"))
        await again.heard.replies("tg:4", 1)
        prompt, cached = again.model.reads[-1]
        assert prompt - cached < 30


async def test_a_model_server_that_sleeps_is_not_woken_but_read_to_when_it_wakes(
    bench: Bench,
) -> None:
    server = Server()
    async with bench.running() as chats:
        await greet(bench, chats, 1)
        idle = idle_of(chats, server)
        await idle.run_once()
        server.dies(bench, None)
        await idle.run_once()
        assert warmed(bench) == ["0"]
        server.serving = "first"
        await idle.run_once()
        assert warmed(bench) == ["0", "0"]


async def test_what_was_dropped_for_somebody_is_read_in_later(bench: Bench) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    async with bench.running() as chats:
        await greet(bench, chats, 2)
        bench.model.answer = lambda request: echo(request) if gate.entered else calling("gate")
        idle = idle_of(chats, Server())
        async with bench.queue("somebody", PERSON):
            reading = asyncio.create_task(idle.run_once())
            await chats.submit(said("wait", "9", "tg:9"))
            await soon(lambda: len(bench.queue._waiting) >= 2)
        await gate.began.wait()
        await reading
        assert (idle.warmed, len(warmed(bench))) == (None, 1)
        gate.open.set()
        await bench.heard.replies("tg:9", 1)
        await idle.run_once()
        assert (idle.warmed, len(warmed(bench))) == ("first", 4)


async def test_a_chat_that_the_model_refuses_keeps_no_other_cold(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    async with bench.running() as chats:
        await greet(bench, chats, 2)

        def refuses(request: Request) -> None:
            if "from 0" in request.messages[1].text:
                raise ModelRefused(400, "the template wants something else")

        bench.model.before = refuses
        idle = idle_of(chats, Server())
        await idle.run_once()
        await idle.run_once()
        assert (idle.warmed, warmed(bench)) == ("first", ["0", "1"])
        [message] = caplog.messages
        assert "tg:0" in message and "the template wants something else" in message


async def test_a_model_server_that_is_away_is_asked_again(bench: Bench) -> None:
    async with bench.running() as chats:
        await chats.submit(said("hello", "1"))
        await bench.heard.replies("tg:1", 1)
        away = 3

        def gone(request: Request) -> None:
            nonlocal away
            away -= 1
            if away > 0:
                raise BackendAway("gone")

        bench.model.before = gone
        idle = idle_of(chats, Server())
        async with beside(idle):
            await until_warm(idle, "first")
        assert away == 0


async def test_while_turns_run_all_the_time_the_database_is_kept_half_as_often(
    bench: Bench,
) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda request: calling("gate")
    intervals = {PRUNE: HOUR, VACUUM: DAY, SNAPSHOT: DAY}
    async with bench.running() as chats:
        await chats.submit(said("wait", "1"))
        await gate.began.wait()
        kept, idle = chats.store.key_values, idle_of(chats, Server())

        async def last_done(factor: int) -> set[bool]:
            """Whether each is done anew, after so many intervals and a minute."""
            due = {name: chats.store.clock() - factor * s - 60 for name, s in intervals.items()}
            for name, at in due.items():
                await kept.put(name, at)
            await idle.run_once(busy=True)
            return {await kept.get(name, float) != at for name, at in due.items()}

        assert (await last_done(1), await last_done(2)) == ({False}, {True})


async def test_once_a_day_there_is_a_good_copy(bench: Bench) -> None:
    async with bench.running() as chats:
        await chats.store.chats.open("tg:1")
        idle = idle_of(chats, Server())
        copy = bench.path.with_suffix(".last-good")
        await idle.run_once()
        first = copy.stat().st_mtime_ns
        await idle.run_once()
        assert copy.stat().st_mtime_ns == first
        await chats.store.key_values.put("snapshot_at", chats.store.clock() - DAY)
        await idle.run_once()
        assert copy.stat().st_mtime_ns > first


async def test_a_chat_that_is_forgotten_while_its_words_are_looked_through_ends_nothing(
    bench: Bench,
) -> None:
    class Forgetting(Embedder):
        async def vectors(self, texts: Sequence[str], seconds: float) -> list[Vector]:
            await chats.store.chats.forget("tg:0")
            return [array("f", [1.0]) for _ in texts]

    async with bench.running() as chats:
        await greet(bench, chats, 1)
        search = SemanticSearch(chats.store, Forgetting("http://unused"))
        await idle_of(chats, Server(), semantic_search=search).run_once()
        assert await chats.store.chats.get("tg:0") is None
        await chats.store.usage.add("tg:0", 1, None, Completion("", (), "", "stop"), CacheReuse())
        sql = "SELECT count(*) FROM usage WHERE chat = 'tg:0'"
        assert await chats.store.database.value(sql) == 0


async def test_what_nobody_foresaw_in_maintenance_is_logged_and_tried_again(bench: Bench) -> None:
    class Broken(Embedder):
        async def vectors(self, texts: Sequence[str], seconds: float) -> list[Vector]:
            tries.append(len(texts))
            raise LookupError("x")

    tries: list[int] = []
    async with bench.running() as chats:
        await greet(bench, chats, 1)
        search = SemanticSearch(chats.store, Broken("http://unused"))
        async with beside(idle_of(chats, Server(), semantic_search=search)):
            await soon(lambda: len(tries) > 1)


class Saving(GpuHold):
    def __init__(self, chat: str, saved: list[str]) -> None:
        super().__init__()
        self.chat, self.saved = chat, saved

    async def save(self) -> None:
        self.saved.append(self.chat)


async def test_chats_that_fell_silent_are_saved_once_for_each_life_of_the_server(
    bench: Bench,
) -> None:
    saved: list[str] = []

    @asynccontextmanager
    async def queue(chat: str, priority: object, on_wait: object = None) -> AsyncIterator[GpuHold]:
        yield Saving(chat, saved)

    async def saves() -> str:
        return "silent"

    async with bench.running() as chats:
        await greet(bench, chats, 2)
        server = Server()
        idle = idle_of(chats, server, saves=saves)
        idle.window.queue = queue
        await idle.run_once()
        assert saved == []  # somebody may go on
        now = chats.store.clock()
        chats.store.clock = lambda: now + QUIET_SECONDS + 1
        for _ in range(2):
            await idle.run_once()
        assert sorted(saved) == ["tg:0", "tg:1"]
        server.dies(bench, "second")
        await idle.run_once()
        assert len(saved) == 4
        chats.store.clock = lambda: now + 2 * DAY
        server.dies(bench, "third")
        await idle.run_once()
        assert len(saved) == 4


async def test_saved_prompts_of_ended_conversations_are_deleted_once_the_backend_is_there(
    bench: Bench,
) -> None:
    forgotten: list[str] = []
    away = True

    async def forget(chat: str) -> bool:
        forgotten.append(chat)
        return not away

    async with bench.running() as chats:
        await greet(bench, chats, 3)
        await chats.forget("tg:0")
        await chats.store.chats.new_conversation("tg:1")
        idle = idle_of(chats, Server(), forget=forget)
        await idle.run_once(busy=True)
        away = False
        await idle.run_once(busy=True)
        await idle.run_once(busy=True)
        assert forgotten == ["tg:0", "tg:1"] * 2
