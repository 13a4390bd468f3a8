"""The night shift: real workspaces and turns, a model that follows a script, a clock that is set."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any, cast

import pytest

from agent.agent import Agent, AgentConfig, open_agent
from agent.budgets import WORDS
from agent.channels import NoChannels
from agent.context.user_message import render
from agent.evaluate.runner import gpu_power
from agent.events import TokenUsage
from agent.messages import Assistant, ToolResult
from agent.model import Request
from agent.sandbox.limits import HostRepo
from agent.schedule.night import Attempt, Night, best, meaning, report
from agent.schedule.scheduler import NIGHT, JobRunner, QuietHours
from agent.store import Incoming, Store, open_store
from agent.store.jobs import Job
from agent.store.turns import TurnEnd
from backend.client import BackendClient
from backend.protocol import PERSON
from bot.night_shift import night_shift
from fakes.gpu_queue_local import LocalGpuQueue
from fakes.model_scripted import Reply, Script, ScriptedModel, calls, says
from fakes.page_state import CardBackend, backend_with_card
from fakes.patience import SECONDS
from fakes.sandbox_box import repository
from tests.agent.schedule.conftest import Clock
from tests.agent.schedule.test_job_runner import deliver

CHAT = "tg:1"
HOUR = 3600
EVENING = datetime(2026, 11, 20, 20, tzinfo=UTC).timestamp()


class Channels(NoChannels):
    def payload(self, text: str) -> str:
        return json.dumps({"text": text})


@dataclass
class House:
    agent: Agent
    store: Store
    clock: Clock
    model: ScriptedModel
    card: CardBackend
    busy: bool = False

    def __post_init__(self) -> None:
        self.agent.model = cast(Any, self.model)
        self.agent.window.queue = self.queue = LocalGpuQueue()
        shift = night_shift(self.agent, lambda: self.busy)
        self.runner = JobRunner(self.store, {NIGHT: shift}, self.agent.channels)

    async def plan(self, words: str) -> Job:
        planner = await self.agent.planner(CHAT, "UTC")
        return await planner.work_tonight(words, None, "")

    async def look(self, at: float) -> str:
        """A pass at that hour of the night; what became of the newest run."""
        self.clock.now = EVENING + at * HOUR
        async with asyncio.TaskGroup() as tasks:
            await self.runner.run_pass(tasks)
        jobs = await self.store.jobs.of_chat(CHAT)
        runs = await self.store.occurrences.of_job(jobs[-1].id, 1) if jobs else []
        return f"{runs[0].state}: {runs[0].detail}" if runs else ""

    async def told(self) -> list[str]:
        return [json.loads(row.payload)["text"] for row in await deliver(self.store, CHAT)]

    async def files(self) -> dict[str, str]:
        work = (await self.agent.sandboxes.of(CHAT)).workspace
        found = [path for path in work.rglob("*") if path.is_file()]
        return {str(path.relative_to(work)): path.read_text() for path in found}


@asynccontextmanager
async def opened(tmp: Path, script: Script, **night: Any) -> AsyncIterator[House]:
    """A house with a repository that may be written to."""
    clock = Clock(EVENING)
    site = tmp / "site"
    if not site.exists():
        repository(site, {"a.txt": "a\n"}, uid=1000 if os.geteuid() == 0 else -1)
    config = AgentConfig(
        state_dir=tmp / "state",
        repos=[HostRepo("site", site, write=True)],
        calendars={"work": {"url": "http://127.0.0.1:9/"}},
        budgets=dict.fromkeys(WORDS, 100_000),
        night=Night(QuietHours(time(1), time(6), "UTC"), **night),
    )
    async with (
        backend_with_card(tmp / "b.sock") as card,
        BackendClient(tmp / "b.sock") as backend,
        open_store(tmp / "s.db", clock) as store,
        open_agent(config, backend, store, Channels()) as agent,
    ):
        yield House(agent, store, clock, ScriptedModel(script), card)


def in_turn(*answers: str, command: str = "") -> Script:
    """Each attempt runs the command, if there is one, and gives the next of the answers."""
    left = list(answers)

    def script(request: Request) -> Reply:
        if command and not isinstance(request.messages[-1], ToolResult):
            return calls("bash", command=command.format(number=len(answers) - len(left) + 1))
        return says(left.pop(0))

    return script


async def test_the_answer_of_most_attempts_is_told_in_the_morning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = asyncio.Event()

    async def power(backend: BackendClient) -> float | None:
        watts = await gpu_power(backend)
        measured.set()
        return watts

    monkeypatch.setattr("agent.evaluate.runner.gpu_power", power)
    answers = iter(("It is 42.", "It is 41!", "it is 42", "Hm.", "It is **42**."))

    def script(request: Request) -> Reply:
        return says(next(answers), hold=measured.wait)

    async with opened(tmp_path, script, price=0.4) as house:
        await house.plan("What is six times seven?")
        house.runner.quiet = QuietHours.parse("00:30-06:30", "UTC")  # they hold what speaks
        assert await house.look(4) == "", "midnight is not yet night"
        for number in range(1, 6):
            assert await house.look(5 + number / 12) == f"done: attempt {number}"
        assert await house.look(6) == "done: attempts: 5"
        assert await house.told() == []
        await house.look(10)
        (told,) = await house.told()
        assert told.startswith(
            "🌙 What is six times seven?\n\nIt is 42.\n\n3 of 5 attempts gave this"
        )
        assert "It ran no command." in told and " Wh, 0.00 at 0.4 a kWh." in told
        assert [r.sampling for r in house.model.requests] == [{}, *4 * [{"temperature": 0.5}]]
        await house.look(34)
        assert await house.told() == []
        assert (await house.store.jobs.of_chat(CHAT))[0].spec.state == "ended"


async def test_what_was_run_decides_and_the_best_ones_files_are_kept(tmp_path: Path) -> None:
    command = "cat before.txt night*/*/*; echo {number} > made.txt; test {number} = 2; code=$?; echo x >> /repos/site/a.txt; (exit $code)"
    async with opened(
        tmp_path, in_turn(*"same same other same same".split(), command=command)
    ) as house:
        work = (await house.agent.sandboxes.of(CHAT)).workspace
        (work / "before.txt").write_text("theirs")
        await house.plan("Mend it")
        for number in range(5):
            await house.look(5 + number / 12)
        assert (await house.files())["before.txt"] == "theirs"
        await house.look(10)
        (told,) = await house.told()
        assert "Commands that it ran: 1; the last one ended without an error." in told
        assert "Its files: `night-1/2/made.txt`." in told
        (job,) = await house.store.jobs.of_chat(CHAT)
        kept = json.loads(await house.store.jobs.seen(job.id))["attempts"]
        assert len({each["digest"] for each in kept}) == 5, "each wrote another file"
        assert await house.files() == {
            "before.txt": "theirs",
            **{f"night-1/{number}/made.txt": f"{number}\n" for number in range(1, 6)},
        }
        assert (tmp_path / "site" / "a.txt").read_text() == "a\n"
        ran = [
            r.messages[-1] for r in house.model.requests if isinstance(r.messages[-1], ToolResult)
        ]
        assert [each.text.startswith("theirscat: 'night*") for each in ran] == 5 * [True]
        assert [p.name for p in (tmp_path / "state/chats").iterdir() if "night" in p.name] == []
        assert await house.store.inbox.count_waiting() == 0


@pytest.mark.parametrize(
    ("by_day", "later"), [({"temperature": 0.7}, {"temperature": 0.7}), ({"top_p": 0.9}, {})]
)
async def test_a_warmer_or_unknown_temperature_stays(
    tmp_path: Path, by_day: dict[str, float], later: dict[str, float]
) -> None:
    async with opened(tmp_path, in_turn("a", "b"), attempts=2) as house:
        house.card.sampling = by_day
        await house.plan("Count")
        for number in range(2):
            await house.look(5 + number / 12)
        assert [r.sampling for r in house.model.requests] == [{}, later]


async def test_what_asks_is_denied_and_what_would_be_done_five_times_is_not_there(
    tmp_path: Path,
) -> None:
    asks = [
        calls("schedule", when="tomorrow at 9", task="ring"),
        calls("remember", text="x"),
        calls("bash", command="curl -s http://example.org"),
        calls("bash", command="calendar add Tea --at 2026-12-24"),  # no yes for ever helps
        says("done"),
    ]
    async with opened(
        tmp_path, lambda request: asks[sum(isinstance(m, ToolResult) for m in request.messages)]
    ) as house:
        await house.plan("Try everything")
        await house.look(5.01)
        results = [m for m in house.model.requests[-1].messages if isinstance(m, ToolResult)]
        assert len(results) == 4 and "There is no calendar" in results[3].text
        assert len(await house.store.jobs.of_chat(CHAT)) == 1
        assert await house.store.notes.to_show(CHAT) == ([], {})


async def test_warm_dear_and_busy_hours_are_left_alone(tmp_path: Path) -> None:
    price = tmp_path / "price"
    price.write_text("0.31\n")
    script = in_turn("late")
    async with opened(
        tmp_path, script, attempts=1, price_file=price, most_price=0.2, most_celsius=60
    ) as house:
        await house.plan("Wait")
        assert await house.look(5.01) == "done: The card is at 61 °C."
        object.__setattr__(house.agent.config.night, "most_celsius", 70)
        assert await house.look(5.1) == "done: The price is too high."
        price.write_text("0.19")
        house.busy = True
        assert await house.look(5.2) == "done: Somebody is being answered."
        house.busy = False
        assert await house.look(5.3) == "done: attempt 1"
        assert await house.look(20) != ""
        assert "1 of 1 attempts" in (await house.told())[0]


async def test_without_any_such_hour_it_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path, in_turn("never"), most_celsius=10) as house:
        await house.plan("Wait")
        for day in range(4):
            await house.look(24 * day + 5.01)
            await house.look(24 * day + 10)
        (told,) = await house.told()
        assert "No hour of the nights since then allowed it." in told and house.model.requests == []


async def test_it_gives_way_to_people_at_once(tmp_path: Path) -> None:
    begun, never = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        begun.set()
        await never.wait()

    replies = [says("half", hold=hold), says("whole")]
    async with opened(tmp_path, lambda request: replies.pop(0), attempts=1) as house:
        await house.plan("Count")
        looking = asyncio.create_task(house.look(5.01))
        await asyncio.wait_for(begun.wait(), SECONDS)
        async with asyncio.timeout(SECONDS), house.queue("tg:2", PERSON, None):
            assert len(house.model.requests) == 1, "it waits while a person is answered"
        assert await looking == "done: attempt 1"
        await house.look(10)
        assert "\n\nwhole\n\n" in (await house.told())[0]


async def test_a_wish_that_is_cancelled_in_an_attempt_tells_nothing(tmp_path: Path) -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        begun.set()
        await goes_on.wait()

    async with opened(tmp_path, lambda request: says("late", hold=hold)) as house:
        job = await house.plan("Count")
        looking = asyncio.create_task(house.look(5.01))
        await asyncio.wait_for(begun.wait(), SECONDS)
        await (await house.agent.planner(CHAT, "UTC")).remove(job.id)
        goes_on.set()
        await looking
        for hour in (5.2, 5.4, 10):
            await house.look(hour)
        assert await house.told() == [] and len(house.model.requests) == 1


async def test_an_attempt_that_has_no_room_for_its_files_is_told_once(tmp_path: Path) -> None:
    async with opened(tmp_path, in_turn(), attempts=2) as house:
        work = (await house.agent.sandboxes.of(CHAT)).workspace
        job = await house.plan("Count")
        (work.parents[1] / f"night-{job.id}").write_text("in the way")
        for hour in (5.01, 5.1, 5.2, 10):
            await house.look(hour)
        (told,) = await house.told()
        assert "Not a directory" in told and house.model.requests == []


def run_until_killed(tmp: Path, at: float, write: int) -> None:
    """A process that makes attempts, each told by a byte; the third and later calls of the model never end."""

    async def run() -> None:
        async def forever() -> None:
            os.write(write, b"h")
            await asyncio.Event().wait()

        def script(request: Request) -> Reply:
            held = len(house.model.requests) > 1
            return says(f"by {os.getpid()}", hold=forever if held else None)

        async with opened(tmp, script) as house:
            for number in range(2):
                await house.look(at + number / 12)

    try:
        asyncio.run(run())
    finally:
        os._exit(1)


async def test_killed_between_attempts_it_goes_on_where_it_was(tmp_path: Path) -> None:
    async with opened(tmp_path, in_turn()) as house:
        await house.plan("Count")
    pids = []
    for number in range(3):  # each makes one attempt, and is killed in the next
        read, write = os.pipe()
        if not (child := os.fork()):
            run_until_killed(tmp_path, 5 + number / 3, write)
        os.close(write)
        await asyncio.to_thread(os.read, read, 1)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)
        pids.append(child)
    async with opened(tmp_path, in_turn("fourth", "fifth", "too many")) as house:
        for number in range(3):
            await house.look(7 + number / 12)
        (job,) = await house.store.jobs.of_chat(CHAT)
        kept = json.loads(await house.store.jobs.seen(job.id))["attempts"]
        assert [each["text"] for each in kept] == [
            *(f"by {pid}" for pid in pids),
            "fourth",
            "fifth",
        ]
        await house.look(10)
        await house.store.jobs.set_state(job.id, "active")  # as a kill before its end leaves it
        await house.store.occurrences.trigger(job.id, "")
        await house.look(10.1)
        assert len(await house.told()) == 1


async def test_the_conversation_is_read_as_it_was(tmp_path: Path) -> None:
    async with opened(tmp_path, in_turn("again"), attempts=1) as house:
        store = house.store
        asked = Incoming(CHAT, "telegram", "1", "and then?", ref="7", author="111")
        await store.inbox.add(asked)

        rows = await store.inbox.waiting(CHAT)
        rendered = await render(house.agent.window, rows, "UTC")
        turn = await store.turns.begin("t1", rows, rendered)
        await store.turns.end(turn, TurnEnd(Assistant("wrong"), "wrong", "done", TokenUsage()))
        found = await store.turns.of_message(CHAT, "7", "111")
        assert found and found.id == "t1"
        assert await store.turns.of_message(CHAT, "7", "222") is None
        planner = await house.agent.planner(CHAT, "UTC")
        job = await planner.work_tonight("and then?", found, "")
        assert await planner.work_tonight("and then?", found, "") == job, "once"
        await house.look(5.01)
        (request,) = house.model.requests
        assert [type(m).__name__ for m in request.messages] == ["System", "User"]
        assert request.messages[1] == rendered.message


def answered(text: str, **fields: Any) -> Attempt:
    return Attempt(text, fields.pop("reason", "done"), **fields)


def test_which_attempt_is_the_best() -> None:
    def chosen(*attempts: Attempt) -> tuple[int, int]:
        return best("q", attempts)

    assert chosen(answered("a b"), answered("c"), answered("C.")) == (1, 2)
    assert chosen(answered("x", failed=True), answered("x", failed=True), answered("y")) == (2, 1)
    assert chosen(answered("no time", reason="tool_limit"), answered("fine")) == (1, 1)
    assert chosen(answered("blue"), answered("red car"), answered("a red car")) == (0, 1)
    refuses = [answered("I cannot run that."), answered("I cannot run that.")]
    assert chosen(answered("55", commands=1), *refuses) == (0, 1)
    assert chosen(answered("no such file", commands=1, failed=True), *refuses[1:]) == (0, 1)
    told = report("q", [answered("a"), answered("b", watt_hours=1.5)], 0)
    assert "1 of 2 attempts gave this answer" in told and "cost 1.5 Wh." in told
    assert "no card tells its power" in report("q", [answered("a")], 0)


@pytest.mark.parametrize(
    ("task", "answers", "groups"),
    [
        (
            "how much is 17 times 23?",
            ["391", "17 times 23 is **391**.", "It's 381.", "Here it is:\n\n391.0"],
            "aabc",
        ),
        (
            "how many people live there",
            ["1,234,567", "1234567 people.", "1.5 million", "15 million"],
            "aabc",
        ),
        ("is 9.11 more than 9.9?", ["No, 9.9 is more.", "Yes.", "9.11 is more"], "abc"),
        (
            "What is the capital of Australia?",
            ["Canberra.", "The capital of Australia is Canberra.", "It is Sydney"],
            "aab",
        ),
        ("is it running", ["It is running.", "It is not running."], "ab"),
        ("rank them", ["1. Alice, then Carol", "1. Carol, then Alice " + 30 * "and so on "], "ab"),
        ("who came first", ["Alice, then Carol", "Carol, then Alice"], "ab"),
    ],
)
def test_which_answers_are_one(task: str, answers: list[str], groups: str) -> None:
    meanings = [meaning(task, answered(answer)) for answer in answers]
    assert [*map(meanings.index, meanings)] == [*map(groups.index, groups)]


def test_files_decide_where_no_figure_does() -> None:
    mended = [answered("Done.", digest="a"), answered("Done.", digest="b")]
    mended.append(answered("I changed the parser.", digest="b"))
    assert best("mend it", mended) == (1, 2)
    mended = [answered("It is 55.", digest="a"), answered("55", digest="b")]
    assert best("write it and tell me the sum", mended) == (0, 2)


@pytest.mark.parametrize(
    ("hours", "expression"),
    [
        ("01:00-06:00", "*/5 1,2,3,4,5,6,7 * * *"),
        ("23:30-02:00", "*/5 23,0,1,2,3 * * *"),
        ("22:00-05:58", "*/5 22,23,0,1,2,3,4,5,6 * * *"),
    ],
)
def test_its_job_falls_due_until_the_hour_after_the_night(hours: str, expression: str) -> None:
    assert Night(cast(QuietHours, QuietHours.parse(hours, "UTC"))).rule.expression == expression
