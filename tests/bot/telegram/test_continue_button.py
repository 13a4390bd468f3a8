"""A turn that ends at a limit, and the button that goes on."""

from agent.messages import User
from agent.tools.tool import Call, Output, tool
from fakes.bot_running import House
from fakes.model_scripted import calls, says


@tool
async def look(call: Call) -> Output:
    """Look."""
    return Output("nothing new")


async def test_a_turn_that_ran_in_circles_goes_on_at_a_press_once(house: House) -> None:
    house.tools = [look]
    house.script = lambda request: calls("look")
    async with house.open() as run:
        await house.owner.send("look until something happens")
        report = await house.owner.next_message(where=lambda m: m.keyboard)
        house.script = lambda request: says("I stopped looking.")
        first = await house.owner.answer(await house.owner.press(report, "Go on"))
        answer = await house.owner.next_message()
        second = await house.owner.answer(await house.owner.press(report, "Go on"))
        users = [m.text for m in run.model.requests[-1].messages if isinstance(m, User)]
    assert report.buttons == ["Go on"]
    assert (first.text, second.text) == ("I go on.", "This has expired.")
    assert answer.text == "I stopped looking."
    assert users[-1].endswith("</context>\nGo on")


async def test_an_answer_has_no_such_button(house: House) -> None:
    async with house.open():
        answer = await house.owner.ask("hi")
    assert answer.buttons == []
