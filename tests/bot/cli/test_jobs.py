"""voltaire jobs: made in words, shown with the next times, and where its messages come."""

import asyncio
import json
from pathlib import Path

from agent.schedule.planner import NOTHING_RUNS
from agent.schedule.times.rule import date_words
from agent.store import open_store
from agent.timezones import local_time
from bot.state import DATABASE
from fakes.command_line import folders, own_environment, voltaire
from fakes.pseudo_terminal import typing_at
from fakes.words import saying


def test_a_job_says_where_its_messages_come(tmp_path: Path) -> None:
    words = ("jobs", "add", "--yes", "in 3 hours remind me of tea")
    made, waits = voltaire(tmp_path, *words)[1].splitlines()[-2:]
    assert made == f"Job 1 made. {NOTHING_RUNS}"
    assert waits == "Its messages wait for `voltaire chat --chat cli`."
    assert voltaire(tmp_path, *words, "--chat", "tg:1")[0] == 1, "nobody has that chat"
    asyncio.run(open_chat(tmp_path / "s" / "voltaire" / DATABASE, "tg:1"))
    app = voltaire(tmp_path, *words, "--chat", "tg:1")[1].splitlines()[-1]
    assert app == f"Job 2 made. {NOTHING_RUNS}"
    assert voltaire(tmp_path, "jobs", "rm", "1")[0] == 0
    none, other = voltaire(tmp_path, "jobs", "list")[1].splitlines()
    assert (none, other) == (saying("No jobs in cli"), saying("jobs list --chat tg:1"))


def test_a_watch_is_made_and_looks_at_once(tmp_path: Path) -> None:
    add = ("jobs", "add", "--yes", "every 10 minutes", "--watch")
    code, out, _ = voltaire(tmp_path, *add, "the news")
    assert code == 1 and "Job" not in out
    code, _, err = voltaire(tmp_path, *add[:3], "tomorrow at 9", "--watch", "folder build")
    assert (code, err[:34]) == (1, "A watch looks again and again: say")
    code, out, _ = voltaire(tmp_path, *add, "folder build")
    assert code == 0 and out.startswith("Watch “folder build”, every 10 minutes; next: ")
    [job] = json.loads(voltaire(tmp_path, "jobs", "list", "--json")[1])
    assert (job["kind"], job["task"], job["runs"][0]["state"]) == ("watch", "folder build", "due")


def test_a_job_that_is_declined_is_not_made(tmp_path: Path) -> None:
    code, out, _ = voltaire(tmp_path, "jobs", "add", "every day at 9 stretch", stdin="n\n")
    assert (code, out) == (1, saying("task “stretch”", "every day at 09:00", "next: "))
    assert voltaire(tmp_path, "jobs", "list")[1] == "No jobs in cli, the chat of this terminal.\n"


async def test_a_question_is_answered_on_the_terminal(tmp_path: Path) -> None:
    add = ("jobs", "add", "tomorrow at midnight buy milk")
    environment = {**own_environment(), **folders(tmp_path)}
    async with typing_at(add, environment) as terminal:
        await terminal.answer((", or .*\n.*in clearer words:", "tomorrow at 8:00 buy milk"))
        await terminal.answer(("Task “buy milk”.*\n.*Make this job.*:", "y"))
        assert await terminal.ended() == 0, terminal.output
    code, _, err = voltaire(tmp_path, *add)
    assert (code, ", or " in err) == (1, True), "nobody can be asked"


async def test_the_last_run_is_told_in_the_zone_of_the_chat(tmp_path: Path) -> None:
    config = '[agent]\ntimezone = "Asia/Tokyo"\n'
    words = ("jobs", "add", "--yes", "every day at 9 look")
    assert voltaire(tmp_path, *words, config=config)[0] == 0
    async with open_store(tmp_path / "s" / "voltaire" / DATABASE) as store:
        await store.occurrences.trigger(1, "")
        [run] = await store.occurrences.of_job(1, 1)
    at = date_words(local_time(run.due_at, "Asia/Tokyo"))
    out = voltaire(tmp_path, "jobs", "list", config=config)[1]
    assert f" [last {at}: {run.state}" in out


async def open_chat(database: Path, name: str) -> None:
    async with open_store(database) as store:
        await store.chats.open(name)
