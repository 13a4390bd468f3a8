"""voltaire status: what work between turns costs."""

import json
import os
import re
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.schedule.times.rule import date_words
from backend.client import BackendClient
from backend.protocol import Phrase
from backend.state import RESTARTS, RestartHistory
from bot.cli.status import SHOWN_RESTARTS, idle_lines
from bot.commands.status import backend_lines
from fakes.command_line import voltaire, voltaire_beside
from fakes.page_state import backend_with_card, seem_running


def test_restarts_are_named_with_times_and_causes(tmp_path: Path) -> None:
    history = RestartHistory(tmp_path / "s" / "voltaire" / RESTARTS)
    history.path.parent.mkdir(0o700, parents=True)
    added = [history.add(Phrase(f"Cause {number}.")) for number in range(SHOWN_RESTARTS + 1)]
    zone = "Asia/Tokyo"
    code, out, _ = voltaire(tmp_path, "status", config=f'[agent]\ntimezone = "{zone}"\n')
    times = [date_words(each.at.astimezone(ZoneInfo(zone))) for each in added[1:]]
    wanted = [f"  {at}  {each.cause}" for at, each in zip(times, added[1:], strict=True)]
    lines = out.splitlines()
    assert code == 0 and [line for line in lines if "Cause" in line] == wanted


async def test_what_prompts_from_the_disk_have_saved_is_told(tmp_path: Path) -> None:
    socket = tmp_path / "b.sock"
    async with backend_with_card(socket), BackendClient(socket) as backend:
        config = f'[backend]\nsocket = "{socket}"\n'
        code, out, _ = await voltaire_beside(tmp_path, "status", config=config)
        shown = backend_lines(await backend.status())
    terminal = "prompts from the disk: 3, 12,400 tokens not read again, 14 s saved"
    assert code == 0 and terminal in out.splitlines()
    assert "prompts from the disk: 3, 14 s of reading saved" in shown


async def test_the_memory_of_one_process_is_told_once(tmp_path: Path) -> None:
    """`voltaire run` holds bot and backend, and its memory was told of each."""
    socket = tmp_path / "b.sock"
    seem_running(tmp_path / "s" / "voltaire")
    async with backend_with_card(socket) as backend:
        config = f'[backend]\nsocket = "{socket}"\n'
        _, apart, _ = await voltaire_beside(tmp_path, "status", config=config)
        backend.pid = os.getpid()
        _, together, _ = await voltaire_beside(tmp_path, "status", config=config)
        _, found, _ = await voltaire_beside(tmp_path, "status", "--json", config=config)
    own, told = r"\d+ MiB", json.loads(found)["memory_mib"]
    assert re.search(f"^memory: bot {own}, backend 58 MiB, server 1900 MiB$", apart, re.MULTILINE)
    assert re.search(f"^memory: bot and backend {own}, server 1900 MiB$", together, re.MULTILINE)
    assert told == {"bot": told["bot"], "backend": None, "server": 1900} and told["bot"] > 0


def test_what_nobody_tells_is_not_known(tmp_path: Path) -> None:
    code, out, _ = voltaire(tmp_path, "status", "--json")
    assert (code, json.loads(out)["idle"]) == (0, {"tokens": 0, "seconds": None, "wh": None})


def test_what_was_done_between_turns_is_one_line() -> None:
    (line,) = idle_lines({"tokens": 12345, "seconds": 3.21, "wh": 0.456})
    assert all(word in line for word in ("12,345 tokens", "3.2 s", "0.46 Wh"))
    (line,) = idle_lines({"tokens": 12345, "seconds": 3.21, "wh": None})
    assert "Wh" not in line
    assert idle_lines({"tokens": 0, "seconds": 0, "wh": None}) == []
