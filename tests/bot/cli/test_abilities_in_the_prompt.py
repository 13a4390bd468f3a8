"""What web, documents, skills, mail, calendar, MCP servers, what `voltaire import` took in, pictures and voice cost a plain turn: no byte of its prompt, and no
module to load."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rs_bpe.bpe import openai

from agent.skills import SkillShelf, read_skill
from fakes.model_scripted import ModelServer, calls, says
from fakes.patience import SECONDS

SKILLS = Path(__file__).parents[3] / "examples/skills"
ALL = """
[agent.web]
search = "brave"
search_key_file = "/nowhere/key"
render = true
[agent.documents]
handbook = "{shelf}"
[agent.mcp.clock]
command = ["mcp-server-time"]
[agent.mcp.pages]
url = "https://tools.example/mcp"
[agent.mail.work]
imap = "imaps://mail.example"
user = "anna"
password_file = "/nonexistent"
[agent.calendar.home]
url = "https://cloud.example/dav/"
user = "anna"
password_file = "/nonexistent"
remind = "own"
"""


# What a turn loads is told when its process ends.
VOLTAIRE = """
import atexit, sys
atexit.register(lambda: print("loaded", *sorted(sys.modules)))
from bot.cli import main
main()
"""
UNUSED = (
    "agent.calendar.accounts",
    "agent.calendar.client",
    "agent.calendar.reminders",
    "agent.documents",
    "agent.mail",
    "agent.mcp",
    "agent.pictures",
    "agent.voice",
    "agent.web.chromium",
    "agent.web.search_services",
    "bot.voice",
    "PIL",
    "caldav",
    "icalendar",
)


async def first_request(home: Path, chat: str, more: str = "") -> dict[str, Any]:
    """What one turn of a chat sends, with further configuration."""
    async with ModelServer(calls("bash", command="cat /commands.txt"), says("Done.")) as server:
        config = home / "config.toml"
        config.write_text(
            f'[backend]\nkind = "external"\nurl = "{server.url}"\n[state]\ndir = "{home / "s"}"\n{more}'
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", VOLTAIRE),
            *("--config", str(config), "ask", "hello", "--chat", chat),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
        assert process.returncode == 0
        first, last = server.requests[0], server.requests[-1]
    return {"prefix": [first["messages"][0], first["tools"]], "listed": last["messages"][-1],
            "loaded": out.decode().rpartition("loaded ")[2].split()}  # fmt: skip


async def take_in(home: Path) -> None:
    """What `voltaire import` takes from another agent's home: a note and a skill."""
    old = home / "old" / "skills" / "taken-along"
    old.mkdir(parents=True)
    (old / "SKILL.md").write_text("---\nname: taken-along\ndescription: Makes tea.\n---\nBoil.\n")
    (home / "old" / "USER.md").write_text("Likes tea.")
    words = ("import", str(home / "old"), "--apply", "all", "--yes")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", VOLTAIRE, "--config", str(home / "config.toml"), *words),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    assert b"Taken: notes 1, jobs 0, skills 1." in out


async def test_everything_switched_on_costs_the_prompt_nothing(tmp_path: Path) -> None:
    plain = await first_request(tmp_path, "one")
    assert "agent.turn.loop" in plain["loaded"]
    assert [name for name in plain["loaded"] if name.startswith(UNUSED)] == []
    shelf = SkillShelf(tmp_path / "s")
    for folder in sorted(SKILLS.iterdir()):
        shelf.add(read_skill(folder))
    (tmp_path / "handbook").mkdir()
    await take_in(tmp_path)
    full = await first_request(tmp_path, "two", ALL.format(shelf=tmp_path / "handbook"))
    # All of it is there, in a file that the model reads when it lacks a way.
    for named in (
        "web search",
        "web read",
        "docs",
        "mail list",
        "calendar add",
        "taken-along",
        "mcp",
        "release-notes",
        "log-triage",
        "backup-check",
    ):
        assert named in full["listed"]["content"]
    assert "web search" not in plain["listed"]["content"]
    # The same bytes in another chat and with all of it: 0 tokens more, of 60 that would be allowed.
    assert json.dumps(full["prefix"]) == json.dumps(plain["prefix"])
    system, tools = full["prefix"]
    compact = json.dumps(tools, separators=(",", ":"), ensure_ascii=False)
    count = openai.o200k_base()
    assert len(count.encode(system["content"])) + len(count.encode(compact)) <= 1500


@pytest.mark.slow
async def test_the_owners_instructions_end_the_system_text_of_every_chat(tmp_path: Path) -> None:
    orders = tmp_path / "orders.md"
    orders.write_text("Your name is Émilie.\nSay tu, never vous.\n", "utf-8")
    plain = await first_request(tmp_path, "one")
    more = f'[agent]\ninstructions = "{orders}"\n'
    first = await first_request(tmp_path, "two", more)
    (system, tools), (before, same_tools) = first["prefix"], plain["prefix"]
    ending = "\n\nYour name is Émilie.\nSay tu, never vous."
    assert (system["content"], tools) == (before["content"] + ending, same_tools)
