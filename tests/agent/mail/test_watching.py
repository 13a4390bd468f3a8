"""Watches of mail: told when something comes, by IDLE, and by their looks where a server has none."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.agent import AgentConfig, open_agent
from agent.budgets import WORDS
from agent.mail.account import AccountConfig
from agent.schedule.arrivals import Arrivals
from agent.schedule.planner import Planner
from agent.schedule.scheduler import JobRunner, Scheduler, SubmitTask
from agent.schedule.watches import LEAST_OF_MAIL, WATCH, parse_watch, watched
from agent.store import Store, open_store
from agent.store.jobs import Job
from backend.client import BackendClient
from bot.job_actions import run_watch
from fakes.mail_server import Dovecot, line
from fakes.mails import plain
from fakes.patience import SECONDS
from fakes.stored import grant
from tests.agent.schedule.test_job_runner import deliver
from tests.agent.schedule.test_watches import Channels

CHAT = "tg:1"


class Program:
    """A program that runs its jobs; nothing is due by time."""

    def __init__(self, store: Store, tasks: asyncio.TaskGroup) -> None:
        self.store, self.tasks = store, tasks
        self.planner = Planner(store, CHAT, "UTC")

    async def watch(self, what: str) -> Job:
        proposal = await self.planner.propose(
            "every day at 03:00", f"watch {what}", made_by="person"
        )
        job = await self.planner.add(proposal.spec)
        self.store.jobs.wake()
        await self.state(job, "done")
        return job

    async def state(self, job: Job, wanted: str) -> None:
        async with asyncio.timeout(SECONDS):
            while (await self.store.occurrences.of_job(job.id, 1))[0].state != wanted:
                await asyncio.sleep(0.02)

    async def told(self) -> str:
        """What is told next."""
        async with asyncio.timeout(SECONDS):
            while not (rows := await deliver(self.store, CHAT)):
                await asyncio.sleep(0.02)
        (row,) = rows
        return str(json.loads(row.payload)["text"])


@asynccontextmanager
async def running(
    tmp: Path, config: AccountConfig, *, waits: bool = True
) -> AsyncIterator[Program]:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(tmp / "s.db"))
        backend = await stack.enter_async_context(BackendClient(tmp / "none.sock"))
        settings = AgentConfig(
            state_dir=tmp / "state", budgets=dict.fromkeys(WORDS, 100_000), mail=[config]
        )
        agent = await stack.enter_async_context(open_agent(settings, backend, store, Channels()))
        await grant(store, CHAT, f"mail:{config.name}", "Olga")
        watch = run_watch(agent, SubmitTask(store.inbox.add))
        runner = JobRunner(store, {WATCH: watch}, agent.channels)
        await stack.enter_async_context(Scheduler(runner))
        async with asyncio.TaskGroup() as tasks:
            arrivals = Arrivals(store, agent.mail, agent.channels)
            task = tasks.create_task(arrivals.run()) if waits else None
            yield Program(store, tasks)
            if task:
                task.cancel()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.schedule.watches.LEAST_OF_MAIL", 0.01)
    monkeypatch.setattr("agent.schedule.arrivals.RETRY_SECONDS", 0.05)
    monkeypatch.setattr("agent.schedule.arrivals.MOST_RETRY", 0.05)
    monkeypatch.setattr("agent.schedule.arrivals.BUSY_SECONDS", 0.05)


async def test_mail_is_told_when_it_comes_and_the_server_asked_nothing_meanwhile(
    tmp_path: Path, dovecot: Dovecot, quick: None
) -> None:
    dovecot.deliver([plain("old", "tea")])
    async with line(dovecot.imap) as way:
        config = dovecot.config(imap=f"imap://127.0.0.1:{way.port}")
        async with running(tmp_path, config) as program:
            job = await program.watch("mail for invoice")
            other = await program.watch("mail work/Sent")
            dovecot.deliver([plain("Invoice 7", "x", "2")])
            told = await program.told()
            assert told.startswith("👀 mail for invoice") and "Invoice 7" in told
            assert "old" not in told and "Bob <bob@example.com>" in told
            await program.state(job, "done")
            looks = len(await program.store.occurrences.of_job(job.id))
            dovecot.deliver([plain("holiday", "y", "3")])  # nothing that is watched for
            while len(await program.store.occurrences.of_job(job.id)) == looks:
                await asyncio.sleep(0.02)
            await program.state(job, "done")
            assert await deliver(program.store, CHAT) == []
            assert len(await program.store.occurrences.of_job(other.id)) == 1
            assert await program.store.database.value("SELECT count(*) FROM inbox") == 0


@pytest.mark.parametrize("away", ["the program", "the server"])
async def test_what_comes_while_one_is_away_is_told_once(
    tmp_path: Path, dovecot: Dovecot, quick: None, away: str
) -> None:
    async with line(dovecot.imap) as way:
        config = dovecot.config(imap=f"imap://127.0.0.1:{way.port}")
        async with running(tmp_path, config) as program:
            job = await program.watch("mail")
            if away == "the server":
                way.sever()
                dovecot.deliver([plain("meanwhile", "tea", "2")])
                way.cut = False
                assert "meanwhile" in await program.told()
        if away == "the program":
            dovecot.deliver([plain("meanwhile", "tea", "2")])
        async with running(tmp_path, config) as program:
            if away == "the program":
                assert "meanwhile" in await program.told()
            dovecot.deliver([plain("later", "tea", "3")])
            told = await program.told()
            assert "later" in told and "meanwhile" not in told
            await program.state(job, "done")
            assert await deliver(program.store, CHAT) == []


async def test_a_server_without_idle_is_looked_at(
    tmp_path: Path, relayed: Any, quick: None
) -> None:
    dovecot = Dovecot(relayed.port, more="imap_capability = IMAP4rev1 SASL-IR LITERAL+ UIDPLUS")
    with dovecot.running():
        async with running(tmp_path, dovecot.config()) as program:
            job = await program.watch("mail then do Say what came.")
            dovecot.deliver([plain("news", "tea", "2")])
            sql = "SELECT words FROM inbox WHERE source = 'job'"
            while not (text := await program.store.database.value(sql)):
                await program.planner.run_now(job.id)  # not twice in a second
                program.store.jobs.wake()
                await asyncio.sleep(0.02)
            assert text.startswith("Say what came.") and "news" in text and "<data>" in text


@pytest.mark.parametrize(
    ("said", "subject", "pattern"),
    [
        ("watch mail", "", ""),
        ("watch new mail in work/Archive/2026 for 'invoice|bill'", "work/Archive/2026", "invoice|bill"),
        ("tell me when mail from anna@example.org arrives", "", "anna@example.org"),
        ("let me know when there is new mail", "", ""),
        ("überwache neue Mails für Rechnung", "", "Rechnung"),
        ("sag mir, wenn neue Mail kommt", "", ""),
        ("avísame cuando llegue correo", "", ""),
        ("préviens-moi quand un courriel arrive", "", ""),
        ("сообщи, когда придёт письмо", "", ""),
        ("有新邮件时告诉我", "", ""),
    ],
)  # fmt: skip
def test_a_watch_of_mail_in_words(said: str, subject: str, pattern: str) -> None:
    watch = parse_watch(watched(said))
    assert (watch.look, watch.subject, watch.pattern) == ("mail", subject, pattern)
    assert watch.least == LEAST_OF_MAIL
    assert parse_watch("mail, at most every 2 hours").least == 7200
