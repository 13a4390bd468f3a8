"""voltaire import: what OpenClaw, Hermes agent and nanobot write, as they write it; shown, taken once, no secret."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.leaks import LeakDetector
from agent.memory.notes import NOTES_MOST
from agent.other_agents import SECRET, SETTING, Reader, split_entries
from agent.skills import SkillShelf
from agent.store import open_store
from bot.state import DATABASE
from fakes.command_line import Ended, voltaire
from fakes.words import saying

TOKEN = ":".join(("123456789", "AAF3f9x-0123456789abcdefghijklmnopq"))  # of no bot
LATER, EARLIER = 4_102_444_800_000, 1_700_000_000_000  # in milliseconds: 2100, 2023
ZONE = '[agent]\ntimezone = "Europe/Paris"\n'


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def skill(name: str, text: str = "Boil water.") -> str:
    return f"---\nname: {name}\ndescription: Makes {name}.\n---\n{text}\n"


def moved(home: Path, folder: Path, *words: str, stdin: str = "") -> Ended:
    return voltaire(home, "import", str(folder), *words, config=ZONE, stdin=stdin)


async def notes_of(home: Path, chat: str = "cli") -> list[str]:
    async with open_store(home / "s" / "voltaire" / DATABASE) as store:
        return [note.text for note in await store.notes.all(chat)]


def jobs_of(home: Path) -> dict[str, dict[str, Any]]:
    code, out, err = voltaire(home, "jobs", "list", "--json", config=ZONE)
    assert code == 0, err
    return {job["task"]: job for job in json.loads(out)}


# -- nanobot ------------------------------------------------------------------


def nanobot_job(id: str, schedule: Mapping[str, Any], **payload: Any) -> dict[str, Any]:
    """A job as nanobot 0.3.5 stores it."""
    empty = {"kind": None, "atMs": None, "everyMs": None, "expr": None, "tz": None}
    return {
        "id": id,
        "name": f"name of {id}",
        "enabled": True,
        "schedule": {**empty, **schedule},
        "payload": {"kind": "agent_turn", "message": "", "deliver": False, "channel": "telegram", "to": "5", "channelMeta": {}, "sessionKey": "telegram:5", "originChannel": None, "originChatId": None, "originMetadata": {}, **payload},
        "state": {"nextRunAtMs": LATER, "lastRunAtMs": None, "lastStatus": None, "lastError": None, "runHistory": []},
        "createdAtMs": EARLIER,
        "updatedAtMs": EARLIER,
        "deleteAfterRun": False,
    }  # fmt: skip


MEMORY = """# Long-term Memory

This file stores important information.

## Preferences

- Tea without **sugar**,
  never coffee
1. [x] Trains, no planes

## Project Context

(Information about ongoing projects)

---

*This file is automatically updated by nanobot.*
"""
USER = """# User Profile

## Basic Information

- **Name**: Ada
- **Timezone**: (your timezone, e.g., UTC+8)

### Response Length

- [ ] Brief and concise

