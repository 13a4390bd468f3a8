"""An answer that goes in a circle is stopped, so that others get the model; what only looks so is not."""

import pytest

from agent.events import Notice
from agent.messages import Assistant
from agent.turn import texts
from agent.turn.loop_detection import TextLoopDetector
from fakes.model_scripted import says
from tests.agent.turn.conftest import Bench

CIRCLE = "It is interrupted" + ": the program was stopped" * 1000


async def test_a_circle_ends_the_answer_and_is_told(bench: Bench) -> None:
    finished = await bench.run(says(CIRCLE, size=5))
    assert finished.reason == "done"
    assert CIRCLE.startswith(finished.text) and 600 < len(finished.text) < 900
    assert bench.journal.messages[-1] == Assistant(finished.text)
    assert [e.text for e in bench.events if isinstance(e, Notice)] == [texts.CIRCLING]


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"| {number} | a row of a table |\n" for number in range(200)),
        "-" * 500 + "\n" + "=" * 500,
        "no " * 100,
        " " * 5000,
        "".join(f"line {number % 7}: the same words\n" for number in range(20)),
    ],
)
def test_what_is_no_circle_goes_on(text: str) -> None:
    circling = TextLoopDetector()
    assert not any(circling.feed(text[at : at + 3]) for at in range(0, len(text), 3))
