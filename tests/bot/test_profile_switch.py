"""A switch of the model that is planned in words: job, configuration file, the backend obeys."""

import json
import time
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from agent.errors import AgentError, NothingToDo
from agent.schedule.times.rule import Calendar, dump
from agent.store import Store, open_store
from agent.store.jobs import Job, JobSpec
from backend.config import BackendConfig, ScheduledProfile
from bot import config_file
from bot.cli.backend_config import backend_config
from bot.config_file import sync_config
from bot.job_actions import ProfileSwitch
from bot.settings import load
from fakes import gguf_maker, llama_server
from fakes.backend_running import QUICK, Running, running
from fakes.command_line import voltaire_beside as voltaire
from fakes.words import saying

HAND = '# mine\n[agent]\ntimezone = "Europe/Paris"  # at home\n\n[backend]\nprofile = "fake"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two profiles of a stand-in for llama-server, in the user's own folder."""
    folder = tmp_path / "x" / "voltaire" / "profiles"
    folder.mkdir(parents=True)
    llama_server.profile(folder, gpu=False, engine="llama.cpp", prefill=1000)
    (folder / "other.toml").write_text((folder / "fake.toml").read_text())
    return tmp_path


class Clock:
    """It goes on from the time of day that it was last set to."""

    def __init__(self, at: str) -> None:
        self.set(at)

    def set(self, at: str) -> None:
        self.ahead = datetime.fromisoformat(f"2026-11-20T{at}+00:00").timestamp() - time.time()

    def __call__(self) -> float:
        return time.time() + self.ahead


@asynccontextmanager
async def backend(home: Path, clock: Clock) -> AsyncIterator[Running]:
    """It runs with the configuration of `home`."""
    settings = load(home / "c.toml")
    config: BackendConfig = replace(
        backend_config(settings),
        state_dir=home / "b",
        socket=home / "b.sock",
        profiles=home / "x" / "voltaire" / "profiles",
        server=str(llama_server.install(home / "fake", [""])),
        model=str(gguf_maker.make(home / "noise.gguf")),
    )
    async with running(config, replace(QUICK, look_schedule=0.05, clock=clock)) as it:
        await it.ready()
        yield it


async def test_a_planned_switch_stands_in_the_file_and_the_running_backend_obeys(
    home: Path,
) -> None:
    (home / "c.toml").write_text(HAND)
    clock = Clock("05:00:00")
    async with backend(home, clock) as it, open_store(home / "s.db") as store:
        words = ("jobs", "add", "--yes", "every day at 8 switch to the model other")
        code, out, _ = await voltaire(home, *words, config=HAND)
        assert (code, out) == (0, saying("switch", "other, every day at 08:00"))
        entry = '\n[[backend.schedule]]\nat = "08:00"\nprofile = "other"\njob = 1\n'
        assert (home / "c.toml").read_text() == HAND + entry
        clock.set("06:59:59")  # in Paris it is nearly eight
        await it.until(lambda s: s.backend.profile == "other" and s.backend.state == "ready")
        with pytest.raises(NothingToDo, match="It serves"):
            await ProfileSwitch(it.client, store)(switch_job("other"), None)  # type: ignore[arg-type]


async def test_where_the_file_says_nothing_the_job_switches_itself(home: Path) -> None:
    (home / "c.toml").write_text(HAND)
    async with backend(home, Clock("12:00:00")) as it, open_store(home / "s.db") as store:
        with pytest.raises(NothingToDo, match=r"It is ready after \d+ s"):
            await ProfileSwitch(it.client, store)(switch_job("other"), None)  # type: ignore[arg-type]
        assert (await it.client.status()).backend.profile == "other"
        [row] = await store.ledger.rows()
        assert (row.kind, json.loads(row.facts)) == (
            "admin",
            {"act": "model", "to": "other", "by": "job 1"},
        )
        with pytest.raises(AgentError, match="no profile called gone"):
            await ProfileSwitch(it.client, store)(switch_job("gone"), None)  # type: ignore[arg-type]


def switch_job(profile: str) -> Job:
    return Job(1, JobSpec("tg:1", "profile", "", {}, "UTC", profile, {}), 0.0)


async def test_the_file_keeps_step_with_the_jobs_and_nothing_else_changes(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(HAND + '\n[[backend.schedule]]\nat = "23:00"\nprofile = "night"\n')
    path.chmod(0o640)
    mine = path.read_text()
    async with open_store(tmp_path / "s.db") as store:
        day = Calendar((480, 1110), "Europe/Paris")
        job = await plan(store, day)
        await plan(store, Calendar((480,), "Europe/Paris", weekdays=frozenset({0})))
        await plan(store, Calendar((480,), "Asia/Tokyo"))
        await sync_config(store, path, "Europe/Paris")
        assert [(e.at, e.profile) for e in load(path).backend.schedule] == [
            ("23:00", "night"),
            ("08:00", "other"),
            ("18:30", "other"),
        ]
        assert path.read_text().startswith(mine)
        assert path.stat().st_mode & 0o777 == 0o640
        config_file.write(path, config_file.read(path))  # as the wizard does: comments are gone
        mine = HAND.replace("# mine\n", "").replace("  # at home", "") + mine.removeprefix(HAND)
        await store.jobs.set_state(job.id, "paused")
        await sync_config(store, path, "Europe/Paris")
    assert tomllib.loads(path.read_text()) == tomllib.loads(mine)


async def plan(store: Store, rule: Calendar) -> Job:
    return await store.jobs.add(JobSpec("tg:1", "profile", "", dump(rule), rule.zone, "other", {}))


@pytest.mark.parametrize("text", ["[backend]\nschedule = []\n", "[backend\n"])
async def test_a_file_that_takes_no_entry_stays_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    async with open_store(tmp_path / "s.db") as store:
        await plan(store, Calendar((480,), "UTC"))
        await sync_config(store, path, "UTC")
    assert path.read_text() == text


async def test_an_edited_schedule_counts_at_once_and_a_broken_file_changes_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "c.toml"
    path.write_text("")
    config = backend_config(load(path))
    assert config.reschedule and config.reschedule() == ()
    path.write_text('[[backend.schedule]]\nat = "08:00"\nprofile = "a"\n')
    assert config.reschedule() == (ScheduledProfile("08:00", "a"),)
    path.write_text("[[backend.sched")
    assert config.reschedule() == (ScheduledProfile("08:00", "a"),)