<!-- nobody
reads this -->
"""


@pytest.fixture
def nanobot(tmp_path: Path) -> Path:
    """~/.nanobot, with a workspace."""
    schedules: Sequence[tuple[dict[str, Any], dict[str, Any]]] = (
        ({"kind": "cron", "expr": "0 7 * * 1-5", "tz": "Asia/Tokyo"}, {"message": "Sum up the news."}),
        ({"kind": "every", "everyMs": 5_400_000}, {"message": "Look at the oven."}),
        ({"kind": "at", "atMs": LATER}, {"message": "remind me of the century"}),
        ({"kind": "at", "atMs": EARLIER}, {"message": "Too late."}),
        ({"kind": "cron", "expr": "0 7 * * 1-5", "tz": "Mars/Base"}, {"message": "Nowhere."}),
        ({"kind": "every", "everyMs": 1_800_000}, {"kind": "system_event", "message": "heartbeat"}),
    )  # fmt: skip
    jobs = [nanobot_job(f"j{at}", when, **what) for at, (when, what) in enumerate(schedules)]
    return write(
        tmp_path / ".nanobot",
        {
            "config.json": json.dumps({"channels": {"telegram": {"token": TOKEN}}}),
            "workspace/memory/MEMORY.md": MEMORY,
            "workspace/USER.md": USER,
            "workspace/HEARTBEAT.md": "- look",
            "workspace/SOUL.md": "# Soul\n\nI am brief.\n",
            "workspace/AGENTS.md": "x",
            "workspace/memory/history.jsonl": "{}\n",
            "workspace/cron/jobs.json": json.dumps({"version": 1, "jobs": jobs}),
            "workspace/skills/tea/SKILL.md": skill("tea"),
        },
    )


NANOBOT_NOTES = [
    "Preferences: Tea without sugar, never coffee",
    "Preferences: Trains, no planes",
    "Basic Information: Name: Ada",
]


async def test_what_nanobot_keeps_is_shown_and_taken_once(nanobot: Path, tmp_path: Path) -> None:
    code, shown, err = moved(tmp_path, nanobot)
    assert (code, err) == (0, "")
    assert shown == saying(
        "Notes for cli (3)",
        "workspace/USER.md: Basic Information: Name: Ada",
        "Jobs for cli (3)",
        "Task “Sum up the news.”, cron 0 7 * * 1-5 (Asia/Tokyo)",
        "Task “Look at the oven.”, every 90 minutes",
        "Reminder “remind me of the century”, once, on Fri 2100-01-01 01:00",
        "Skills (1)",
        "tea: Makes tea.",
        "Not taken",
        "config.json: settings and secrets are never taken",
        "workspace/HEARTBEAT.md: tasks of a heartbeat are never taken",
        "workspace/memory/history.jsonl: conversations are never taken",
        "“name of j3”: its time has passed",
        "“name of j4”: its time is not understood: cron 0 7 * * 1-5 Mars/Base",
        "“name of j5”: its program made it for itself",
        "workspace/SOUL.md: what it says may become [agent] instructions",
        "workspace/AGENTS.md: what it says may become [agent] instructions",
        "Nothing was taken.",
    )
    assert TOKEN not in shown
    assert (await notes_of(tmp_path), jobs_of(tmp_path)) == ([], {})

    assert moved(tmp_path, nanobot, "--apply", "all", "--yes")[:2] == (
        0,
        saying("=== SKILL.md", "Boil water.", "Taken: notes 3, jobs 3, skills 1."),
    )
    assert sorted(await notes_of(tmp_path)) == sorted(NANOBOT_NOTES)
    jobs = jobs_of(tmp_path)
    assert {task: (job["kind"], job["state"]) for task, job in jobs.items()} == {
        "Sum up the news.": ("task", "active"),
        "Look at the oven.": ("task", "active"),
        "remind me of the century": ("remind", "active"),
    }
    assert jobs["remind me of the century"]["next_at"] == "2100-01-01T00:00:00+00:00"
    assert [pin.name for pin in SkillShelf(tmp_path / "s" / "voltaire").pins()] == ["tea"]

    for number in (1, 2, 3):  # what was deleted since does not come back
        assert voltaire(tmp_path, "jobs", "rm", str(number), config=ZONE)[0] == 0
    again = moved(tmp_path, nanobot, "--apply", "all", "--yes")
    assert again[:2] == (
        0,
        saying("Notes for cli (0)", "tea was added before", "Taken: notes 0, jobs 0, skills 0."),
    )
    assert jobs_of(tmp_path) == {}


async def test_only_what_is_named_is_taken(nanobot: Path, tmp_path: Path) -> None:
    assert moved(tmp_path, nanobot, "--apply", "jobs")[1] == saying(
        "Taken: notes 0, jobs 3, skills 0."
    )
    assert await notes_of(tmp_path) == []
    code, out, err = moved(tmp_path, nanobot, "--apply", "notes", "--apply", "skills")
    assert (code, err) == (1, saying("Nobody answered")), out
    assert await notes_of(tmp_path) == [], "the skill is asked about first"
    assert moved(tmp_path, nanobot, "--apply", "all", stdin="n\n")[1] == saying(
        "Taken: notes 3, jobs 0, skills 0."
    )
    assert voltaire(tmp_path, "audit", "--json", config=ZONE)[1] == saying(
        '"act": "import"', '"taken": 3'
    )


# -- Hermes agent -------------------------------------------------------------


def hermes_job(id: str, schedule: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A job as Hermes agent 0.19.0 stores it."""
    return {"id": id, "name": f"name of {id}", "prompt": "", "skills": [], "skill": None, "model": None, "script": None, "no_agent": False, "context_from": None, "schedule": schedule, "repeat": {"times": None, "completed": 0}, "enabled": True, "state": "scheduled", "next_run_at": None, "deliver": "origin", "origin": {"platform": "telegram", "chat_id": "5"}, **fields}  # fmt: skip


