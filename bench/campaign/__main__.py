"""Faults of every kind at random against the running whole: `make campaign`.

    python -m bench.campaign [--minutes 20] [--chats 6] [--seed 1]
        [--only WORDS] [--keep FOLDER]

`voltaire backend` with the embedded server and Pocket and `voltaire bot` run as
systemd would keep them, against the local Bot API server. People in private
chats and groups ask one thing after the other, the command line plans reminders,
and meanwhile processes are killed, the disk fills, the clock jumps, the network
goes away. Prints one table; exit code 1 when anything was lost or doubled.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.campaign import table
from bench.campaign.faults import PROCESSES, SURROUNDINGS, Fault, deck, missing
from bench.campaign.people import Jobs, Talker, Terminal
from bench.campaign.whole import Whole, uid, whole
from bench.reader import Reader
from fakes.small_disk import Disk

LEAST_SECONDS = 40.0  # of faults, in the shortest campaign
SETTLE_SECONDS = 150.0  # at most, after the last fault
PAUSE_SECONDS = 2.0  # between two faults of the surroundings, on average; of processes twice that
TRIES = 8  # of a fault that finds nothing to strike
CALM_SECONDS = 4.0  # in which a second copy would come
LONG_SECONDS = 240.0  # a campaign that long has faults of a longer kind, too


@dataclass(frozen=True)
class Course:
    """How long, with how many private chats, and which faults: those with `only` in their name."""

    minutes: float
    chats: int
    seed: int
    only: str

    @property
    def seconds(self) -> float:
        """Of faults; what is left of the minutes is for what they delayed."""
        return max(LEAST_SECONDS, 60 * self.minutes - SETTLE_SECONDS)

    def here(self, it: Whole, faults: Mapping[str, Fault]) -> dict[str, Fault]:
        skipped = missing(it)
        return {
            name: fault
            for name, fault in faults.items()
            if name not in skipped and self.only in name
        }


async def campaign(home: Path, disk: Disk, course: Course) -> table.Outcome:
    began, seed = time.monotonic(), course.seed
    async with whole(home, disk, course.chats, Random(seed)) as it:
        talkers = [
            Talker(Reader(person, chat), Random(f"{seed} {chat.id}")) for person, chat in it.places
        ]
        jobs = Jobs(it, talkers, Random(f"{seed} jobs"))
        terminal = Terminal(it, Random(f"{seed} terminal"))
        start = _memory(it)
        injected = await _under_faults(it, talkers, jobs, terminal, course)
        await jobs.arrived(SETTLE_SECONDS)
        await _outbox_settled(it)
        await asyncio.sleep(CALM_SECONDS)
        end = _memory(it)
    shutil.copy(it.database, home)
    readers = [talker.reader for talker in talkers]
    return table.Outcome(
        seconds=time.monotonic() - began,
        injected=injected,
        skipped=missing(it),
        messages=table.messages(talkers),
        reminders=table.reminders(jobs),
        terminal=terminal,
        notices=sum(reader.notices for reader in readers),
        pressed=sum(reader.pressed for reader in readers),
        books=table.books(it.database),
        silence=max(talker.silence for talker in talkers),
        lives={"backend": it.backend.lives, "bot": it.bot.lives},
        start=start,
        end=end,
        left=it.left(),
    )


async def _outbox_settled(it: Whole) -> None:
    """Wait for what nobody asked for, such as alerts: the pause after failed sends is up to a minute."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while table.books(it.database).unsettled and time.monotonic() < deadline:
        await asyncio.sleep(0.5)


def _memory(it: Whole) -> table.Memory:
    return {"backend": it.backend.resident_mib(), "bot": it.bot.resident_mib()}


async def _under_faults(
    it: Whole, talkers: list[Talker], jobs: Jobs, terminal: Terminal, course: Course
) -> "Counter[str]":
    """Everybody talks while it goes wrong, and gets their last answer when it no longer does."""
    over = asyncio.Event()
    injected: Counter[str] = Counter()
    async with asyncio.TaskGroup() as group:
        for talker in talkers:
            group.create_task(talker.talk(over, SETTLE_SECONDS))
        group.create_task(jobs.plan(over))
        group.create_task(terminal.talk(over))
        await asyncio.gather(
            _inject(it, PROCESSES, 2 * PAUSE_SECONDS, course, injected),
            _inject(it, SURROUNDINGS, PAUSE_SECONDS, course, injected),
        )
        over.set()
    return injected


async def _inject(
    it: Whole,
    faults: Mapping[str, Fault],
    pause: float,
    course: Course,
    injected: "Counter[str]",
) -> None:
    """One after the other, with that many seconds between two on average."""
    began, chance = time.monotonic(), Random(f"{course.seed} {pause}")
    for name, fault in deck(course.here(it, faults), chance):
        await asyncio.sleep(chance.uniform(0.5, 2 * pause))
        if time.monotonic() - began > course.seconds:
            return
        if await _struck(it, fault, _length(course.seconds, chance)):
            injected[name] += 1
            print(f"{time.monotonic() - began:7.1f} s  {name}", file=sys.stderr, flush=True)


async def _struck(it: Whole, fault: Fault, seconds: float) -> bool:
    """A fault that finds nothing to strike, as a process between two lives, tries again."""
    for _ in range(TRIES):
        if await fault(it, seconds):
            return True
        await asyncio.sleep(1.0)
    return False


def _length(seconds: float, chance: Random) -> float:
    rare = seconds > LONG_SECONDS and chance.random() < 0.15
    return chance.uniform(1.0, 3.5) * (4 if rare else 1)


@contextmanager
def _home(keep: Path | None) -> Iterator[Path]:
    if keep:
        keep.mkdir(parents=True)
        yield keep
        return
    folder = Path(tempfile.mkdtemp(prefix="vc-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=20.0, help="at most; the least is about 1")
    parser.add_argument("--chats", type=int, default=6, help="private ones, beside two groups")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="faults with these words in their name")
    parser.add_argument("--keep", type=Path, help="a new folder in which logs and state stay")
    given = parser.parse_args()
    with _home(given.keep) as home:
        disk = Disk(home / "s")
        course = Course(given.minutes, given.chats, given.seed, given.only)
        outcome = asyncio.run(campaign(home, disk, course))
    print(f"{outcome.seconds:.0f} s, seed {given.seed}, as {uid()}\n")
    print(outcome.text())
    sys.exit(bool(outcome.wrong))


if __name__ == "__main__":
    main()
