"""The card is lent while people write and plans fall due: the whole agent over the real model server."""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.agent import Agent
from agent.channels import Assignment, NoChannels
from agent.chats.chats import Chats
from agent.events import Emit, Event, Notice, TurnFinished
from agent.schedule.planner import JobClassifier, Planner
from agent.schedule.scheduler import JobRunner, SubmitTask, remind
from agent.store import Incoming
from agent.turn.turn import TurnTime
from backend.config import BackendConfig
from bot.agent_config import open_agent
from bot.job_actions import run_watch
from bot.settings import Settings, StateSection
from fakes.backend_running import running
from fakes.gguf_chain import make_chain
from fakes.patience import soon
from fakes.words import saying

CHAT = "one"


class Channels(NoChannels):
    def payload(self, text: str) -> str:
        return json.dumps({"text": text})


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder whose path is short enough for a UNIX socket."""
    folder = Path(tempfile.mkdtemp(prefix="vl"))
    yield folder
    shutil.rmtree(folder)


async def pass_jobs(agent: Agent) -> list[str]:
    """A pass over a reminder and a watch that are due; what is to be sent then."""
    watch = run_watch(agent, SubmitTask(agent.store.inbox.add))
    runner = JobRunner(agent.store, {"remind": remind, "watch": watch}, Channels())
    planner = Planner(agent.store, CHAT, "UTC", JobClassifier([]))
    for when, task in (("in 1 minute", "tea"), ("every 10 minutes", "watch file tea.txt")):
        job = await planner.add((await planner.propose(when, task, made_by="person")).spec)
        (await agent.sandboxes.of(CHAT)).workspace.joinpath("tea.txt").write_text(task)
        await planner.run_now(job.id)
        async with asyncio.TaskGroup() as tasks:
            await runner.run_pass(tasks)
    async with asyncio.TaskGroup() as tasks:
        await runner.run_pass(tasks)
    async with agent.store.database.read() as tx:
        return [str(payload) for (payload,) in await tx.all("SELECT payload FROM outbox")]


async def test_who_writes_is_told_once_until_when_and_answered_when_it_is_back(state: Path) -> None:
    events: list[Event] = []

    def heard(kind: type[Event]) -> list[Event]:
        return [event for event in events if isinstance(event, kind)]

    model = make_chain(state / "m.gguf", "Hello.")
    config = BackendConfig(state_dir=state / "b", model=str(model), server="embedded")
    settings = Settings(state=StateSection(dir=state / "a"))
    async with running(config) as it, open_agent(settings, it.client) as agent:
        await it.ready()

        async def run(assignment: Assignment, emit: Emit) -> TurnFinished:
            def hear(event: Event) -> None:
                events.append(event)
                emit(event)

            return await agent.run(assignment, hear)

        async with Chats(agent.store, run, agent.window, Channels()) as chats:
            assert await it.client.lend(3600) == saying("unloaded until")
            await chats.submit(Incoming(CHAT, "test", "1", "hello"))
            await soon(lambda: heard(Notice))
            sent = await pass_jobs(agent)
            assert not heard(TurnFinished)
            await it.client.lend(0)
            await soon(lambda: heard(TurnFinished))
    told = [event.text for event in events if isinstance(event, Notice)]
    (finished,) = [event for event in events if isinstance(event, TurnFinished)]
    assert told[0] == saying("The card is lent until", "messages wait")
    assert [text for text in told if "lent" in text] == told[:1]
    assert (finished.reason, finished.text) == ("done", "Hello.")
    assert "tea" in sent[0]


async def test_the_time_of_a_turn_stands_still_while_no_model_can_be_asked() -> None:
    time = TurnTime()
    async with time.limit(1.0), time.limit(0.5):
        time.stand_still(True)
        time.stand_still(True)
        await asyncio.sleep(0.7)
        time.stand_still(False)
        assert 0 < time.left <= 0.5
    with pytest.raises(TimeoutError):
        async with time.limit(0.01):
            time.stand_still(True)
            time.stand_still(False)
            await asyncio.Event().wait()