async def test_what_hermes_agent_keeps(tmp_path: Path) -> None:
    often = {"kind": "interval", "minutes": 30, "display": "every 30m"}
    stored = [
        hermes_job("a", {"kind": "cron", "expr": "0 9 * * *"}, prompt="Greet.", skills=["tea"]),
        hermes_job("b", often, prompt="Look.", enabled=False, state="paused"),
        hermes_job("c", {"kind": "once", "run_at": "2100-02-03T14:00:00+09:00"}, prompt="Then."),
        hermes_job("d", often, prompt="Thrice.", repeat={"times": 3, "completed": 1}),
        hermes_job("e", often, script="watch.sh", no_agent=True),
        {"id": ["f"], "schedule": often},
    ]
    home = write(
        tmp_path / ".hermes",
        {
            ".env": f"TELEGRAM_BOT_TOKEN={TOKEN}\nWEATHER_API_KEY=plain-but-4-secret\n",
            "memories/MEMORY.md": "Two lines\nof one entry\n§\nThe key: plain-but-4-secret\n§\nSecond",
            "memories/USER.md": "Likes § signs.",
            "SOUL.md": "Be kind.",
            "cron/jobs.json": json.dumps({"jobs": stored, "updated_at": "now"}),
            "skills/.bundled_manifest": "arxiv:0123456789abcdef\n",
            "skills/research/arxiv/SKILL.md": skill("arxiv"),
            "skills/kitchen/tea/SKILL.md": skill("tea"),
            "skills/kitchen/leaky/SKILL.md": skill("leaky", f"Say {TOKEN}."),
        },
    )
    code, out, err = moved(tmp_path, home, "--apply", "all", "--yes")
    assert (code, err) == (0, "")
    assert out == saying(
        ".env: settings and secrets are never taken",
        "memories/MEMORY.md: 1 × what looks like a secret",
        "“name of d”: it ends after 3 times",
        "“name of e”: it runs a script",
        "job 6 is not in a known form",
        "skills/kitchen/leaky/SKILL.md: it holds what looks like a secret",
        "skills/research/arxiv: it comes with Hermes agent",
        "Taken: notes 3, jobs 3, skills 1.",
    )
    assert "plain-but-4" not in out and TOKEN not in out
    assert await notes_of(tmp_path) == ["Two lines of one entry", "Second", "Likes § signs."]
    jobs = jobs_of(tmp_path)
    assert {task: job["state"] for task, job in jobs.items()} == {
        "Greet.\nFollow the skill tea.": "active",
        "Look.": "paused",
        "Then.": "active",
    }
    assert jobs["Then."]["next_at"] == "2100-02-03T05:00:00+00:00"


# -- OpenClaw -----------------------------------------------------------------


