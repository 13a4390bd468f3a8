"""voltaire model try: the record against another model; nothing runs, nothing is written."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent.evaluate.rehearsal import Rehearsed
from agent.store.turns import RecordedTurn
from bot.cli.rehearsal import print_table
from fakes.command_line import voltaire_beside as voltaire
from fakes.gguf_chain import make_chain
from fakes.model_scripted import Json, Line, ModelServer, calls, says


def rows(home: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that the database holds, but for what an opening of it notes of itself."""
    with closing(sqlite3.connect(home / "s" / "voltaire" / "voltaire.db")) as database:
        tables = ("turns", "transcript", "inbox", "outbox", "tool_runs", "usage", "jobs", "notes")
        return {table: database.execute(f"SELECT * FROM {table}").fetchall() for table in tables}


def prefix_of(requests: list[Json]) -> tuple[object, ...]:
    return requests[0]["messages"][0], requests[0]["tools"]


def results(request: Json) -> list[str]:
    return [each["content"] for each in request["messages"] if each["role"] == "tool"]


async def tried(tmp_path: Path, script: Any, *words: str) -> tuple[dict[str, Any], list[Json]]:
    """A turn by a model that appends to a file, then rehearsed with a model that follows `script`."""

    def first(request: Json) -> Line:
        if results(request):
            return says("Done.")
        return calls("bash", command="echo ran >> runs.txt; cat runs.txt")

    async with ModelServer(script=first) as model:
        config = f'[backend]\nkind = "external"\nurl = "{model.url}"\n'
        code, _, err = await voltaire(tmp_path, "ask", "run it", config=config)
        assert code == 0, err
        before, prefix = rows(tmp_path), prefix_of(model.requests)
        model.script = script
        model.requests.clear()
        code, out, err = await voltaire(tmp_path, "model", "try", "--json", *words, config=config)
        assert code == 0, err
        assert rows(tmp_path) == before
        assert prefix_of(model.requests) == prefix, "it reads what it would in the chat"
        (runs,) = tmp_path.glob("s/voltaire/chats/**/runs.txt")
        assert runs.read_text() == "ran\n", "nothing was executed"
        return json.loads(out), model.requests


COUNTS = ("recorded", "same", "calls", "broken", "looped", "failed", "watt_hours")


def counts(found: dict[str, Any]) -> tuple[object, ...]:
    return tuple(found["all"][name] for name in COUNTS)


async def test_the_same_call_gets_the_result_on_record(tmp_path: Path) -> None:
    def script(request: Json) -> Line:
        if given := results(request):
            return says(f"It printed {given[-1]}")
        return calls("bash", command="echo ran >> runs.txt; cat runs.txt")

    found, requests = await tried(tmp_path, script)
    assert counts(found) == (1, 1, 1, 0, 0, 0, None)
    [turn] = found["turns"]
    assert (turn["reason"], turn["now"][-1]) == ("done", "It printed ran")
    assert turn["then"][0] == turn["now"][0] and turn["then"][-1] == "Done."
    assert results(requests[-1]) == ["ran"]


async def test_a_call_beyond_the_record_and_a_broken_one_are_told_so(tmp_path: Path) -> None:
    def script(request: Json) -> Line:
        match len(results(request)):
            case 0:
                return calls("list_files", pattern="*")
            case 1:
                return calls("bash", nonsense="x")
        return says("Done.")

    found, requests = await tried(tmp_path, script)
    assert counts(found) == (1, 0, 1, 1, 0, 0, None)
    assert "not on record" in results(requests[1])[0]


async def test_a_model_in_a_circle_is_counted(tmp_path: Path) -> None:
    def script(request: Json) -> Line:
        return calls("bash", command="echo ran >> runs.txt; cat runs.txt")

    found, _ = await tried(tmp_path, script)
    assert (found["all"]["looped"], found["all"]["same"]) == (1, 1)


def test_the_row_of_a_turn_that_went_in_a_circle_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    turn = RecordedTurn("t1", "cli", 0.0, "done", (), ())
    found = Rehearsed("t1", (), (), 2, 1, 3, 1, True, "done", 4.5, 10.0, 0.25, None)
    print_table("", [found], [turn])
    row = next(line for line in capsys.readouterr().out.splitlines() if "1 of 2" in line)
    assert [cell.strip() for cell in row.split("│")[2:8]] == [
        *("1 of 2", "1", "4.5", "0.25", "10.0"),
        "loop",
    ]


async def a_turn(home: Path) -> None:
    async with ModelServer(calls("bash", command="df"), says("33 GB.")) as model:
        config = f'[backend]\nkind = "external"\nurl = "{model.url}"\n'
        code, _, err = await voltaire(home, "ask", "how much disk space is free?", config=config)
    assert code == 0, err


@pytest.mark.slow
async def test_another_model_runs_beside_and_leaves_nothing(tmp_path: Path) -> None:
    await a_turn(tmp_path)
    before = rows(tmp_path)
    model = make_chain(tmp_path / "mine.gguf", "Plenty.")
    code, out, err = await voltaire(tmp_path, "model", "try", str(model))
    assert code == 0, err
    *_, total, use = out.splitlines()
    assert total.startswith("0 of 1 calls are the same, 0 broken; 0 of 1 turns went in circles")
    assert use == f"To use it: voltaire model use {model}"
    assert rows(tmp_path) == before
    assert not list((tmp_path / "s" / "voltaire").glob("trial-*"))


async def test_one_turn_is_compared_line_by_line(tmp_path: Path) -> None:
    await a_turn(tmp_path)
    turn = str(rows(tmp_path)["turns"][0][0])
    async with ModelServer(says("Plenty.")) as model:
        config = f'[backend]\nkind = "external"\nurl = "{model.url}"\n'
        words = ("model", "try", "--turn", turn)
        code, out, err = await voltaire(tmp_path, *words, config=config)
    assert code == 0, err
    lines = out.splitlines()
    assert (lines[:2], lines[-1]) == (["--- then", "+++ now"], "+Plenty.")


async def test_what_was_disliked_is_listed(tmp_path: Path) -> None:
    await a_turn(tmp_path)
    listing = ("model", "try", "--disliked", "--list")
    assert (await voltaire(tmp_path, *listing))[2] == "There is no such turn yet.\n"
    with closing(sqlite3.connect(tmp_path / "s" / "voltaire" / "voltaire.db")) as database:
        [turn] = database.execute("SELECT id FROM turns").fetchone()
        database.execute("UPDATE turns SET feedback = -1")
        database.commit()
    code, listed, err = await voltaire(tmp_path, *listing)
    assert code == 0, err
    head, asked, answered = listed.splitlines()
    assert head.endswith(f"turn {turn} of cli")
    assert (asked, answered) == ("  how much disk space is free?", "  33 GB.")
    code, lines, err = await voltaire(tmp_path, *listing, "--json")
    assert (code, json.loads(lines)) == (0, {"turn": turn, "chat": "cli"})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["--turn", "nothing"], "There is no turn nothing."), ([], "There is no such turn yet.")],
)
async def test_what_is_not_there_is_said(tmp_path: Path, words: list[str], sentence: str) -> None:
    assert await voltaire(tmp_path, "model", "try", *words) == (1, "", f"{sentence}\n")
