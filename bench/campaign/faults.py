"""What goes wrong. Each fault lasts for `seconds` and is over when its function returns.

A function returns False when there was nothing to strike just then.
"""

import asyncio
import os
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from random import Random

from bench.campaign.whole import Whole
from bench.service import Service
from fakes.localgram_faults import Kind

Fault = Callable[[Whole, float], Awaitable[bool]]
HOUR = 3600.0
SHARE = 0.6  # of the calls, while a fault of the wire lasts


def _killed(service: Callable[[Whole], Service]) -> Fault:
    async def strike(whole: Whole, _seconds: float) -> bool:
        return service(whole).kill()

    return strike


async def _server_killed(whole: Whole, _seconds: float) -> bool:
    return _signalled(await whole.server(), signal.SIGKILL)


async def _server_wedged(whole: Whole, seconds: float) -> bool:
    pid = await whole.server()
    if not _signalled(pid, signal.SIGSTOP):
        return False
    try:
        await asyncio.sleep(2 * seconds)
    finally:
        _signalled(pid, signal.SIGCONT)
    return True


def _signalled(pid: int | None, number: signal.Signals) -> bool:
    with suppress(ProcessLookupError):
        if pid:
            os.kill(pid, number)
            return True
    return False


async def _disk_full(whole: Whole, seconds: float) -> bool:
    try:
        for _ in range(max(1, int(seconds / 0.2))):
            whole.disk.fill()
            await asyncio.sleep(0.2)
    finally:
        whole.disk.empty()
    return True


async def _clock_jumps(whole: Whole, seconds: float) -> bool:
    async with whole.clock.still:
        whole.clock.set(whole.chance.uniform(-HOUR, HOUR))
        try:
            await asyncio.sleep(seconds)
        finally:
            whole.clock.set(0)
    return True


async def _locked(whole: Whole, seconds: float) -> bool:
    """Another process has begun to write and does not come to its end."""
    with closing(sqlite3.connect(whole.database, isolation_level=None, timeout=0)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        await asyncio.sleep(seconds)
    return True


async def _refused(whole: Whole, seconds: float) -> bool:
    await whole.line.cut()
    try:
        await asyncio.sleep(seconds)
    finally:
        await whole.line.mend()
    return True


async def _silent(whole: Whole, seconds: float) -> bool:
    whole.line.hush()
    try:
        await asyncio.sleep(3 * seconds)
    finally:
        whole.line.speak()
    return True


def _calls(kind: Kind) -> Fault:
    async def strike(whole: Whole, seconds: float) -> bool:
        with _misbehaving(whole, kind):
            await asyncio.sleep(seconds)
        return True

    return strike


@contextmanager
def _misbehaving(whole: Whole, kind: Kind) -> Iterator[None]:
    fault = whole.gram.fault("*", kind, times=None, seconds=1.0, rate=SHARE)
    fault.chance = whole.chance
    try:
        yield
    finally:
        whole.gram.faults.list.remove(fault)


PROCESSES: Mapping[str, Fault] = {
    "bot killed": _killed(lambda whole: whole.bot),
    "backend killed": _killed(lambda whole: whole.backend),
    "llama-server killed": _server_killed,
    "llama-server wedged (SIGSTOP)": _server_wedged,
}
SURROUNDINGS: Mapping[str, Fault] = {
    "disk full": _disk_full,
    "clock jumped, up to an hour": _clock_jumps,
    "database locked": _locked,
    "network: refused": _refused,
    "network: silent": _silent,
    "Telegram: 429 storm": _calls("flood"),
    "Telegram: 502": _calls("bad_gateway"),
    "Telegram: cut before a call": _calls("drop"),
    "Telegram: cut after a call": _calls("execute_then_drop"),
}


def missing(whole: Whole) -> dict[str, str]:
    """The faults that cannot be injected here, and why."""
    why = {"disk full": whole.disk.missing, "clock jumped, up to an hour": whole.clock.missing}
    return {name: reason for name, reason in why.items() if reason}


def deck(faults: Mapping[str, Fault], chance: Random) -> Iterator[tuple[str, Fault]]:
    """Without end, unless it is empty; each comes once before any comes again."""
    while faults:
        names = list(faults)
        chance.shuffle(names)
        yield from ((name, faults[name]) for name in names)
