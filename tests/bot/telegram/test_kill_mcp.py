"""SIGKILL in the middle of a call of an MCP server: to the server, to the bot, to both. The call is not made again, and
the model is told."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from agent.turn.texts import INTERRUPTED
from fakes.model_scripted import Json, Line
from fakes.obedient_bot import ObedientBot, obedient_bot
from fakes.obedient_chat import order
from fakes.patience import soon

ENDED = "tea ended in the middle. It was not asked twice"
VICTIMS = [
    pytest.param(True, False, ENDED, id="the server", marks=pytest.mark.slow),
    pytest.param(False, True, INTERRUPTED, id="the bot", marks=pytest.mark.slow),
    pytest.param(True, True, INTERRUPTED, id="both", marks=pytest.mark.slow),
]


def calls(bot: ObedientBot) -> list[str]:
    """What the server was called with."""
    path = bot.server_folder.with_name("work") / "calls"
    return path.read_text().splitlines() if path.exists() else []


def server_processes(bot_pid: int) -> list[int]:
    """The server's program, below the bot."""
    parents: dict[int, int] = {}
    programs: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            if (entry / "cmdline").read_bytes().startswith(b"python3\0/program/server.py\0"):
                programs.append(int(entry.name))
        except OSError:
            continue  # it has just ended
        parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])

    def below(pid: int) -> bool:
        return pid == bot_pid or (pid in parents and below(parents[pid]))

    return [pid for pid in programs if below(pid)]


@pytest.mark.parametrize(("server", "program", "told"), VICTIMS)
async def test_no_call_is_made_twice(
    tmp_path: Path, server: bool, program: bool, told: str
) -> None:
    async with obedient_bot(tmp_path, 1, owner="allows everything") as bot:
        person, read, script = bot.people[0], [""], bot.script

        def reading(request: Json) -> Line:
            read.append(json.dumps(request["messages"]))
            return script(request)

        bot.script = reading  # type: ignore[method-assign]
        await bot.say(person, order("bash", '{"command": "mcp tea"}'))
        await person.send(order("bash", '{"command": "mcp tea hang"}'))
        answering = asyncio.create_task(bot.answered(person))
        await soon(lambda: calls(bot) == ["hang {}"])
        (pid,) = server_processes(bot.process.pid)
        if server and program:
            os.kill(
                bot.process.pid, signal.SIGSTOP
            )  # else it may take in the server's end before its own
        if server:
            os.kill(pid, signal.SIGKILL)
        if program:
            await bot.restart()
        await answering
        assert calls(bot) == ["hang {}"]
        assert json.dumps(told)[1:-1] in read[-1]
        await soon(lambda: not Path(f"/proc/{pid}/exe").exists())
        await bot.say(person, order("bash", '{"command": "mcp tea say text=again"}'))
        assert calls(bot) == ["hang {}", 'say {"text": "again"}']
