"""The bot's own process stands still, as after a sleep of the machine, while it is idle and in mid-answer."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from fakes.bot_process import Process
from fakes.bot_running import OWNER
from fakes.localgram import Localgram, is_final
from fakes.model_scripted import ModelServer, says
from fakes.patience import SECONDS, soon, within

WAKING = 10.0  # seconds


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        pytest.param(False, 3.0, marks=pytest.mark.slow),
        (True, 3.0),
        pytest.param(False, 40.0, marks=pytest.mark.slow, id="longer than a poll"),
        pytest.param(True, 130.0, marks=pytest.mark.slow, id="longer than a model's silence"),
    ],
)
async def test_what_was_written_before_and_meanwhile_is_answered_once_it_wakes(
    gram: Localgram, tmp_path: Path, asked: bool, seconds: float
) -> None:
    person = gram.user("Olga Owner", id=OWNER, started=True)
    more = asyncio.Event()
    async with ModelServer(says("The answer.", hold=more.wait)) as model:
        process = Process(gram, tmp_path, model.url, OWNER)
        async with process.running():
            if asked:
                await person.send("first")
                await asyncio.wait_for(model.asked.wait(), SECONDS)
            else:
                await soon(lambda: gram.world.updates.polls > 1)
            os.killpg(process.pid, signal.SIGSTOP)
            try:
                await person.send("second")
                more.set()
                await asyncio.sleep(seconds)
            finally:
                os.killpg(process.pid, signal.SIGCONT)
            with within(WAKING):
                for _ in range(1 + asked):
                    await person.next_message(where=is_final)
            await process.stop()
        answers = [m.text for m in person.messages() if m.sender.is_bot and is_final(m)]
    assert answers == ["The answer."] * (1 + asked)
