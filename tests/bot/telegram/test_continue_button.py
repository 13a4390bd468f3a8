"""A turn that ends at a limit, and the button that goes on."""

from agent.messages import User
from agent.tools.tool import Call, Output, tool
from agent.turn.texts import CIRCLING
from bot.texts import Texts
from fakes.bot_running import TelegramScenario
from fakes.localgram import is_final
from fakes.model_scripted import calls, says

TEXTS = Texts()


@tool
async def look(call: Call) -> Output:
    """Look."""
    return Output("nothing new")


async def test_a_turn_that_ran_in_circles_goes_on_at_a_press_once(
    scenario: TelegramScenario,
) -> None:
    scenario.tools = [look]
    scenario.script = lambda request: calls("look")
    async with scenario.open() as run:
        await scenario.owner.send("look until something happens")
        report = await scenario.owner.next_message(where=lambda m: m.keyboard)
        scenario.script = lambda request: says("I stopped looking.")
        first = await scenario.owner.answer(await scenario.owner.press(report, "Go on"))
        answer = await scenario.owner.next_message(where=is_final)
        second = await scenario.owner.answer(await scenario.owner.press(report, "Go on"))
        users = [m.text for m in run.model.requests[-1].messages if isinstance(m, User)]
    assert report.buttons == ["Go on"]
    assert (first.text, second.text) == (TEXTS.goes_on, TEXTS.expired)
    assert answer.text == "I stopped looking."
    assert users[-1].endswith("</context>\nGo on")


async def test_an_answer_that_the_guard_stopped_says_so_and_goes_on_at_a_press(
    scenario: TelegramScenario,
) -> None:
    scenario.script = lambda request: says("I am sorry. " * 1000)
    async with scenario.open() as run:
        await scenario.owner.send("what went wrong?")
        cut = await scenario.owner.next_message(where=lambda m: m.keyboard)
        scenario.script = lambda request: says("The disk was full.")
        await scenario.owner.press(cut, "Go on")
        answer = await scenario.owner.next_message(where=lambda m: not m.silent)
        users = [m.text for m in run.model.requests[-1].messages if isinstance(m, User)]
    assert cut.text.startswith("I am sorry.") and cut.text.endswith(CIRCLING)
    assert (cut.buttons, answer.text) == (["Go on"], "The disk was full.")
    assert users[-1].endswith("</context>\nGo on")
