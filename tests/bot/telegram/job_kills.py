"""The bot, killed with SIGKILL at random steps of its jobs.

The bot is `voltaire run` in a process of its own, against the local Bot API server
and a scripted model. Before each kill, jobs of all kinds fall due: a reminder, a
task for the agent, a summary of a repository with a new commit, the digest; beside
them one reminder every two seconds. Then one more start brings everything to its
end. `Report.wrong` names each occurrence that was lost, each text that came twice,
and each send in doubt that was not told.
"""

import asyncio
import random
import re
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from agent.schedule.times.rule import Every, Once, dump
from agent.store import open_store
from agent.store.jobs import JobSpec
from agent.turn import texts
from bot.localgram import Message
from fakes.bot_process import Process
from fakes.localgram import Localgram, Person
from fakes.model_scripted import Json, Line, ModelServer, says
from fakes.patience import soon

TOKEN = "4242:jobs"
OWNER = 1
KINDS = ("remind", "task", "summary", "digest")
TICK_SECONDS = 2
LOOK_SECONDS = 30.0  # how long a step is waited for; a kill without it is a kill all the same
END_SECONDS = 240.0
WORD = re.compile(r"\bw\d+[a-z]\b")
STEPS = (
    "while it starts", "entered", "running", "in the inbox", "model asked", "model half done",
    "to be sent", "send that never arrives", "send that arrived", "done", "at any time",
)  # fmt: skip


