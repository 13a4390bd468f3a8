"""Killed with SIGKILL at named points of a turn, and started again: answered once, or told.

By day at five of them: received, streaming, a tool's end, a send in doubt, a question; at all by make test-long.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from agent.chats.chats import RESUMES
from bot.localgram.feed import Drafted
from fakes.bot_process import Process
from fakes.bot_running import OWNER
from fakes.localgram import Localgram, Person, is_final
from fakes.model_scripted import Json, Line, ModelServer, calls, says
from fakes.patience import SECONDS, soon
from fakes.words import saying


class Scene:
    """A person, a process, a model that can be held."""

    def __init__(self, gram: Localgram, folder: Path) -> None:
        self.gram = gram
        self.olga: Person = gram.user("Olga Owner", id=OWNER, started=True)
        self.model = ModelServer(script=self._script)
        self.line: Line = says("The answer.")
        self.folder = folder
        self._process: Process | None = None

    def _script(self, request: Json) -> Line:
        return self.line

    @property
    def process(self) -> Process:
        self._process = self._process or Process(self.gram, self.folder, self.model.url, OWNER)
        return self._process

    def answers(self) -> list[str]:
        return [m.text for m in self.olga.messages() if m.sender.is_bot and is_final(m)]

    def hold(self, text: str = "The answer.") -> None:
        """From now on the model says this, and never comes to the end."""
        self.line = says(text, hold=asyncio.Event().wait)

    async def restarted(self) -> list[str]:
        """Start again, say one thing more, and give all final answers once that is answered."""
        self.line = says("The answer.")
        async with self.process.running():
            await self.process.row("SELECT 1 FROM inbox WHERE state = 'done'")
            self.line = says("Bye.")
            await self.olga.send("bye")
            await self.olga.next_message(where=lambda m: m.text == "Bye.")
            await self.process.stop()
        return self.answers()


@pytest.fixture
async def scene(gram: Localgram, tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(gram, tmp_path)
    async with scene.model:
        yield scene


@pytest.mark.slow
async def test_killed_with_an_update_on_its_way(scene: Scene) -> None:
    with scene.gram.hold("getUpdates", executed=True) as hold:
        async with scene.process.running():
            await scene.olga.send("hi")
            await hold.reached()
    assert await scene.restarted() == ["The answer.", "Bye."]


async def test_killed_with_an_update_received_and_not_yet_kept(scene: Scene) -> None:
    async with scene.process.running():
        await soon(lambda: scene.gram.world.updates.polls > 1)
        with closing(sqlite3.connect(scene.process.database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            polls = scene.gram.world.updates.polls
            await scene.olga.send("hi")
            await soon(lambda: scene.gram.called("getMe"))
            await asyncio.sleep(0.2)
            assert scene.gram.world.updates.polls <= polls + 1
            await scene.process.kill()
    assert await scene.restarted() == ["The answer.", "Bye."]


@pytest.mark.slow
async def test_killed_with_the_inbox_written(scene: Scene) -> None:
    scene.hold()
    async with scene.process.running():
        await scene.olga.send("hi")
        await scene.process.row("SELECT 1 FROM inbox")
    assert await scene.restarted() == ["The answer.", "Bye."]


@pytest.mark.slow
async def test_killed_with_the_model_asked(scene: Scene) -> None:
    scene.hold("")
    async with scene.process.running():
        await scene.olga.send("hi")
        await asyncio.wait_for(scene.model.asked.wait(), SECONDS)
    assert await scene.restarted() == ["The answer.", "Bye."]


async def test_killed_while_the_model_streams(scene: Scene) -> None:
    scene.hold("The ans")
    async with scene.process.running():
        await scene.olga.send("hi")
        await scene.olga.event(lambda e: e if isinstance(e, Drafted) and e.text else None)
    assert await scene.restarted() == ["The answer.", "Bye."]


@pytest.mark.slow
async def test_killed_while_a_tool_runs(scene: Scene) -> None:
    scene.line = calls("bash", command="echo ran >> runs.txt; sleep 60")
    async with scene.process.running():
        await scene.olga.send("run it")
        runs = await soon(lambda: [*scene.folder.glob("chats/**/runs.txt")])
    assert await scene.restarted() == ["The answer.", "Bye."]
    assert runs[0].read_text() == "ran\n"
    told = {
        m["content"] for r in scene.model.requests for m in r["messages"] if m["role"] == "tool"
    }
    assert [text[:12] for text in told] == ["interrupted:"]


async def test_killed_with_a_tool_finished(scene: Scene) -> None:
    def script(request: Json) -> Line:
        scene.hold()
        return calls("bash", command="echo ran >> runs.txt")

    scene.model.script = lambda request: (
        script(request) if len(scene.model.requests) == 1 else scene.line
    )
    async with scene.process.running():
        await scene.olga.send("run it")
        await soon(lambda: len(scene.model.requests) == 2)
    assert await scene.restarted() == ["The answer.", "Bye."]
    (runs,) = scene.folder.glob("chats/**/runs.txt")
    assert runs.read_text() == "ran\n"


@pytest.mark.slow
async def test_killed_with_a_send_in_flight_that_never_arrived(scene: Scene) -> None:
    with scene.gram.hold("sendMessage") as hold:
        async with scene.process.running():
            await scene.olga.send("hi")
            await hold.reached()
    await _told_and_shown_once(scene, there=False)


async def test_killed_with_a_send_that_arrived_unanswered(scene: Scene) -> None:
    with scene.gram.hold("sendMessage", executed=True) as hold:
        async with scene.process.running():
            await scene.olga.send("hi")
            await hold.reached()
    await _told_and_shown_once(scene, there=True)


async def _told_and_shown_once(scene: Scene, *, there: bool) -> None:
    """One notice; after its button, where the text is missing, exactly one copy."""
    assert scene.answers() == (["The answer."] if there else [])
    async with scene.process.running():
        notice = await scene.olga.next_message(where=lambda m: m.keyboard)
        if not there:
            await scene.olga.press(notice, "Show again")
            await scene.olga.next_message(where=lambda m: m.text == "The answer.")
        await scene.process.stop()
    assert [a for a in scene.answers() if a == "The answer."] == ["The answer."]
    assert len([m for m in scene.olga.messages() if m.text.startswith("I could not tell")]) <= 1


@pytest.mark.slow
async def test_killed_with_an_answer_delivered_but_the_update_unacknowledged(scene: Scene) -> None:
    async with scene.process.running():
        await soon(lambda: scene.gram.world.updates.polls > 1)
        with scene.gram.hold("getUpdates") as hold:
            await scene.olga.send("hi")
            await scene.olga.next_message(where=is_final)
            await hold.reached()
            await scene.process.row("SELECT 1 FROM outbox WHERE state = 'delivered'")
            await scene.process.kill()
    assert await scene.restarted() == ["The answer.", "Bye."]


@pytest.mark.slow
async def test_killed_between_two_parts_of_an_answer(scene: Scene) -> None:
    text = "\n\n".join(f"Part {n} " + "word " * 100 for n in range(12))
    scene.line = says(text, size=5000)
    with scene.gram.hold("sendMessage") as first:
        async with scene.process.running():
            await scene.olga.send("long")
            await first.reached()
            with scene.gram.hold("sendMessage") as second:
                first.release()
                await second.reached()
                await scene.process.kill()
    scene.line = says("Bye.")
    async with scene.process.running():
        notice = await scene.olga.next_message(where=lambda m: m.keyboard)
        await scene.olga.press(notice, "Show again")
        await scene.olga.next_message(where=lambda m: "Part 11" in m.text)
        await scene.process.stop()
    parts = [answer for answer in scene.answers() if answer.startswith("Part")]
    assert "".join("".join(part.split()) for part in parts) == "".join(text.split())


async def test_killed_with_a_question_open(scene: Scene) -> None:
    scene.line = calls("schedule", when="every day at 9:00", task="stretch")
    async with scene.process.running():
        await scene.olga.send("remind me daily")
        question = await scene.olga.next_message(where=lambda m: m.keyboard)
    scene.line = says("The answer.")
    async with scene.process.running():
        await scene.olga.press(question, "Allow once")
        await scene.olga.next_message(where=is_final)
        results = [
            m["content"] for m in scene.model.requests[-1]["messages"] if m["role"] == "tool"
        ]
        assert [result[:16] for result in results] == ["Planned as job 1"]
        assert await scene.process.row("SELECT id FROM jobs") == 1
        await scene.process.stop()
    # A decided question loses its buttons and says who decided; it is no answer.
    (answer,) = [text for text in scene.answers() if "Allowed once by" not in text]
    assert answer == saying("The answer.", "stretch", "every day at 09:00")


DIES = """
import os
from {module} import {name} as place
def dying(*given, was=place.{function}, **named):
    if "boom" in str(given):
        os._exit(9)
    return was(*given, **named)
