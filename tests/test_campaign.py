"""The campaign itself: it sees what is lost and what comes twice, and its faults are real."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import aiohttp
import pytest

from agent.store import open_store
from bench.campaign import table
from bench.campaign.clock import Clock
from bench.campaign.line import Line
from bench.campaign.people import Jobs, Talker
from bench.reader import Reader
from bot.localgram import Localgram, Message

TOKEN = "1000001:abc"


@pytest.fixture
async def gram() -> AsyncIterator[Localgram]:
    async with Localgram(TOKEN) as gram:
        yield gram


@pytest.fixture
def talker(gram: Localgram) -> Talker:
    person = gram.user("Ada", started=True)
    return Talker(Reader(person, person.chat()), Random(1))


async def ask(talker: Talker) -> None:
    talker.said.append(await talker.reader.person.send("hello"))


def say(gram: Localgram, talker: Talker, text: str) -> Message:
    return gram.world.post(talker.reader.chat, Message(sender=gram.world.bot, text=text))


async def test_what_is_lost_and_what_comes_twice_is_counted(
    gram: Localgram, talker: Talker
) -> None:
    await ask(talker)
    say(gram, talker, "one answer")
    await ask(talker)
    assert table.messages([talker]) == table.Count(
        2, 1, 1, 0, (f"Ada: 'hello' ({talker.said[1].id}): no answer",)
    )
    say(gram, talker, "an answer")
    say(gram, talker, "the same answer")
    say(gram, talker, "⏰ ring-0")
    assert table.messages([talker]) == table.Count(2, 2, 0, 1, ("Ada: 1 more than asked",))
    talker.reader.pressed = 1  # then a second copy was asked for
    assert table.messages([talker]) == table.Count(2, 2, 0, 0, ())


async def test_a_reminder_is_lost_or_doubled_by_its_word(gram: Localgram, talker: Talker) -> None:
    jobs = Jobs(None, [talker], Random(1), [(talker, "ring-1"), (talker, "ring-2")])  # type: ignore[arg-type]
    for text in ("⏰ ring-1", "⏰ Missed once while I was off: ring-1", "⏰ ring-12"):
        say(gram, talker, text)
    assert table.reminders(jobs) == table.Count(
        2, 1, 1, 1, ("Ada: ring-2 never came", "ring-1 came 2 times")
    )


async def test_texts_that_wait_or_are_in_doubt_untold_are_unsettled(tmp_path: Path) -> None:
    async with open_store(tmp_path / "v.db") as store:
        outbox = store.outbox
        delivered, waiting, untold, told = await outbox.add("tg:1", ["{}"] * 4)
        await outbox.delivered(delivered, ["1"])
        await outbox.postponed(waiting, 0, "no network")
        await outbox.uncertain(untold, "timed out")
        await outbox.uncertain(told, "timed out")
        await outbox.notice_sent(told, "2")
        found = table.books(tmp_path / "v.db")
    assert found.uncertain == 2
    assert found.unsettled == [
        f"tg:1: text {waiting} is waiting, attempts 0, last error 'no network'",
        f"tg:1: text {untold} is uncertain, attempts 0, last error 'timed out'",
    ]


async def test_a_line_that_is_cut_refuses_and_one_that_is_silent_holds_back(
    gram: Localgram,
) -> None:
    async def call(line: Line) -> int:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{line.url}/bot{TOKEN}/getMe") as answer,
        ):
            return answer.status

    async with Line(gram.port) as line:
        assert await call(line) == 200
        await line.cut()
        with pytest.raises(aiohttp.ClientConnectorError):
            await call(line)
        await line.mend()
        line.hush()
        waiting = asyncio.create_task(call(line))
        done, _ = await asyncio.wait([waiting], timeout=0.3)
        assert not done
        line.speak()
        assert await waiting == 200


def test_the_clock_of_a_process_jumps_and_ours_does_not(tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    if clock.missing:
        pytest.skip(clock.missing)
    clock.set(-3600)
    told = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        env=clock.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert 3500 < time.time() - float(told.stdout) < 3700
