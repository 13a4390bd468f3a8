"""voltaire replay: the record against the model that serves now; nothing runs, nothing is written."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from fakes.model_scripted import Json, Line, ModelServer, calls, says
from tests.bot.cli.test_bad_input import voltaire


def rows(home: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that the database holds, but for what an opening of it notes of itself."""
    with closing(sqlite3.connect(home / "s" / "voltaire" / "voltaire.db")) as database:
        tables = ("turns", "transcript", "inbox", "outbox", "tool_runs", "usage", "jobs", "notes")
        return {table: database.execute(f"SELECT * FROM {table}").fetchall() for table in tables}


async def test_pocket_says_the_same_and_a_difference_is_shown(tmp_path: Path) -> None:
    code, answer, err = await voltaire(tmp_path, "ask", "how much disk space is free?")
    assert code == 0, err
    before = rows(tmp_path)
    code, same, err = await voltaire(tmp_path, "replay")
    assert (code, same.splitlines()[-1]) == (0, "The model says the same."), err
    assert f"  {answer.splitlines()[-1]}\n" in same and '  bash {"command": "df' in same
    assert rows(tmp_path) == before
    with closing(sqlite3.connect(tmp_path / "s" / "voltaire" / "voltaire.db")) as database:
        turn = database.execute("SELECT id FROM turns").fetchone()[0]
        database.execute(
            "UPDATE transcript SET text = 'Plenty.' WHERE role = 'assistant' AND text <> ''"
        )
        database.commit()
    code, other, _ = await voltaire(tmp_path, "replay", turn)
    said = answer.splitlines()[-1]
    assert other.splitlines()[-5:] == ["--- then", "+++ now", "-Plenty.", f"+{said}", "One model call differs."]  # fmt: skip


async def test_what_was_disliked_is_listed(tmp_path: Path) -> None:
    code, answer, err = await voltaire(tmp_path, "ask", "how much disk space is free?")
    assert code == 0, err
    with closing(sqlite3.connect(tmp_path / "s" / "voltaire" / "voltaire.db")) as database:
        [turn] = database.execute("SELECT id FROM turns").fetchone()
        database.execute("UPDATE turns SET feedback = -1")
        database.commit()
    code, listed, err = await voltaire(tmp_path, "replay", "--disliked")
    assert code == 0, err
    head, asked, answered = listed.splitlines()
    assert head.endswith(f"turn {turn} of cli")
    assert (asked, answered) == (
        "  how much disk space is free?",
        f"  👎 {' '.join(answer.splitlines()[-1].split())}",
    )
    code, lines, err = await voltaire(tmp_path, "replay", "--disliked", "--json")
    assert (code, json.loads(lines)["id"]) == (0, turn)


async def test_tools_are_answered_from_the_record(tmp_path: Path) -> None:
    def script(request: Json) -> Line:
        if request["messages"][-1]["role"] == "tool":
            return says("Done.")
        return calls("bash", command="echo ran >> runs.txt; cat runs.txt")

    async with ModelServer(script=script) as model:
        config = f'[backend]\nkind = "external"\nurl = "{model.url}"\n'
        code, _, err = await voltaire(tmp_path, "ask", "run it", config=config)
        assert code == 0, err
        asked = len(model.requests)
        code, out, err = await voltaire(tmp_path, "replay", "--json", config=config)
        assert code == 0, err
        again = model.requests[-2:]
    assert [json.loads(line)["same"] for line in out.splitlines()] == [True, True]
    assert [r["messages"] for r in again] == [r["messages"] for r in model.requests[:asked][-2:]]
    (runs,) = tmp_path.glob("s/voltaire/chats/**/runs.txt")
    assert runs.read_text() == "ran\n"


async def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    config = '[backend]\nkind = "external"\nurl = "http://127.0.0.1:1"\n'
    assert await voltaire(tmp_path, "replay", "nothing", config=config) == (1, "", "There is no turn nothing.\n")  # fmt: skip
    assert (await voltaire(tmp_path, "replay", config=config))[2] == "cli has no turn yet.\n"
