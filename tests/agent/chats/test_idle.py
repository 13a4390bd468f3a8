import asyncio

from agent.errors import BackendAway
from agent.idle import Idle
from agent.model import Request
from agent.store.upkeep import DAY
from agent.window import ModelWindow
from tests.agent.chats.conftest import Bench, Gate, calling, said


async def until_warm(idle: Idle) -> None:
    async with asyncio.timeout(10):
        while idle.cold:
            await asyncio.sleep(0.01)


async def test_after_a_start_the_chats_used_last_are_read_in_the_newest_last(bench: Bench) -> None:
    async with bench.running() as chats:
        for number in range(5):
            await chats.submit(said(f"hello from {number}", str(number), f"tg:{number}"))
            await bench.heard.replies(f"tg:{number}", 1)
    again = Bench(bench.path)
    async with again.running() as chats:
        idle = Idle(chats.store, chats._window, chats, look_seconds=0.01)  # type: ignore[arg-type]
        running = asyncio.create_task(idle.run())
        await until_warm(idle)
        running.cancel()
        warmed = [request.messages[1].text.rpartition(" ")[2] for request in again.model.requests]
        assert warmed == ["2", "3", "4"]
        assert {request.max_tokens for request in again.model.requests} == {1}
        assert again.model.cache
        await chats.submit(said("more", "more", "tg:4"))
        await again.heard.replies("tg:4", 1)
        prompt, cached = again.model.reads[-1]
        assert prompt - cached < 30


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
        idle = Idle(chats.store, chats._window, chats, look_seconds=0.01)  # type: ignore[arg-type]
        running = asyncio.create_task(idle.run())
        await until_warm(idle)
        running.cancel()
        assert away == 0


async def test_nothing_is_done_while_a_turn_runs(bench: Bench) -> None:
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda request: calling("gate")
    async with bench.running() as chats:
        await chats.submit(said("wait", "1"))
        await gate.began.wait()
        before = len(bench.model.requests)
        idle = Idle(chats.store, chats._window, chats, look_seconds=0.001)  # type: ignore[arg-type]
        running = asyncio.create_task(idle.run())
        for _ in range(50):
            await asyncio.sleep(0)
        running.cancel()
        assert (idle.cold, len(bench.model.requests)) == (True, before)


async def test_once_a_day_there_is_a_good_copy(bench: Bench) -> None:
    async with bench.running() as chats:
        await chats.store.chats.open("tg:1")
        assert isinstance(chats._window, ModelWindow)
        idle = Idle(chats.store, chats._window, chats)
        copy = bench.path.with_suffix(".last-good")
        await idle._once()
        first = copy.stat().st_mtime_ns
        await idle._once()
        assert copy.stat().st_mtime_ns == first
        await chats.store.facts.put("snapshot_at", chats.store.clock() - DAY)
        await idle._once()
        assert copy.stat().st_mtime_ns > first
