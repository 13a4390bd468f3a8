"""Cancellation and waiting: what is raised, what goes on, what is left behind."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from agent.aio import BackgroundTasks, complete, move_on_when, no_answer, output_of, set_within
from fakes.patience import SECONDS, soon


async def forever() -> None:
    await asyncio.Event().wait()


async def steps(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_block_is_left_when_its_event_is_set() -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    after = False
    async with move_on_when(event):
        await forever()
        after = True
    assert not after
    await steps()  # nothing of the cancellation is left
    current = asyncio.current_task()
    assert current and current.cancelling() == 0


async def test_a_block_that_ends_first_is_not_cancelled_later() -> None:
    event = asyncio.Event()
    async with move_on_when(event):
        event.set()
    await steps()
    assert len(asyncio.all_tasks()) == 1


async def test_an_event_that_was_set_before_ends_the_block_at_its_first_wait() -> None:
    event = asyncio.Event()
    event.set()
    async with move_on_when(event):
        await forever()


@pytest.mark.parametrize("error", [TimeoutError, ValueError])
async def test_what_the_block_raises_is_raised(error: type[Exception]) -> None:
    with pytest.raises(error):
        async with move_on_when(asyncio.Event()):
            raise error


async def test_a_time_limit_within_the_block_is_told_from_the_event() -> None:
    with pytest.raises(TimeoutError):
        async with move_on_when(asyncio.Event()), asyncio.timeout(0):
            await forever()
    event = asyncio.Event()
    event.set()
    async with move_on_when(event), asyncio.timeout(0):  # both at once: the outer one wins
        await forever()


@pytest.mark.parametrize("both", [False, True])
async def test_a_cancellation_from_outside_passes_through(both: bool) -> None:
    event, began = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        async with move_on_when(event):
            began.set()
            await forever()

    task = asyncio.create_task(work())
    await began.wait()
    if both:
        event.set()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def _write(began: asyncio.Event, release: asyncio.Event, log: list[str]) -> str:
    began.set()
    await release.wait()
    log.append("written")
    return "row"


async def _cancelled_amid(
    work: Callable[[asyncio.Event, asyncio.Event], Awaitable[object]],
) -> tuple["asyncio.Task[object]", asyncio.Event]:
    began, release = asyncio.Event(), asyncio.Event()

    async def run() -> object:
        return await work(began, release)

    task = asyncio.create_task(run())
    await began.wait()
    task.cancel()
    await steps()
    return task, release


async def test_work_is_completed_before_its_cancellation_is_raised() -> None:
    log: list[str] = []
    task, release = await _cancelled_amid(
        lambda began, release: complete(_write(began, release, log))
    )
    assert not task.done() and not log
    release.set()
    await asyncio.wait([task])
    assert task.cancelled() and log == ["written"]


async def test_work_that_outlasts_its_grace_is_cancelled() -> None:
    log: list[str] = []
    task, _ = await _cancelled_amid(
        lambda began, release: complete(_write(began, release, log), grace=0.01)
    )
    await asyncio.wait([task])
    await steps()
    assert task.cancelled() and not log and len(asyncio.all_tasks()) == 1


async def test_completed_work_gives_its_result_and_its_error() -> None:
    release = asyncio.Event()
    release.set()
    assert await complete(_write(asyncio.Event(), release, [])) == "row"

    async def fails() -> None:
        raise ValueError

    with pytest.raises(ValueError):
        await complete(fails())


async def test_an_event_is_waited_for_no_longer_than_said() -> None:
    event = asyncio.Event()
    assert not await set_within(event, 0)
    event.set()
    assert await set_within(event, 0)


async def test_background_tasks_end_with_their_block_and_their_failures_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails() -> None:
        raise ValueError("no such thing")

    with caplog.at_level(logging.ERROR):
        async with BackgroundTasks() as tasks:
            tasks.start(fails(), "the failing one")
            tasks.start(forever(), "the endless one")
            await steps()
    assert [record.getMessage() for record in caplog.records] == ["the failing one failed"]
    assert len(asyncio.all_tasks()) == 1


async def test_a_program_does_not_outlive_whoever_waits_for_it(tmp_path: Path) -> None:
    written = tmp_path / "pid"
    words = ("sh", "-c", f"echo $$ > {written}.new; mv {written}.new {written}; exec sleep 600")
    waiting = asyncio.create_task(output_of(*words, seconds=SECONDS))
    await soon(written.exists)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not Path("/proc", written.read_text().strip()).exists()


@pytest.mark.parametrize(
    ("scheme", "answer", "told"),
    [
        ("http", None, "Connection refused"),
        ("http", b"", "its answer broke off or cannot be read"),
        ("http", b"what?\r\n\r\n", "its answer broke off or cannot be read"),
        ("https", b"what?\r\n\r\n", "it speaks no TLS"),
    ],
)
async def test_why_nothing_came_is_told_in_words_without_the_address(
    scheme: str, answer: bytes | None, told: str
) -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        writer.write(answer or b"")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    url = "{}://{}:{}/bot1:secret/getMe".format(scheme, *server.sockets[0].getsockname())
    if answer is None:
        server.close()
    async with server, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError) as caught:
            await session.get(url)
    assert no_answer(caught.value) == told
