import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from fakes.patience import SECONDS
from tests.agent.chats.child import MESSAGES, STEPS

KILLS = 4


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_killed_anywhere_every_message_is_answered_once_and_no_finished_step_runs_again(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    path, log = tmp_path / "v.db", tmp_path / "marks"
    finished: list[str] = []
    for _ in range(KILLS):
        finished = life(path, log, dice.randint(6, 40))
    if "all answered\n" not in finished:
        finished = life(path, log, None)
    assert finished[-1] == "all answered\n"
    with closing(sqlite3.connect(path)) as file:
        sent = [
            json.loads(row[0]) for row in file.execute("SELECT payload FROM outbox ORDER BY id")
        ]
        open_rows = file.execute("SELECT count(*) FROM inbox WHERE state <> 'done'").fetchone()[0]
        done = {
            row[0]
            for row in file.execute(
                "SELECT json_extract(extra, '$.call') FROM transcript WHERE role = 'tool' AND text = 'marked'"
            )
        }
        assert file.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert sorted(sent) == sorted(f"answer {number}" for number in range(MESSAGES))
    assert open_rows == 0
    marks = Counter(log.read_text().split())
    assert done <= set(marks)
    assert max(marks[step] for step in done) == 1, marks
    assert sum(marks.values()) <= MESSAGES * STEPS + KILLS


def life(path: Path, log: Path, lines: int | None) -> list[str]:
    """Run the bot until it has printed so many lines, and kill it; None: until it is done."""
    bot = subprocess.Popen(
        [sys.executable, "-m", "tests.agent.chats.child", str(path), str(log)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert bot.stdout
    with bot.stdout:
        told = (
            bot.stdout.readlines()
            if lines is None
            else [bot.stdout.readline() for _ in range(lines)]
        )
        if lines is not None:
            os.kill(bot.pid, signal.SIGKILL)
        bot.wait(SECONDS)
    return [line for line in told if line]
