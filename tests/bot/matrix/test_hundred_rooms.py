"""A hundred rooms and two thousand messages through a homeserver that fails: all answered once, in order.

`pytest -s -m slow tests/bot/matrix/test_hundred_rooms.py` prints memory and milliseconds.
"""

import asyncio
import random
import re
import statistics
import time
from pathlib import Path
from typing import Any, cast

import pytest
from nio import RoomMessageText

from bot.localgram import Localgram, is_final
from fakes.bot_process import Process
from fakes.homeserver_proxy import HomeserverProxy, homeserver_proxy
from fakes.matrix_person import MatrixPerson
from fakes.model_scripted import Json, Line, ModelServer, says
from fakes.patience import soon
from fakes.synapse import PASSWORD, Synapse

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
ROOMS, ROUNDS, ENCRYPTED = 100, 20, 20
FAULTS = 0.05
ALONE = 30  # messages over Telegram, for the memory
QUIET = 30  # messages one after the other, for the milliseconds
MOST_MIB = 30.0


class Clockwork:
    """When a message left the homeserver, and when the model was asked, by the message's text."""

    def __init__(self) -> None:
        self.left: dict[str, float] = {}
        self.asked: dict[str, float] = {}

    def script(self, request: Json) -> Line:
        (text,) = re.findall(r"room \d+ message \d+", str(request["messages"][-1]["content"]))[-1:]
        self.asked.setdefault(text, time.perf_counter())
        return says(f"Answer to {text}.", size=1000)

    def synced(self, answer: Any) -> Any:
        for text in re.findall(r"room \d+ message \d+", str(answer)):
            self.left.setdefault(text, time.perf_counter())
        return answer

    def milliseconds(self) -> list[float]:
        return [1000 * (self.asked[t] - self.left[t]) for t in self.left if t in self.asked]


def fail_now_and_then(proxy: HomeserverProxy, chance: random.Random) -> None:
    """Of the bot's requests one in twenty: an error, a lost or half an answer, or 429."""
    slow = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too many", "retry_after_ms": 100}
    kinds: list[dict[str, Any]] = [
        {"act": "refuse", "body": "<html>"},
        {"act": "lose"},
        {"act": "halve"},
        {"act": "refuse", "status": 429, "body": slow},
    ]

    def strikes() -> dict[str, Any] | None:
        return chance.choice(kinds) if chance.random() < FAULTS else None

    proxy.chance = strikes


async def test_a_hundred_rooms(server: Synapse, olga: MatrixPerson, tmp_path: Path) -> None:
    account = await server.account("voltaire")
    (tmp_path / "password").write_text(PASSWORD)
    async with (
        Localgram("4242:secret") as gram,
        ModelServer() as model,
        homeserver_proxy(server.url) as proxy,
    ):
        model.script = lambda request: says("Hello.")
        phone = gram.user("Olga", id=111, started=True)
        process = Process(gram, tmp_path, model.url, 111)
        process.first = "# a new interpreter: its memory is measured"
        clockwork = Clockwork()
        async with process.running():
            for number in range(ALONE):
                await phone.send(f"hi {number}")
                await phone.next_message(where=is_final)
            alone = process.peak_mib()
            await process.stop()
        process.configure(
            MATRIX__HOMESERVER=proxy.url,
            MATRIX__USER=account,
            MATRIX__PASSWORD_FILE=str(tmp_path / "password"),
            MATRIX__OWNERS=olga.id,
        )
        model.script = clockwork.script
        async with process.running():
            rooms = [
                await olga.room_with(account, encrypted=number < ENCRYPTED)
                for number in range(ROOMS)
            ]
            answers = Answers(olga)
            quiet = proxy.rule(r"GET .*/sync", "change", times=10**9, change=clockwork.synced)
            for number in range(QUIET):
                await answers.to(rooms[-1], 1000, number)
            quiet.times = 0
            took = clockwork.milliseconds()
            print(
                f"\nupdate to request: median {statistics.median(took):.1f} ms,"
                f" worst of {len(took)} {max(took):.1f} ms",
                flush=True,
            )
            fail_now_and_then(proxy, random.Random(7))
            began = time.monotonic()
            cpu = process.cpu_seconds()
            async with asyncio.TaskGroup() as group:
                for number, room in enumerate(rooms):
                    group.create_task(answers.conversation(room, number))
            seconds = time.monotonic() - began
            cpu = process.cpu_seconds() - cpu
            proxy.chance = lambda: None
            await soon(
                lambda: (
                    process._value("SELECT count(*) FROM outbox WHERE state <> 'delivered'") == 0
                )
            )
            both = process.peak_mib()
            await process.stop()
    print(
        f"\n{ROOMS} rooms ({ENCRYPTED} encrypted), {ROOMS * ROUNDS} messages, {FAULTS:.0%} of"
        f" {len(proxy.requests)} requests failing: {seconds:.0f} s,"
        f" {1000 * cpu / (ROOMS * ROUNDS):.0f} ms of the bot's processor each;"
        f" peak {both} MiB, Telegram alone {alone} MiB"
    )
    for number, room in enumerate(rooms):
        found = [text for text in olga.finals(room) if f"room {number} " in text]
        assert found == [f"Answer to room {number} message {n}." for n in range(ROUNDS)]
    assert both - alone < MOST_MIB


class Answers:
    """What the person waits for, by its text."""

    def __init__(self, olga: MatrixPerson) -> None:
        self._olga = olga
        self._awaited: dict[str, asyncio.Event] = {}
        self.ended = 0
        olga.client.add_event_callback(cast(Any, self._take), RoomMessageText)

    async def _take(self, _: Any, event: RoomMessageText) -> None:
        if event.body in self._awaited:
            self._awaited[event.body].set()

    async def conversation(self, room: str, number: int) -> None:
        for n in range(ROUNDS):
            await self.to(room, number, n)
        self.ended += 1
        print(f"{self.ended} of {ROOMS} rooms", flush=True)

    async def to(self, room: str, number: int, n: int) -> None:
        """Ask, and wait for the answer."""
        text = f"room {number} message {n}"
        here = self._awaited[f"Answer to {text}."] = asyncio.Event()
        await self._olga.say(room, text)
        await asyncio.wait_for(here.wait(), 600)
