"""How a turn's events become a view."""

from agent.events import (
    ModelFinished,
    ModelProgress,
    Notice,
    TextDelta,
    ToolCalled,
    ToolFinished,
    ToolProgress,
)
from bot.channel import Step, View
from bot.reply import Gathering, Pace
from bot.texts import Texts


class Hand:
    """A clock set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def finished(ttft_ms: int | None = None, prefill: float | None = None) -> ModelFinished:
    return ModelFinished(
        100,
        0,
        5,
        ttft_ms,
        prefill,
        40.0,
        "stop",
    )


def test_reading_tells_how_much_and_how_long() -> None:
    clock = Hand()
    gathering = Gathering(Texts(), Pace(), clock)
    gathering.add(ModelProgress(200, 14_000, 200))
    assert gathering.view.status == "reading 200 of 14,000 tokens"
    clock.now += 3.0
    gathering.add(ModelProgress(6_200, 14_000, 200))
    assert gathering.view.status == "reading 6,200 of 14,000 tokens, about 4 s"


def test_a_known_speed_gives_an_estimate_at_once() -> None:
    gathering = Gathering(Texts(), Pace(prefill_tok_s=500.0), Hand())
    gathering.add(ModelProgress(0, 1_000, 0))
    assert gathering.view.status == "reading 0 of 1,000 tokens, about 2 s"


def test_an_engine_that_tells_nothing_gets_an_estimate_marked_as_one() -> None:
    pace = Pace()
    Gathering(Texts(), pace).add(finished(ttft_ms=4_200))
    gathering = Gathering(Texts(), pace)
    gathering.waiting()
    assert gathering.view.status == "reading, about 4 s (an estimate)"
    gathering.add(TextDelta("Hel"))
    gathering.waiting()
    assert gathering.view == View(text="Hel")


def test_nothing_is_estimated_that_was_never_measured() -> None:
    gathering = Gathering(Texts(), Pace())
    gathering.waiting()
    assert gathering.view == View()


def test_tool_calls_become_lines_and_then_results() -> None:
    gathering = Gathering(Texts(), Pace())
    gathering.add(TextDelta("Let me look."))
    gathering.add(ToolCalled("c1", "bash", {"command": "ls -la\n| head", "seconds": 5}))
    assert gathering.view == View((Step("c1", "bash", "ls -la | head"),))
    gathering.add(ToolProgress("c1", "a.txt"))
    assert gathering.view.steps[0].detail == "a.txt"
    gathering.add(ToolFinished("c1", "bash", False, "exit 1", 1500))
    assert gathering.view.steps == (Step("c1", "bash", "ls -la | head", "failed", "exit 1", 1.5),)
    gathering.add(ToolCalled("c2", "edit_file", {"path": "x" * 200}))
    gathering.add(ToolFinished("c2", "edit_file", True, "replaced", 10, shown="-a\n+b"))
    assert gathering.view.steps[-1] == Step("c2", "edit_file", "x" * 79 + "…", "ok", "-a\n+b", 0.01)


def test_a_notice_is_the_status_until_text_comes() -> None:
    gathering = Gathering(Texts(), Pace())
    gathering.add(TextDelta("Hello, I wi"))
    gathering.add(Notice("The model server is restarting."))
    assert gathering.view == View(status="The model server is restarting.")
    gathering.add(TextDelta("Hi"))
    assert gathering.view == View(text="Hi")
