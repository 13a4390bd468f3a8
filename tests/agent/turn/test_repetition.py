"""An answer that goes in a circle is stopped, so that others get the model; what only looks so is not."""

import pytest

from agent.events import Notice
from agent.messages import Assistant
from agent.turn import texts
from agent.turn.repetition import RepeatedTextDetector
from fakes.model_scripted import says
from tests.agent.turn.conftest import Bench

CIRCLE = "It is interrupted" + ": the program was stopped" * 1000


async def test_a_circle_ends_the_answer_and_is_told(bench: Bench) -> None:
    finished = await bench.run(says(CIRCLE, size=5))
    assert finished.reason == "loop"
    text = finished.text.removesuffix(f"\n\n{texts.CIRCLING}")
    assert text != finished.text and CIRCLE.startswith(text) and 600 < len(text) < 900
    assert bench.journal.messages[-1] == Assistant(text)
    assert [e.text for e in bench.events if isinstance(e, Notice)] == [texts.CIRCLING]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Dear Anna! " + "May you be glad. May you be well. " * 40, "Dear Anna! May you be glad. May you be well."),
        ("Points:\n" + "- the first one is this\n- the next is that\n" * 40, "Points:\n- the first one is this\n- the next is that"),
    ],
)  # fmt: skip
async def test_what_was_said_before_is_not_said_again_at_the_end(
    bench: Bench, text: str, left: str
) -> None:
    finished = await bench.run(says(text, size=5))
    assert finished.text == f"{left}\n\n{texts.CIRCLING}"
    assert bench.journal.messages[-1] == Assistant(left)


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"| {number} | a row of a table |\n" for number in range(200)),
        "-" * 500 + "\n" + "=" * 500,
        "no " * 100,
        " " * 1500,
        "".join(f"line {number % 7}: the same words\n" for number in range(20)),
        "name,town,amount\n" + "Smith,Springfield,12.50\n" * 200,
        "| a row | of a table | with words |\n" * 200,
        "Sure:\n[" + "0, " * 300 + "1]",
        "- name: x\n  value: 0\n" * 60,
        '"a","b","c"\n' * 150,
        '{"a": 0, "b": 0},\n' * 100,
        "<td>none</td><td>none</td>\n" * 60,
        ("#" * 40 + "\n") * 20,
        "Sure:\n[" + "False, " * 400 + "True]",
        "```python\nvalues = [\n" + "    Item(name='x'),\n" * 300 + "]\n```\nThat is all.",
    ],
)
def test_what_is_no_circle_goes_on(text: str) -> None:
    circling = RepeatedTextDetector()
    assert not any(circling.feed(text[at : at + 3]) for at in range(0, len(text), 3))


@pytest.mark.parametrize(
    ("before", "text"),
    [("", "Sorry. I am sorry. "), ("```\n", "x = f(x)\n")],
    ids=["prose", "code"],
)
def test_without_end_all_of_it_is_a_circle(text: str, before: str) -> None:
    circling = RepeatedTextDetector()
    assert not circling.feed(before)
    assert any(circling.feed(text) for _ in range(13_000 // len(text)))


VERSE = "".join(
    f"May you always be the best version of {whom}. "
    for whom in ("yourself", "your loved ones", "your friends", "your family", "your colleagues")
)


def test_some_sentences_in_turn_are_a_circle_the_fourth_time() -> None:
    assert len(VERSE) > 200
    for times, circle in ((3, False), (6, True)):
        circling = RepeatedTextDetector()
        said = "Dear Anna, " + VERSE * times
        assert any(circling.feed(said[at : at + 5]) for at in range(0, len(said), 5)) is circle


def test_behind_a_block_of_code_words_are_words_again() -> None:
    circling = RepeatedTextDetector()
    assert not circling.feed("```\nx\n```\n")
    assert any(circling.feed("I am sorry. ") for _ in range(70))
