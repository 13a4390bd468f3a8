"""How a turn's events become a view."""

from agent.events import (
    ModelFinished,
    ModelProgress,
    Notice,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    ToolFinished,
    ToolProgress,
)
from bot.channel import ToolCallView, TurnView
from bot.replies import ReadingSpeed, TurnViewBuilder
from bot.texts import Texts


class SetClock:
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
    clock = SetClock()
    progress = TurnViewBuilder(Texts(), ReadingSpeed(), clock)
    progress.add(ModelProgress(200, 14_000, 200))
    assert progress.view.status == "reading 200 of 14,000 tokens"
    clock.now += 3.0
    progress.add(ModelProgress(6_200, 14_000, 200))
    assert progress.view.status == "reading 6,200 of 14,000 tokens, about 4 s"


def test_a_known_speed_gives_an_estimate_at_once() -> None:
    progress = TurnViewBuilder(Texts(), ReadingSpeed(prefill_tok_s=500.0), SetClock())
    progress.add(ModelProgress(0, 1_000, 0))
    assert progress.view.status == "reading 0 of 1,000 tokens, about 2 s"


def test_an_engine_that_tells_nothing_gets_an_estimate_marked_as_one() -> None:
    speed = ReadingSpeed()
    TurnViewBuilder(Texts(), speed).add(finished(ttft_ms=4_200))
    progress = TurnViewBuilder(Texts(), speed)
    progress.waiting()
    assert progress.view.status == "reading, about 4 s (an estimate)"
    progress.add(TextDelta("Hel"))
    progress.waiting()
    assert progress.view == TurnView(text="Hel")


def test_nothing_is_estimated_that_was_never_measured() -> None:
    progress = TurnViewBuilder(Texts(), ReadingSpeed())
    progress.waiting()
    assert progress.view == TurnView()


def test_tool_calls_become_lines_and_then_results() -> None:
    progress = TurnViewBuilder(Texts(), ReadingSpeed())
    progress.add(TextDelta("Let me look."))
    progress.add(ToolCalled("c1", "bash", {"command": "ls -la\n| head", "seconds": 5}))
    assert progress.view == TurnView((ToolCallView("c1", "bash", "ls -la | head"),))
    progress.add(ToolProgress("c1", "a.txt"))
    assert progress.view.calls[0].detail == "a.txt"
    progress.add(ToolFinished("c1", "bash", False, "exit 1", 1500))
    assert progress.view.calls == (
        ToolCallView("c1", "bash", "ls -la | head", "failed", "exit 1", 1.5),
    )
    progress.add(ToolCalled("c2", "edit_file", {"path": "x" * 200}))
    progress.add(ToolFinished("c2", "edit_file", True, "replaced", 10, shown="-a\n+b"))
    assert progress.view.calls[-1] == ToolCallView(
        "c2", "edit_file", "x" * 79 + "…", "ok", "-a\n+b", 0.01
    )


def test_a_notice_is_the_status_until_text_comes() -> None:
    progress = TurnViewBuilder(Texts(), ReadingSpeed())
    progress.add(TextDelta("Hello, I wi"))
    progress.add(Notice("The model server is restarting."))
    assert progress.view == TurnView(status="The model server is restarting.")
    progress.add(TextDelta("Hi"))
    assert progress.view == TurnView(text="Hi")


def test_a_long_thought_is_a_live_line_and_after_a_while_a_button() -> None:
    clock = SetClock()
    progress = TurnViewBuilder(Texts(), ReadingSpeed(), clock)
    for _ in range(40):
        progress.add(ThoughtDelta("and "))
        clock.now += 0.1
    assert progress.view.status == "Thinking for 4 s, about 40 tokens so far"
    assert not progress.view.buttons
    clock.now += 116.0
    progress.waiting()
    assert progress.view.status == "Thinking for 120 s, about 40 tokens so far"
    assert [[button.label for button in row] for row in progress.view.buttons] == [["Answer now"]]
    progress.add(TextDelta("So"))
    assert (progress.view.status, progress.view.buttons) == ("", ())
