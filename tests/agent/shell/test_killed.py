"""The bot is killed while a command is being answered."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from agent.turn.texts import INTERRUPTED
from fakes.patience import SECONDS


def life(state: Path, programs: Path, until: str) -> list[str]:
    """Run the bot until it prints that line, and kill it."""
    words = [sys.executable, "-m", "tests.agent.shell.child", str(state), str(programs)]
    bot = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    told: list[str] = []
    assert bot.stdout
    with bot.stdout:
        while not told or told[-1] not in (until, ""):
            told.append(bot.stdout.readline().strip())
        os.kill(bot.pid, signal.SIGKILL)
        bot.wait(SECONDS)
    return told


def test_the_model_is_told_that_the_command_was_interrupted(tmp_path: Path, ways: Path) -> None:
    tmp_path.chmod(0o755)
    assert life(tmp_path, ways, "ToolProgress")[-1] == "ToolProgress"  # "begun", of the command
    sockets = tmp_path / "state" / "sandbox" / "calls"
    (left,) = sockets.iterdir()
    os.utime(left, (0, 0))
    assert life(tmp_path, ways, "answered")[-1] == "answered"
    with closing(sqlite3.connect(tmp_path / "v.db")) as file:
        (reply,) = file.execute("SELECT payload FROM outbox").fetchall()
    assert INTERRUPTED in reply[0] and list(sockets.iterdir()) == []