@dataclass
class Report:
    """What was injected and what came of it; `wrong` must stay empty."""

    stood: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Campaign:
    def __init__(self, gram: Localgram, model: ModelServer, folder: Path, seed: int) -> None:
        self.gram = gram
        self.olga: Person = gram.user("Olga", id=OWNER, started=True)
        self.chat = f"tg:{OWNER}"
        self.model = model
        self.chance = random.Random(seed)
        self.report = Report()
        self.words: dict[str, int] = {}  # of reminders, tasks and commits: their job
        self.holding: str | None = None
        self.site = folder / "site"
        self.process = Process(gram, folder / "state", model.url, OWNER)
        model.script = self._script
        prepare(folder, self.site)

    # -- what is planned -----------------------------------------------------------

    async def run(self, kills: int) -> Report:
        tick = await self._plan("remind", "tick", Every(TICK_SECONDS, _at(0)))
        for number in range(kills):
            await self._kill(number, self.chance.choice(STEPS))
        await self._bring_to_an_end(tick)
        self._check_rows()
        self._check_words()
        self._check_ticks(tick)
        return self.report

    async def _plan(self, kind: str, task: str, rule: Once | Every) -> int:
        at = rule.at if isinstance(rule, Once) else rule.anchor
        plan = JobSpec(
            self.chat, kind, "", dump(rule), "UTC", task, {}, "all", next_at=int(at.timestamp())
        )
        async with open_store(self.process.database) as store:
            return (await store.jobs.add(plan)).id

    async def _due(self, kind: str, number: int) -> int:
        """A job that falls due within two seconds."""
        word = f"w{number}{kind[0]}"
        if kind == "summary":
            commit(self.site, word)
        task = {"summary": "site", "digest": "health digest"}.get(kind, f"say {word}")
        job = await self._plan(kind, task, Once(_at(self.chance.uniform(0, 2))))
        if kind != "digest":
            self.words[word] = job
        return job

    def _script(self, request: Json) -> Line:
        words = " ".join(dict.fromkeys(WORD.findall(str(request["messages"][-1]["content"]))))
        if self.holding is None:
            return says(f"did {words}", size=20)
        return says(f"did {words}" if self.holding else "", hold=asyncio.Event().wait, size=20)

    # -- the kills -----------------------------------------------------------------

    async def _kill(self, number: int, step: str) -> None:
        kind = self._kind(step)
        job = await self._due(kind, 2 * number)
        await self._due(self.chance.choice(KINDS), 2 * number + 1)
        async with self.process.running():
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._reach(step, job)
            await asyncio.sleep(self.chance.choice((0.0, self.chance.uniform(0, 0.05))))
            await self.process.kill()
        self.holding = None
        self.report.stood[self._stood(job)] += 1

    def _kind(self, step: str) -> str:
        if step == "in the inbox":
            return "task"
        return self.chance.choice(("task", "summary") if step.startswith("model") else KINDS)

    async def _reach(self, step: str, job: int) -> None:
        occurrence = f"FROM occurrences o WHERE o.job = {job}"
        sql = {
            "entered": f"SELECT 1 {occurrence}",
            "running": f"SELECT 1 {occurrence} AND o.state = 'running'",
            "in the inbox": f"SELECT 1 FROM inbox WHERE source = 'job' AND update_id LIKE '{job}:%'",
            "to be sent": f"SELECT 1 {occurrence} AND o.outbox IS NOT NULL",
            "done": f"SELECT 1 {occurrence} AND o.state = 'done'",
        }
        if step in sql:
            await self.process.row(sql[step])
        elif step.startswith("model"):
            await self._asked(half=step.endswith("half done"))
        elif step.startswith("send"):
            with self.gram.hold("sendMessage", executed=step.endswith("arrived")) as hold:
                await hold.reached(LOOK_SECONDS)
                await self.process.kill()
        else:
            await asyncio.sleep(self.chance.uniform(0, 2 if step == "while it starts" else 6))

    async def _asked(self, *, half: bool) -> None:
        self.holding = "half" if half else ""
        asked = len(self.model.requests)
        await soon(lambda: len(self.model.requests) > asked)

    def _stood(self, job: int) -> str:
        """Where a kill found the job's occurrence."""
        row = self._row(
            "SELECT o.state, o.turn, b.state, EXISTS (SELECT 1 FROM inbox i WHERE i.source = 'job'"
            " AND i.update_id = o.job || ':' || o.due_at) FROM occurrences o"
            f" LEFT JOIN outbox b ON b.id = o.outbox OR b.turn = o.turn WHERE o.job = {job}"
        )
        if row is None:
            return "not yet entered"
        state, turn, outbox, inbox = row
        if state != "running":
            return str(state)
        if outbox:
            return f"running, its text {outbox}"
        return "running, its turn open" if turn else f"running{', in the inbox' if inbox else ''}"

    def _row(self, sql: str) -> Any:
        with closing(sqlite3.connect(self.process.database)) as connection:
            return connection.execute(sql).fetchone()

    def _rows(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self.process.database)) as connection:
            return connection.execute(sql).fetchall()

    # -- afterwards ----------------------------------------------------------------

    async def _bring_to_an_end(self, tick: int) -> None:
        async with self.process.running():
            await self.process.row(f"SELECT 1 FROM occurrences WHERE job = {tick}")
            async with open_store(self.process.database) as store:
                await store.jobs.set_state(tick, "paused")
            await self._quiet()
            for outbox, notice in self._doubts():
                await self._look(outbox, notice)
            await self._quiet()

    async def _quiet(self) -> None:
        """Until nothing is open any more; what does not move is told."""
        while left := self._rows(_OPEN):
            try:
                await soon(partial(self._moved, left))
            except TimeoutError:
                self.report.wrong += [f"never ended: {row}" for row in left]
                return

    def _moved(self, left: list[Any]) -> bool:
        return self._rows(_OPEN) != left

    def _doubts(self) -> list[tuple[int, str]]:
        return self._rows("SELECT id, notice_id FROM outbox WHERE state = 'uncertain' ORDER BY id")

    async def _look(self, outbox: int, notice: str) -> None:
        """A person whose text is missing presses the notice's button."""
        told = self.olga.chat().messages.get(int(notice)) if notice.isdigit() else None
        if told is None or not told.keyboard:
            self.report.wrong.append(f"text {outbox} is in doubt and was not told")
            return
        (payload,) = self._row(f"SELECT payload FROM outbox WHERE id = {outbox}")
        if (words := WORD.findall(payload)) and not self._copies(words[0]):
            await self.olga.press(told, "Show again")
            await soon(lambda: self._copies(words[0]), END_SECONDS)

    def _texts(self) -> list[Message]:
        return [m for m in self.olga.messages() if m.sender.is_bot]

    def _copies(self, word: str) -> int:
        return sum(word in WORD.findall(m.text) for m in self._texts() if "failed" not in m.text)

    def _check_rows(self) -> None:
        """Each due time is a row that has ended, and "done" names a message that is there."""
        rows = self._rows("SELECT job, due_at, state, message_id, detail FROM occurrences")
        for job, due, state, message, detail in rows:
            self.report.ended["in doubt" if detail.startswith("nobody") else state] += 1
            silent = detail.startswith("Nothing was committed")
            if (
                state == "done"
                and not silent
                and int(message or 0) not in self.olga.chat().messages
            ):
                self.report.wrong.append(f"job {job}, due {due}: done without its message")
            if state in ("due", "running"):
                self.report.wrong.append(f"job {job}, due {due}: still {state}")
        told = [message for _, _, _, message, _ in rows if message]
        self._wrong_unless(len(told) == len(set(told)), "two occurrences claim one message")
        entered = {job for job, *_ in rows}
        lost = [job for (job,) in self._rows("SELECT id FROM jobs") if job not in entered]
        self._wrong_unless(not lost, f"jobs that never fell due: {lost}")

    def _check_words(self) -> None:
        """Each once; else what the person was told in its place."""
        for word, job in self.words.items():
            copies = self._copies(word)
            if copies != 1 and not (copies == 0 and self._told_of(word, job)):
                said = f"{word} of job {job} came {copies} times"
                self.report.wrong.append(f"{said}: {self._story(word)}")

    def _story(self, word: str) -> list[Any]:
        rows = self._rows("SELECT id, turn, state, attempts, message_ids, payload FROM outbox")
        came = [(m.id, m.text) for m in self._texts() if word in m.text]
        return came + [row for row in rows if word in row[-1]]

    def _told_of(self, word: str, job: int) -> bool:
        """Cut off so often that it was given up, which is said: of the job, or as its turn's answer."""
        message, detail = self._row(
            f"SELECT message_id, iif(state = 'failed', detail, '') FROM occurrences WHERE job = {job}"
        )
        answer = self.olga.chat().messages.get(int(message or 0))
        given_up = answer is not None and answer.text == texts.GIVEN_UP
        failures = [m.text for m in self._texts() if "failed" in m.text]
        alike = self._rows("SELECT detail FROM occurrences WHERE state = 'failed'").count((detail,))
        named = any(word in text for text in failures)  # a summary's word stands in no notice
        return given_up or named or sum(detail in text for text in failures) >= alike > 0

    def _check_ticks(self, tick: int) -> None:
        """Every two seconds a row, from the first to the last."""
        due = self._rows(
            f"SELECT due_at, state FROM occurrences WHERE job = {tick} ORDER BY due_at"
        )
        times = [at for at, _ in due]
        every = list(range(times[0], times[-1] + 1, TICK_SECONDS))
        self._wrong_unless(times == every, "a tick is missing")
        done = sum(state == "done" for _, state in due)
        doubtful = sum(state == "failed" for _, state in due)
        came = sum(m.text == "⏰ tick" for m in self._texts())
        within = done <= came <= done + doubtful
        self._wrong_unless(within, f"{came} ticks came, {done} are done, {doubtful} in doubt")

    def _wrong_unless(self, right: bool, what: str) -> None:
        if not right:
            self.report.wrong.append(what)


