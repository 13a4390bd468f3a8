"""Nights in which the host sleeps, and clocks that are set: the bot's own process stands still and finds another time
of day, as after a suspend."""

import asyncio
import os
import signal
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest

from agent.schedule.times.rule import Calendar, Once, dump
from agent.store import open_store
from agent.store.jobs import JobSpec
from fakes.bot_process import Process
from fakes.bot_running import OWNER
from fakes.localgram import Localgram, Person, is_final
from fakes.model_scripted import ModelServer, says
from fakes.patience import SECONDS, soon

HOUR = 3600.0
NIGHT = 8 * HOUR
DAY = 24 * HOUR
ANSWER = "The answer."
CLOCK = """
import time
from pathlib import Path
_time, _get = time.time, time.clock_gettime
def offset(): return float(Path({path!r}).read_text())
time.time = lambda: _time() + offset()
time.clock_gettime = lambda which: _get(which) + (offset() if which == time.CLOCK_BOOTTIME else 0.0)
from agent.schedule.scheduler import Scheduler
Scheduler.__init__.__defaults__ = (0.2,)
"""


@dataclass
class Host:
    """A bot's process whose clocks are ahead by `offset` seconds."""

    process: Process
    path: Path
    offset: float = 0.0
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.process.first = CLOCK.format(path=str(self.path))
        self.set(self.offset)

    def set(self, offset: float) -> None:
        self.offset = offset
        new = self.path.with_suffix(".new")
        new.write_text(str(offset))
        new.replace(self.path)

    def sleep(self, seconds: float) -> None:
        """What stands still must not see its clock move; what it wakes to has moved at once."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        self.set(self.offset + seconds)

    def wake(self) -> None:
        os.killpg(self.process.pid, signal.SIGCONT)


def words(person: Person) -> list[str]:
    return [m.text for m in person.messages() if m.sender.is_bot and is_final(m)]


NIGHTS = {
    "nights": (0.0, [NIGHT, NIGHT, NIGHT]),
    "two ahead, and a night": (2 * HOUR, [-2 * HOUR, NIGHT]),
    "a night": (0.0, [NIGHT]),
    "days": (0.0, [3 * DAY]),
    "a month": (0.0, [40 * DAY, 60.0]),
    "set back": (0.0, [-HOUR]),
    "an hour ahead": (HOUR, [-HOUR]),
    "years ahead": (3650 * DAY, [-3650 * DAY]),
    "years behind": (-3650 * DAY, [3650 * DAY]),
    "an hour behind": (-HOUR, [HOUR]),
}
BY_DAY = ("nights", "two ahead, and a night")


@pytest.mark.parametrize(
    ("ahead", "nights"),
    [
        pytest.param(*each, id=name, marks=() if name in BY_DAY else pytest.mark.slow)
        for name, each in NIGHTS.items()
    ],
)
async def test_who_writes_before_meanwhile_and_after_is_answered_once(
    gram: Localgram, tmp_path: Path, ahead: float, nights: list[float]
) -> None:
    person = gram.user("Olga Owner", id=OWNER, started=True)
    async with ModelServer(*[says(ANSWER)] * (1 + 2 * len(nights))) as model:
        host = Host(Process(gram, tmp_path, model.url, OWNER), tmp_path / "offset", ahead)
        async with host.process.running():
            await soon(lambda: gram.world.updates.polls > 1)
            for number, seconds in enumerate(nights):
                host.sleep(seconds)
                await person.send(f"meanwhile {number}")
                host.wake()
                await asyncio.wait_for(person.next_message(where=is_final), SECONDS)
                await person.send(f"after {number}")
                await asyncio.wait_for(person.next_message(where=is_final), SECONDS)
            await host.process.stop()
    assert words(person) == [ANSWER] * 2 * len(nights)


async def test_what_is_written_after_a_clock_was_set_back_is_not_from_before_the_start(
    gram: Localgram, tmp_path: Path
) -> None:
    person = gram.user("Olga Owner", id=OWNER, started=True)
    async with ModelServer(*[says(ANSWER)] * 7) as model:
        host = Host(Process(gram, tmp_path, model.url, OWNER), tmp_path / "offset", HOUR)
        async with host.process.running():
            await soon(lambda: gram.world.updates.polls > 1)
            host.set(0.0)
            for number in range(7):
                await person.send(f"message {number}")
            for _ in range(7):
                await asyncio.wait_for(person.next_message(where=is_final), SECONDS)
            await host.process.stop()
    assert words(person) == [ANSWER] * 7


@pytest.mark.parametrize(
    ("catch_up", "told"),
    [
        pytest.param("once", ["⏰ tea"], marks=pytest.mark.slow),
        pytest.param("all", ["⏰ tea"] * 3, marks=pytest.mark.slow),
        ("missed", ["⏰ Missed 3 times while I was off: tea"]),
    ],
)
async def test_what_fell_due_in_three_nights_is_told_once(
    gram: Localgram, tmp_path: Path, catch_up: Literal["once", "all", "missed"], told: list[str]
) -> None:
    person = gram.user("Olga Owner", id=OWNER, started=True)
    minutes = (int(time.time()) // 60 - 60) % 1440  # an hour ago: late on each of the mornings
    rule = Calendar((minutes,), zone="UTC")
    await plan(tmp_path, dump(rule), catch_up, due_after(minutes))
    async with ModelServer() as model:
        host = Host(Process(gram, tmp_path, model.url, OWNER), tmp_path / "offset")
        async with host.process.running():
            await soon(lambda: gram.world.updates.polls > 1)
            host.sleep(3 * DAY)
            host.wake()
            for _ in told:
                await asyncio.wait_for(person.next_message(where=is_final), SECONDS)
            await host.process.stop()
    assert len(words(person)) == len(told)
    assert all(said.startswith(form) for said, form in zip(words(person), told, strict=True))


async def test_a_reminder_of_the_night_comes_in_the_morning_once(
    gram: Localgram, tmp_path: Path
) -> None:
    person = gram.user("Olga Owner", id=OWNER, started=True)
    due = int(time.time() + 2 * HOUR)
    await plan(tmp_path, dump(Once(datetime.fromtimestamp(due, UTC))), "once", due)
    async with ModelServer() as model:
        host = Host(Process(gram, tmp_path, model.url, OWNER), tmp_path / "offset")
        async with host.process.running():
            await soon(lambda: gram.world.updates.polls > 1)
            for seconds in (NIGHT, -NIGHT, NIGHT):
                host.sleep(seconds)
                host.wake()
                if seconds > 0 and not words(person):
                    await asyncio.wait_for(person.next_message(where=is_final), SECONDS)
            await host.process.stop()
    assert words(person) == ["⏰ tea"]


def due_after(minutes: int) -> int:
    """The next time, in seconds since the epoch, at which it is that many minutes after midnight in UTC."""
    now = int(time.time())
    today = now - now % int(DAY) + 60 * minutes
    return today if today > now else today + int(DAY)


async def plan(
    folder: Path, timing: dict[str, object], catch_up: Literal["once", "all", "missed"], at: int
) -> None:
    async with open_store(folder / "voltaire.db") as store:
        chat = f"tg:{OWNER}"
        await store.jobs.add(
            JobSpec(chat, "remind", "", timing, "UTC", "tea", {}, catch_up, next_at=at)
        )
