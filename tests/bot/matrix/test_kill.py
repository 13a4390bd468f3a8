"""The bot killed with SIGKILL at points of a turn in an encrypted room: each message is answered once, and
the homeserver has read no word. The campaign kills it fifty times in a row."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fakes.bot_process import Process
from fakes.homeserver_proxy import HomeserverProxy
from fakes.matrix_person import MatrixPerson
from fakes.matrix_running import MatrixScenario
from fakes.model_scripted import Json, Line, ModelServer, calls, says
from fakes.patience import SECONDS, soon
from fakes.synapse import PASSWORD, Synapse

pytestmark = pytest.mark.slow
SEND = r"PUT .*/send/m\.room\.encrypted/"


@dataclass
class KillScene:
    """`answer` is what the model says; no other test says it."""

    proxy: HomeserverProxy
    server: Synapse
    olga: MatrixPerson
    process: Process
    model: ModelServer
    account: str
    answer: str = field(default_factory=lambda: f"Answer {secrets.token_hex(8)}.")
    line: Line = field(default_factory=lambda: says("?"))
    room: str = ""

    async def begin(self) -> None:
        """A room with the bot, which has answered there."""
        self.line = says("Here.")
        async with self.process.running():
            self.room = await self.olga.room_with(self.account, encrypted=True)
            await self.olga.say(self.room, "are you there?")
            await self.olga.next(lambda e: e.body == "Here.")
            await self.process.stop()
        self.line = says(self.answer)


@pytest.fixture
async def scene(
    server: Synapse,
    proxy: HomeserverProxy,
    olga: MatrixPerson,
    scenario: MatrixScenario,
    tmp_path: Path,
) -> AsyncIterator[KillScene]:
    model = ModelServer()
    async with model:
        folder = tmp_path / "s"
        folder.mkdir()
        (folder / "password").write_text(PASSWORD)
        process = Process(None, folder, model.url)
        process.first = "# a new interpreter: the tests' own has no live views"
        process.configure(
            MATRIX__HOMESERVER=proxy.url,
            MATRIX__USER=scenario.account,
            MATRIX__PASSWORD_FILE=str(folder / "password"),
            MATRIX__OWNERS=olga.id,
        )
        made = KillScene(proxy, server, olga, process, model, scenario.account)
        model.script = lambda request: made.line
        await made.begin()
        yield made


async def test_killed_with_a_question_open(scene: KillScene) -> None:
    scene.line = calls("schedule", when="every day at 9:00", task="stretch")
    async with scene.process.running():
        await scene.olga.say(scene.room, "remind me daily")
        question = await scene.olga.next(lambda e: "May I do this" in e.body)
    scene.line = says(scene.answer)
    async with scene.process.running():
        await scene.olga.react(scene.room, question.id, "👍")
        await scene.olga.next(lambda e: e.body == scene.answer)
        assert await scene.process.row("SELECT id FROM jobs") == 1
        await scene.process.stop()


ROUNDS = 5
POINTS = (
    *("sync held", "sync late", "inbox written", "model asked", "model streams"),
    *("tool runs", "tool finished", "send held", "send late", "keys late"),
)


@dataclass
class Campaign:
    """Each question `n` is answered by `Answer n`; the model stops at `point` of the question `at`."""

    scene: KillScene
    at: int = -1
    point: str = ""
    tools: dict[int, int] = field(default_factory=dict)  # requests of the model by question

    def script(self, request: Json) -> Line:
        asked = [str(m.get("content")) for m in request["messages"] if m["role"] == "user"]
        number = int(asked[-1].rpartition("question ")[2].split(".")[0])
        answer = f"{self.scene.answer} {number}."
        self.tools[number] = self.tools.get(number, 0) + 1
        if number != self.at:
            return says(answer)
        forever = asyncio.Event().wait
        match self.point:
            case "model asked":
                return says("", hold=forever)
            case "inbox written":
                return says("", hold=forever)
            case "model streams":
                return says(f"The ans {number}", hold=forever)
            case "tool runs" if self.tools[number] == 1:
                return calls("bash", command=f"echo ran >> runs-{number}.txt; sleep 60")
            case "tool finished" if self.tools[number] == 1:
                return calls("bash", command=f"echo ran >> runs-{number}.txt")
            case "tool finished":
                return says("", hold=forever)
        return says(answer)

    async def reached(self) -> None:
        """Ask the question, and return at the point."""
        scene, number = self.scene, self.at
        requests = {
            "sync held": (r"GET .*/sync.*since", "hold"),
            "sync late": (r"GET .*/sync.*since", "late"),
            "send held": (SEND, "hold"),
            "send late": (SEND, "late"),
            "keys late": (r"PUT .*/sendToDevice/", "late"),
        }
        rule = None
        if self.point in requests:
            pattern, act = requests[self.point]
            rule = scene.proxy.rule(pattern, act)  # type: ignore[arg-type]
        await scene.olga.say(scene.room, f"question {number}.")
        if rule:
            await asyncio.wait_for(
                (rule.arrived if rule.act == "late" else rule.reached).wait(), SECONDS
            )
            return
        match self.point:
            case "inbox written":
                await scene.process.row(f"SELECT 1 FROM inbox WHERE words = 'question {number}.'")
            case "model asked":
                await soon(lambda: self.tools.get(number))
            case "model streams":
                await scene.olga.until(
                    lambda: any(f"The ans {number}" in e.body for e in scene.olga.seen)
                )
            case "tool runs":
                folder = scene.process.database.parent
                await soon(lambda: [*folder.glob(f"chats/**/runs-{number}.txt")])
            case "tool finished":
                await soon(lambda: self.tools.get(number) == 2)


@pytest.mark.timeout(3600)
async def test_killed_at_each_of_ten_points_five_times(scene: KillScene) -> None:
    """Synapse is killed with it once in each round."""
    campaign = Campaign(scene)
    scene.model.script = campaign.script
    whole = ROUNDS * len(POINTS)
    for number in range(whole):
        campaign.at, campaign.point = number, POINTS[number % len(POINTS)]
        if campaign.point == "keys late":  # of the first message after a start
            async with scene.process.running():
                await answered(scene, number - 1)
                await delivered(scene)
        async with scene.process.running():
            if number:
                await answered(scene, number - 1)
            await campaign.reached()
        if number % len(POINTS) == number // len(POINTS):
            scene.server.kill()
            scene.server.start()
            await scene.server.answers()
        for rule in scene.proxy.rules:
            rule.times = 0
            rule.released.set()
        campaign.at = -1
        print(f"killed {number + 1:2} of {whole}: {campaign.point}", flush=True)
    async with scene.process.running():
        await answered(scene, whole - 1)
        await scene.olga.say(scene.room, f"question {whole}.")
        await answered(scene, whole)
        states = scene.process._value("SELECT group_concat(DISTINCT state) FROM outbox")
        await scene.process.stop()
    found = [e for e in scene.olga.seen if scene.answer in e.body and e.final]
    assert [e.body for e in found] == [f"{scene.answer} {n}." for n in range(whole + 1)]
    assert all(e.encrypted for e in found) and states == "delivered"
    assert scene.server.stored(scene.answer) == []
    assert not [e for e in scene.olga.seen if e.sender == scene.account and e.unread]
    for runs in scene.process.database.parent.glob("chats/**/runs-*.txt"):
        assert runs.read_text() == "ran\n", runs


async def answered(scene: KillScene, number: int) -> None:
    await soon(lambda: f"{scene.answer} {number}." in scene.olga.finals(scene.room))


async def delivered(scene: KillScene) -> None:
    whole = "SELECT count(*) = 0 FROM outbox WHERE state <> 'delivered'"
    await soon(lambda: scene.process._value(whole))