place.{function} = dying
"""
DEATHS = [("bot", "intake", "receive"), ("agent.context", "user_message", "render")]


@pytest.mark.slow
@pytest.mark.parametrize("death", DEATHS)
async def test_a_message_at_which_the_program_dies_three_times_is_set_aside_and_told(
    scene: Scene, death: tuple[str, str, str]
) -> None:
    module, name, function = death
    scene.process.first = DIES.format(module=module, name=name, function=function)
    await scene.olga.send("boom")
    deaths = 0
    while True:
        async with scene.process.running():
            await scene.olga.send(f"after {deaths}")
            answered = asyncio.ensure_future(scene.olga.next_message(where=is_final))
            ended = asyncio.ensure_future(scene.process.ended())
            await asyncio.wait([answered, ended], return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                ended.cancel()
                await soon(lambda: any("set aside" in m.text for m in scene.olga.messages()))
                break
            answered.cancel()
            deaths += 1
    assert deaths == 3


@pytest.mark.slow
async def test_a_turn_at_which_the_program_dies_again_and_again_is_given_up_and_told(
    scene: Scene,
) -> None:
    scene.process.first = DIES.format(module="agent.llm.openai", name="chunks", function="parse")
    scene.line = says("boom", size=100)
    await scene.olga.send("hi")
    for _ in range(RESUMES + 1):
        async with scene.process.running(), asyncio.timeout(SECONDS):
            await scene.process.ended()
    scene.line = says("The answer.")
    async with scene.process.running():
        given_up = await scene.olga.next_message(where=is_final)
        assert "/retry" in given_up.text
        await scene.olga.send("and now?")
        answer = await scene.olga.next_message(where=is_final)
        assert answer.text == "The answer."
        await scene.process.stop()