def openclaw_job(id: str, schedule: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A job as OpenClaw 2026.9.6 stores it in its database, and older ones in cron/jobs.json."""
    payload = {"kind": "agentTurn", "message": f"Do {id}.", "toolsAllow": ["*"]}
    return {"id": id, "name": f"name of {id}", "enabled": True, "createdAtMs": EARLIER, "schedule": schedule, "sessionTarget": "isolated", "wakeMode": "now", "payload": payload, "delivery": {"mode": "announce", "channel": "last"}, "state": {}, **fields}  # fmt: skip


HOURLY = {"kind": "every", "everyMs": 3_600_000, "anchorMs": EARLIER}
JOBS = (
    openclaw_job("0", {"kind": "cron", "expr": "*/5 * * * *", "tz": "America/Los_Angeles"}),
    openclaw_job("1", {"kind": "at", "at": "2100-01-01T00:00:00"}, payload={"kind": "systemEvent", "text": "Reminder: rest"}),
    openclaw_job("2", HOURLY, payload={"kind": "command", "argv": ["sh", "-lc", "uptime"]}),
    openclaw_job("3", HOURLY, delivery={"mode": "webhook", "to": "https://example.org"}),
    openclaw_job("4", HOURLY, trigger={"script": "return true"}),
    openclaw_job("5", {"kind": "cron", "expr": "0 0 7 * * *"}),
    openclaw_job("6", {"kind": "on-exit", "command": "make"}),
    openclaw_job("7", HOURLY, declarationKey="memory-core:memory-dreaming-promotion"),
    openclaw_job("8", HOURLY, declarationKey="heartbeat:main", payload={"kind": "heartbeat"}),
)  # fmt: skip
TEMPLATE = """# USER.md - User Model

Store stable user preferences and profile facts.

```md
<!-- observed: YYYY-MM-DD | status: active -->

- Prefer concise progress updates during implementation work.
```

## Directives

<!-- observed: 2026-11-01 | status: active -->

- Never call before 9.

- Prefer ...
"""


async def test_what_openclaw_keeps(tmp_path: Path) -> None:
    home = write(
        tmp_path / ".openclaw",
        {
            "openclaw.json": "{ // JSON5\n gateway: { auth: { token: 'correct-horse-7-battery' } } }",
            "credentials/telegram.json": TOKEN,
            "workspace/MEMORY.md": "The gateway says correct-horse-7-battery.\n\nAda sails.",
            "workspace/memory/2026-11-02.md": "# 2026-11-02\n\n- Bought a boat\n",
            "workspace/memory/2026-11-03.md": "- Sold it\n",
            "cron/jobs.json": json.dumps({"version": 1, "jobs": [openclaw_job("old", HOURLY)]}),
            "workspace/USER.md": TEMPLATE,
            "state/none": "",
        },
    )
    with closing(sqlite3.connect(home / "state" / "openclaw.sqlite")) as database:
        database.execute("CREATE TABLE cron_jobs (job_id TEXT, job_json TEXT NOT NULL) STRICT")
        rows = [(job["id"], json.dumps(job)) for job in JOBS]
        database.executemany("INSERT INTO cron_jobs VALUES (?, ?)", rows)
        database.commit()
    code, out, err = moved(tmp_path, home, "--apply", "all", "--yes")
    assert (code, err) == (0, "")
    assert out == saying(
        "openclaw.json: settings and secrets are never taken",
        "credentials: settings and secrets are never taken",
        "“name of 2”: it runs a script",
        "“name of 3”: it sends to a webhook",
        "“name of 4”: it runs a script",
        "“name of 5”: its time is not understood: cron 0 0 7 * * *",
        "“name of 6”: its time is not understood: on-exit",
        "“name of 7”: its program made it for itself",
        "“name of 8”: its program made it for itself",
        "workspace/USER.md: 3 × what its template had",
        "workspace/MEMORY.md: 1 × what looks like a secret",
        "Taken: notes 4, jobs 3, skills 0.",
    )
    assert await notes_of(tmp_path) == [
        "Ada sails.",
        "Directives: Never call before 9.",
        "2026-11-03: Sold it",
        "2026-11-02: Bought a boat",
    ]
    jobs = jobs_of(tmp_path)
    assert jobs["Reminder: rest"]["next_at"] == "2100-01-01T00:00:00+00:00", (
        "without a zone it is UTC"
    )
    assert set(jobs) == {"Do old.", "Do 0.", "Reminder: rest"}


# -- what is wrong ------------------------------------------------------------


def test_a_folder_without_anything_is_refused(tmp_path: Path) -> None:
    assert moved(tmp_path, tmp_path / "none")[::2] == (1, f"There is no folder {tmp_path}/none.\n")
    long = tmp_path / ("x" * 300)
    assert moved(tmp_path, long)[::2] == (1, f"{long} cannot be read: File name too long.\n")
    (tmp_path / "empty").mkdir()
    assert moved(tmp_path, tmp_path / "empty")[::2] == (1, saying("has no memory, jobs or skills"))
    write(tmp_path / "some", {"USER.md": "Ada."})
    assert moved(tmp_path, tmp_path / "some", "--chat", "tg:7")[::2] == (
        1,
        saying("Nobody has a chat named tg:7"),
    )


async def test_links_and_damaged_files_are_told_and_the_rest_is_taken(tmp_path: Path) -> None:
    home = write(
        tmp_path / "home", {"USER.md": "Ada.", "cron/jobs.json": '{"jobs": 5}', "other": TOKEN}
    )
    (home / "MEMORY.md").symlink_to(home / "other")
    (home / "memory").mkdir()
    (home / "memory" / "2026-01-01.md").write_bytes(b"\xff\xfe\x00")
    (home / "state").mkdir()
    (home / "state" / "openclaw.sqlite").write_text("no database")
    write(home / "skills" / "linked", {"SKILL.md": skill("linked")})
    (home / "skills" / "linked" / "passwd").symlink_to("/etc/passwd")
    code, out, err = moved(tmp_path, home, "--apply", "all", "--yes")
    assert (code, err) == (0, "")
    assert out == saying(
        "MEMORY.md: it is a link",
        "memory/2026-01-01.md: it is not UTF-8 text",
        "cron/jobs.json: it holds no list of jobs",
        "state/openclaw.sqlite: it holds no list of jobs",
        "passwd is a link or a device",
        "Taken: notes 1, jobs 0, skills 0.",
    )
    assert await notes_of(tmp_path) == ["Ada."]


def read_in(home: Path) -> Reader:
    reader = Reader(home, "cli", "UTC", datetime(2026, 11, 1, tzinfo=UTC), LeakDetector({}))
    reader.read()
    return reader


def test_a_database_in_use_is_read_with_its_log_and_nothing_is_written_beside_it(
    tmp_path: Path,
) -> None:
    file = write(tmp_path / "home", {"state/none": ""}) / "state" / "openclaw.sqlite"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode = wal")
        database.execute("CREATE TABLE cron_jobs (job_id, job_json)")
        database.commit()
        database.execute("PRAGMA wal_checkpoint(truncate)")
        odd = ["[" * 100_000, b"\xff\x00", None, json.dumps(openclaw_job("a", HOURLY))]
        database.executemany("INSERT INTO cron_jobs VALUES (?, ?)", [*enumerate(odd)])
        database.commit()
        reader = read_in(tmp_path / "home")
    told = [f"state/openclaw.sqlite: job {number} is not in a known form" for number in (1, 2, 3)]
    assert ([*reader.jobs], reader.left_out) == (["a"], told)
    for ending in ("-wal", "-shm"):
        Path(f"{file}{ending}").unlink(missing_ok=True)
    assert [*read_in(tmp_path / "home").jobs] == ["a"]
    assert sorted(each.name for each in file.parent.iterdir()) == ["none", "openclaw.sqlite"]


def test_a_linked_database_is_not_read_and_a_file_that_is_cut_is_told(tmp_path: Path) -> None:
    home = write(tmp_path / "home", {"MEMORY.md": "- A fact\n" * 600_000, "state/none": ""})
    with closing(sqlite3.connect(tmp_path / "other")) as database:
        database.execute("CREATE TABLE cron_jobs (job_id, job_json)")
        row = ("a", json.dumps(openclaw_job("a", HOURLY)))
        database.execute("INSERT INTO cron_jobs VALUES (?, ?)", row)
        database.commit()
    (home / "state" / "openclaw.sqlite").symlink_to(tmp_path / "other")
    reader = read_in(home)
    assert (reader.jobs, [*reader.notes]) == ({}, ["A fact"])
    assert reader.left_out == [
        "MEMORY.md: what is behind its first 4 MiB",
        "state/openclaw.sqlite: it is a link",
    ]


@pytest.mark.parametrize(
    "secret",
    [
        "The password of the router is Blau-Wal-77",
        "wifi password hunter2hunter2",
        "Pass: hunter22",
        "mongodb://user:pa55word@host/db",
        "contraseña: verano2024!",
        "mot de passe: bonjour2024",
        "пароль: leto2024",
    ],
)
def test_a_password_in_a_sentence_is_not_taken(tmp_path: Path, secret: str) -> None:
    fine = "The boarding pass is in the drawer, the key under https://example.org/a:b@c"
    home = write(tmp_path / "home", {"MEMORY.md": f"- {secret}\n- {fine}\n"})
    assert [*read_in(home).notes] == [fine]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("config.json", '{"maxTokens": 81920000, "apiKey": "correcthorsebattery"}'),
        ("config.json", '{"imapPassword": "open sesame of old"}'),
        (".env", "export SUDO_PASSWORD='open sesame of old'"),
        ("config.yaml", "model:\n  api_key: correcthorsebattery\n"),
        ("auth.json", '{"refresh_token":"correcthorsebattery"}'),
    ],
)
def test_a_secret_of_the_settings_is_known_whatever_its_letters(
    tmp_path: Path, file: str, text: str
) -> None:
    memory = "- It is correcthorsebattery\n- Say open sesame of old\n- Of 81920000 people\n"
    home = write(tmp_path / "home", {file: text, "MEMORY.md": memory})
    reader = read_in(home)
    held = "correcthorse" if "correcthorse" in text else "sesame"
    assert len(reader.notes) == 2 and held not in "".join(reader.notes)


async def test_what_a_chat_cannot_hold_is_told_and_comes_later(tmp_path: Path) -> None:
    facts = "\n".join(f"- {number}. fact" for number in range(NOTES_MOST + 2))
    home = write(tmp_path / "home", {"MEMORY.md": facts})
    assert moved(tmp_path, home)[1] == saying(f"Notes for cli ({NOTES_MOST + 2})")
    assert moved(tmp_path, home, "--apply", "notes")[::2] == (
        1,
        saying(f"{NOTES_MOST} notes already"),
    )
    async with open_store(tmp_path / "s" / "voltaire" / DATABASE) as store:
        for note in (await store.notes.all("cli"))[:2]:
            await store.notes.delete("cli", note.id)
    code, out, err = moved(tmp_path, home, "--apply", "notes")
    assert (code, err, out) == (0, "", saying("Notes for cli (2)", "Taken: notes 2"))
    assert len(await notes_of(tmp_path)) == NOTES_MOST


def test_a_long_entry_becomes_several_notes(tmp_path: Path) -> None:
    home = write(tmp_path / "home", {"USER.md": " ".join(map(str, range(1000, 1450)))})
    assert moved(tmp_path, home)[1] == saying("Notes for cli (3)")


@pytest.mark.parametrize(
    "blank", ["(Facts)", "_(What?)_", "**Name:**", "- [ ] Casual", "*Made by a program.*"]
)
def test_blanks_of_a_template_are_no_notes(blank: str) -> None:
    assert list(split_entries(f"## Part\n\n{blank}\n\n- true")) == ["", "Part: true"]


def test_secrets_deep_json_and_linked_folders_are_neither_shown_nor_followed(
    tmp_path: Path,
) -> None:
    hourly = {"kind": "every", "everyMs": 3_600_000}
    jobs = [
        openclaw_job("a", {"kind": "at", "at": "2001-01-01"}, name=f"use {TOKEN}"),
        openclaw_job("b", {"kind": "cron", "expr": f"token={TOKEN}"}),
        openclaw_job("c", {"kind": "every", "everyMs": 10**30}),
        openclaw_job("d", {"kind": "at", "atMs": 10**20}),
        openclaw_job("e", hourly),
    ]
    home, outside = tmp_path / "home", tmp_path / "outside"
    write(
        home,
        {
            "USER.md": f"- Ada\n- my password = geheim1234\n- {TOKEN}\n",
            "cron/jobs.json": json.dumps([*jobs, "text", None]),
            "workspace/cron/jobs.json": '{"jobs": ' + "[" * 100_000,
            "workspace/skills/a/SKILL.md": skill("a", "api_key = abcdef123456"),
            "workspace/skills/b/SKILL.md": skill(TOKEN),
            "workspace/skills/c/SKILL.md": "---\nname: [not closed\n{{\n---\n",
            "workspace/MEMORY.md": "a" + "ä" * 3_000_000,
        },
    )
    write(outside, {"2026-01-01.md": "- Outside", "skill/SKILL.md": skill("outside")})
    (home / "memory").symlink_to(outside)
    (home / "skills").symlink_to(outside)
    reader = read_in(home)
    assert (list(reader.notes), reader.skills) == (["Ada"], [])
    assert [job.task for job in reader.jobs.values()] == ["Do e."]
    held = "it holds what looks like a secret"
    assert [line for line in reader.left_out if "skills/c" not in line] == [
        "USER.md: 2 × what looks like a secret",
        "memory: it is a link",
        f"cron/jobs.json: {held}",
        "cron/jobs.json: “name of c”: its time is not understood: every",
        "cron/jobs.json: “name of d”: its time is not understood: at 100000000000000000000",
        "cron/jobs.json: job 6 is not in a known form",
        "cron/jobs.json: job 7 is not in a known form",
        "skills: it is a link",
        "workspace/MEMORY.md: what is behind its first 4 MiB",
        "workspace/cron/jobs.json: it holds no list of jobs",
        f"workspace/skills/a/SKILL.md: {held}",
        f"workspace/skills/b: {held}",
    ]
    for pattern in (SECRET, SETTING):
        assert not pattern.search("a" * 1_000_000 + "key" * 50_000)  # in time
    assert "geheim1234" not in str(reader.left_out) and TOKEN not in str(reader.left_out)
