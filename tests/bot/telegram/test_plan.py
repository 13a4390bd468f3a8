"""The plan of a task: kept by the model in its shell, seen and corrected by the person."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.messages import ToolResult
from agent.model import Request
from agent.sandbox.sandbox import Sandboxes
from agent.tools.bash import bash
from bot.localgram import Message
from fakes.bot_running import RunningBot, TelegramScenario
from fakes.model_scripted import Reply, calls, says
from fakes.patience import soon
from fakes.sandbox_box import opened

SHELL = 'plan set "read the log" "find the cause" && plan add "write   the fix" && plan done 1'


@pytest.fixture
async def sandboxes(tmp_path: Path) -> AsyncIterator[Sandboxes]:
    async with opened(tmp_path / "state") as made:
        yield made


@pytest.fixture
def planning(scenario: TelegramScenario, sandboxes: Sandboxes) -> TelegramScenario:
    """The model runs what it is asked to run, word for word."""

    def script(request: Request) -> Reply:
        last = request.messages[-1]
        if isinstance(last, ToolResult):
            return says("So far.")
        words = last.text.rpartition("</context>\n")[2]
        return calls("bash", command=words) if words.startswith("plan") else says("Hello.")

    scenario.sandbox, scenario.tools, scenario.script = sandboxes.of, [bash], script
    return scenario


def last_result(run: RunningBot) -> str:  # type: ignore[type-arg]
    return run.model.requests[-1].messages[-1].text


def is_checklist(message: Message) -> bool:
    return message.text.startswith("☑ read the log\n☐ find the cause\n☐ write the fix")


async def test_the_person_sees_its_steps_and_they_stay(planning: TelegramScenario) -> None:
    async with planning.open() as run:
        await planning.owner.ask(SHELL)
        assert "1. [x] read the log\n2. [ ] find the cause\n3. [ ] write the fix" in last_result(
            run
        )
        await soon(lambda: any(map(is_checklist, planning.owner.messages())))


async def test_the_next_turn_begins_with_what_is_left_of_it(planning: TelegramScenario) -> None:
    async with planning.open() as run:
        await planning.owner.ask(SHELL)
        await planning.owner.ask("hello")
        head = run.model.requests[-1].messages[-1].text
        assert "\nplan:\n1. [x] read the log\n2. [ ] find the cause\n3. [ ] write the fix\n" in head
        await planning.owner.ask("hello again")
        assert "plan:" not in run.model.requests[-1].messages[-1].text


async def test_the_person_corrects_it(planning: TelegramScenario) -> None:
    owner = planning.owner
    async with planning.open() as run:
        assert "no plan" in (await owner.ask("/plan")).text
        await owner.ask(SHELL)
        assert "2. [ ] ask Anna" in (await owner.ask("/plan 2 ask Anna")).text
        assert "4. [ ] tell me" in (await owner.ask("/plan add tell me")).text
        assert "4. [x] tell me" in (await owner.ask("/plan done 4")).text
        assert "no step 9" in (await owner.ask("/plan 9 x")).text
        await owner.ask("plan")
        assert "2. [ ] ask Anna" in last_result(run)
        assert "no plan" in (await owner.ask("/plan end")).text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param("plan set " + "s " * 21, "at most 20 steps", id="too many"),
        pytest.param(f"plan set {'x' * 201}", "at most 200 characters", id="too long"),
        pytest.param("plan done 1", "There is no plan", id="none"),
    ],
)
async def test_a_wrong_use_gets_one_sentence(
    planning: TelegramScenario, words: str, told: str
) -> None:
    async with planning.open() as run:
        await planning.owner.ask(words)
        assert told in last_result(run)
        assert await run.store.plans.of_chat(f"tg:{planning.owner.id}") == ()