_OPEN = """
SELECT 'occurrence', id, job, state, attempts, turn, outbox, detail FROM occurrences
    WHERE state IN ('due', 'running')
UNION ALL SELECT 'outbox', id, state, attempts, not_before, error, turn, payload FROM outbox
    WHERE state IN ('waiting', 'sending') OR (state = 'uncertain' AND notice_id = '')
UNION ALL SELECT 'job', id, kind, state, next_at, task, '', '' FROM jobs WHERE state = 'active'"""


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(time.time() + seconds + 0.5), UTC)


async def campaign(kills: int, seed: int) -> Report:
    with tempfile.TemporaryDirectory(prefix="vj") as folder:
        async with Localgram(TOKEN) as gram, ModelServer(n_ctx=32_768) as model:
            return await Campaign(gram, model, Path(folder), seed).run(kills)


def prepare(folder: Path, site: Path) -> None:
    for path in (folder, folder / "state", site):
        path.mkdir(exist_ok=True)
    folder.chmod(0o755)
    git(site, "init", "-q", "-b", "main")
    commit(site, "start")
    config = folder / "state" / "config" / "voltaire" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[agent.repos.site]\npath = "{site}"\n')


def commit(site: Path, word: str) -> None:
    (site / f"{len(list(site.iterdir()))}.txt").write_text("x\n")
    git(site, "add", "-A")
    git(site, "commit", "-q", "-m", f"Work on {word}")


def git(site: Path, *arguments: str) -> None:
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "-C", site, *who, *arguments], check=True, capture_output=True)
