"""How a turn's events become a view, and when it is shown."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from agent.channels import Assignment
from agent.events import (
    ApprovalAsked,
    ApprovalPending,
    GpuQueued,
    ModelFinished,
    ModelProgress,
    Notice,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    ToolFinished,
    ToolProgress,
    TurnFinished,
)
from agent.store.turns import OpenTurn
from bot import live_replies as module
from bot.channel import Button, ChannelLimits, NotSent, OutgoingMessage, ToolCallView, TurnView
from bot.live_replies import LiveReplies, ReadingSpeed, TurnViewBuilder
from bot.texts import Texts
from fakes.channel_memory import MemoryChannel
from fakes.journal_memory import MemoryJournal
from fakes.patience import SECONDS, soon
from fakes.words import saying


def told(progress: TurnViewBuilder) -> tuple[str, list[str]]:
    """What a person reads of a wait, and the figures in it."""
    return progress.view.status, re.findall(r"\d[\d,]*", progress.view.status)


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
    progress = TurnViewBuilder(ReadingSpeed(), clock)
    progress.add(ModelProgress(200, 14_000, 200))
    assert progress.view.status == "reading 200 of 14,000 tokens"
    clock.now += 3.0
    progress.add(ModelProgress(6_200, 14_000, 200))
    assert told(progress) == (saying("reading", "about 4 s"), ["6,200", "14,000", "4"])


def test_an_engine_that_tells_nothing_gets_an_estimate_marked_as_one() -> None:
    speed = ReadingSpeed()
    TurnViewBuilder(speed).add(finished(ttft_ms=4_200))
    progress = TurnViewBuilder(speed)
    progress.waiting()
    assert told(progress) == (saying("reading", " 4 s", "estimate"), ["4"])
    progress.add(TextDelta("Hel"))
    progress.waiting()
    assert progress.view == TurnView(text="Hel")


def test_a_tool_that_runs_is_what_goes_on() -> None:
    clock = SetClock()
    progress = TurnViewBuilder(ReadingSpeed(ttft_s=1.0), clock)
    progress.add(ToolCalled("c", "bash", {"command": "make"}))
    clock.now += 25
    progress.waiting()
    assert progress.view.status == "running bash for 25 s"
    progress.add(ToolFinished("c", "bash", ok=True, output="", duration_ms=25_000))
    assert progress.view.status == ""
    progress.waiting()
    assert told(progress) == (saying("reading", " 1 s", "estimate"), ["1"])


def test_while_an_owner_is_asked_nothing_else_goes_on() -> None:
    clock = SetClock()
    progress = TurnViewBuilder(ReadingSpeed(ttft_s=1.0), clock)
    progress.add(ToolCalled("c", "bash", {"command": "make"}))
    clock.now += 3
    progress.add(ApprovalPending())
    clock.now += 40
    progress.waiting()
    assert told(progress) == (saying("waiting", "from an owner", " 40 s"), ["40"])
    progress.add(ApprovalAsked("a", "make", "once"))
    assert progress.view.status == "running bash for 3 s"  # the owner's time is not the tool's


def test_a_place_in_line_is_told_until_the_gpu_is_free() -> None:
    clock = SetClock()
    progress = TurnViewBuilder(ReadingSpeed(ttft_s=1.0), clock)
    progress.add(GpuQueued(2))
    clock.now += 12
    progress.waiting()
    assert told(progress) == (saying("in line", "model", " 12 s"), ["3", "12"])
    progress.add(GpuQueued(1))
    assert told(progress) == (saying("in line", "model", " 12 s"), ["2", "12"])
    progress.add(GpuQueued(0))
    assert told(progress) == (saying("reading", " 1 s", "estimate"), ["1"])


def test_a_prompt_that_is_read_slower_than_told_shows_the_time_that_went_by() -> None:
    clock = SetClock()
    progress = TurnViewBuilder(ReadingSpeed(prefill_tok_s=500.0), clock)
    progress.add(ModelProgress(0, 5_000, 0))
    clock.now += 9
    progress.waiting()
    assert told(progress) == (saying("reading", "about 1 s"), ["0", "5,000", "1"])
    clock.now += 3
    progress.waiting()
    assert told(progress) == (saying("reading", "12 s so far"), ["0", "5,000", "12"])
    progress.add(ModelProgress(5_000, 5_000, 0))
    assert progress.view.status == "reading 5,000 of 5,000 tokens"
    clock.now += 7
    progress.waiting()
    assert progress.view.status == "working for 7 s"


def test_a_model_that_has_fallen_silent_amid_its_words_shows_for_how_long() -> None:
    clock = SetClock()
    progress = TurnViewBuilder(ReadingSpeed(ttft_s=1.0), clock)
    progress.add(TextDelta("I write the file."))
    clock.now += 0.5
    progress.waiting()
    assert progress.view == TurnView(text="I write the file.")
    clock.now += 19.5
    progress.waiting()
    assert progress.view == TurnView(text="I write the file.", status="working for 20 s")


def test_tool_calls_become_lines_and_then_results() -> None:
    progress = TurnViewBuilder(ReadingSpeed())
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


def test_where_only_long_calls_keep_a_line_a_call_gets_it_as_it_becomes_long() -> None:
    clock = SetClock()
    progress = TurnViewBuilder(ReadingSpeed(), clock, lines="long")
    progress.add(ToolCalled("c1", "bash", {"command": "ls"}))
    progress.add(ToolFinished("c1", "bash", True, "a.txt", 40))
    progress.add(ToolCalled("c2", "bash", {"command": "make"}))
    progress.waiting()
    assert not progress.view.calls
    clock.now += 6
    progress.waiting()
    assert list(progress.view.calls) == [ToolCallView("c2", "bash", "make")]
    progress.add(ToolFinished("c2", "bash", True, "done", 6_000))
    assert list(progress.view.calls) == [ToolCallView("c2", "bash", "make", "ok", "done", 6.0)]


def test_a_notice_tells_for_how_long_until_something_goes_on() -> None:
    clock = SetClock()
    progress = TurnViewBuilder(ReadingSpeed(ttft_s=1.0), clock)
    progress.add(Notice("The model is being loaded again."))
    clock.now += 40
    progress.waiting()
    assert told(progress) == (saying("loaded again"), ["40"])
    progress.add(Notice("The GPU is at 90 °C; new work waits until it has cooled to 80 °C."))
    progress.waiting()
    assert progress.view.status.endswith(" 80 °C. (40 s)"), "nothing has gone on between the two"
    for event, status in (
        (GpuQueued(0), saying("reading", " 1 s", "estimate")),
        (GpuQueued(2), saying(" 3 in line", "model", " 0 s")),
        (ModelProgress(10, 20, 10), "reading 10 of 20 tokens"),
        (ToolCalled("c", "bash", {}), ""),
    ):
        progress.add(Notice("The model is being loaded again."))
        progress.add(event)
        assert progress.view.status == status
        clock.now += 2
        progress.waiting()
        assert "loaded" not in progress.view.status


def test_a_long_thought_is_a_live_line_and_after_a_while_a_button() -> None:
    clock = SetClock()
    progress = TurnViewBuilder(ReadingSpeed(), clock)
    for _ in range(40):
        progress.add(ThoughtDelta("and "))
        clock.now += 0.1
    assert told(progress) == (saying("thinking", " 4 s", " 40 tokens"), ["4", "40"])
    assert not progress.view.buttons
    clock.now += 116.0
    progress.waiting()
    assert told(progress) == (saying("thinking", " 120 s", " 40 tokens"), ["120", "40"])
    assert [[button.label for button in row] for row in progress.view.buttons] == [["Answer now"]]
    progress.add(TextDelta("So"))
    assert (progress.view.status, progress.view.buttons) == ("", ())


# --- which events are shown when ---------------------------------------------------


def assigned(turn: str = "t1", chat: str = "tg:1") -> Assignment:
    return Assignment(OpenTurn(turn, chat, 1, "message", "test", 0.0), (), MemoryJournal())


@pytest.fixture
def channel() -> MemoryChannel:
    return MemoryChannel()


@pytest.fixture
async def replies(
    channel: MemoryChannel, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LiveReplies]:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.0)
    made = LiveReplies(channel)
    async with made.tasks:
        yield made


DONE = TurnFinished("Hello.", "done", 0)


async def test_a_turn_is_shown_as_it_grows_and_its_view_is_left_at_the_end(
    replies: LiveReplies, channel: MemoryChannel
) -> None:
    await replies.event(assigned(), TextDelta("Hel"))
    view = channel.views[0]
    await soon(lambda: ("show", TurnView(text="Hel")) in view.seen)
    await replies.event(assigned(), TextDelta("lo."))
    await soon(lambda: ("show", TurnView(text="Hello.")) in view.seen)
    assert channel.typed == ["tg:1"]
    await replies.event(assigned(), DONE)
    await asyncio.wait_for(replies.tasks.ended(), SECONDS)
    assert [call for call in view.seen if call[0] == "close"] == [
        ("close", TurnView(text="Hello."))
    ]
    assert view.seen[-1] == ("finish", TurnView(text="Hello."))
    assert len(channel.views) == 1


async def test_before_the_final_text_goes_out_its_live_view_is_closed(
    replies: LiveReplies, channel: MemoryChannel
) -> None:
    await replies.event(assigned(), TextDelta("Hel"))
    await replies.event(assigned("t2", "tg:2"), TextDelta("Hi"))
    one, other = channel.views
    await soon(lambda: other.seen)
    await replies.final("t1")
    await replies.final("unknown")
    assert ("close", TurnView(text="Hel")) in one.seen
    assert "close" not in [name for name, _ in other.seen]
    await soon(lambda: one.seen[-1] == ("finish", TurnView(text="Hel")))


@pytest.mark.parametrize("first", ["the text", "the turn's end"])
async def test_what_is_left_of_a_view_is_closed_once(
    replies: LiveReplies, channel: MemoryChannel, first: str
) -> None:
    """A second time, the lines that are being put would be given up."""
    await replies.event(assigned(), ToolCalled("c", "bash", {"command": "make"}))
    await soon(lambda: channel.views[0].seen)
    if first == "the text":
        await replies.final("t1")
    await replies.event(assigned(), DONE)
    await replies.final("t1")
    await asyncio.wait_for(replies.tasks.ended(), SECONDS)
    seen = [name for name, _ in channel.views[0].seen]
    assert seen.count("close") == 1
    assert seen.index("settle") < seen.index("finish")


async def test_whoever_waits_reads_whose_yes_is_awaited(channel: MemoryChannel) -> None:
    async def whom(chat: str) -> str:
        return f"Anna (asked by {chat})"

    replies = LiveReplies(channel, whom)
    async with replies.tasks:
        await replies.event(assigned(), ToolCalled("c", "bash", {"command": "make"}))
        await replies.event(assigned(), ApprovalPending())
        await soon(
            lambda: [
                view
                for _, view in channel.views[0].seen
                if view.status == "waiting for a yes from Anna (asked by tg:1), 0 s"
            ]
        )
        await replies.event(assigned(), DONE)


async def test_nobody_types_while_an_owner_is_asked(
    replies: LiveReplies, channel: MemoryChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.01)
    monkeypatch.setattr(module, "TYPING_SECONDS", 0.01)
    await replies.event(assigned(), ToolCalled("c", "bash", {"command": "make"}))
    await replies.event(assigned(), ApprovalPending())
    await soon(lambda: len(channel.views[0].seen) >= 5)
    assert channel.typed == []
    await replies.event(assigned(), ApprovalAsked("a", "make", "once"))
    await soon(lambda: len(channel.typed) >= 3)


async def test_a_channel_that_takes_many_updates_shows_each_second(
    replies: LiveReplies, channel: MemoryChannel
) -> None:
    channel.limits = lambda chat: ChannelLimits(0, 0, update_seconds=0.001)  # type: ignore[method-assign]
    await replies.event(assigned(), ToolCalled("c", "bash", {"command": "make"}))
    await soon(lambda: len(channel.views[0].seen) >= 50)


async def test_the_speed_of_a_chat_is_known_to_its_next_turn_alone(
    replies: LiveReplies, channel: MemoryChannel
) -> None:
    await replies.event(assigned("t1"), finished(4_000, 500.0))
    await replies.event(assigned("t1"), DONE)
    for turn, chat in (("t2", "tg:1"), ("t3", "tg:2")):
        await replies.event(assigned(turn, chat), ModelProgress(0, 1_000, 0))
    known, unknown = channel.views[1:]
    await soon(lambda: known.seen and unknown.seen)
    assert known.seen[0][1].status == saying(" 0 of 1,000 ", "about 2 s")
    assert unknown.seen[0][1].status == "reading 0 of 1,000 tokens"


async def test_a_message_that_waits_is_told_in_silence(
    replies: LiveReplies, channel: MemoryChannel
) -> None:
    await replies.waiting("tg:1", "Another program answers this chat.")
    await asyncio.wait_for(replies.tasks.ended(), SECONDS)
    assert channel.sent == [
        ("tg:1", OutgoingMessage("Another program answers this chat.", silent=True))
    ]


async def test_that_it_could_not_be_told_is_no_failure(
    replies: LiveReplies, channel: MemoryChannel, caplog: pytest.LogCaptureFixture
) -> None:
    channel.faults.append(NotSent("no network"))
    await replies.waiting("tg:1", "Another program answers this chat.")
    await asyncio.wait_for(replies.tasks.ended(), SECONDS)
    assert channel.sent == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]


# --- how long reading takes -------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([(0, ModelProgress(0, 1_000, 0)), (2, ModelProgress(500, 1_000, 0))], "reading 500 of 1,000 tokens, about 2 s"),
        ([(0, ModelProgress(0, 1_000, 0)), (0.1, ModelProgress(500, 1_000, 0))], "reading 500 of 1,000 tokens"),
        ([(9, ModelProgress(400, 1_000, 400)), (1, ModelProgress(500, 1_000, 400))], "reading 500 of 1,000 tokens, about 5 s"),
        ([(0, ModelProgress(900, 1_000, 0)), (9, ModelProgress(0, 1_000, 0)), (1, ModelProgress(100, 1_000, 0))], "reading 100 of 1,000 tokens, about 9 s"),
    ],
    ids=["halfway", "too early", "cached", "next call"],
)  # fmt: skip
def test_the_time_that_is_left_goes_by_what_was_read_so_far(
    events: list[tuple[float, ModelProgress]], status: str
) -> None:
    clock = SetClock()
    progress = TurnViewBuilder(ReadingSpeed(), clock)
    for seconds, event in events:
        clock.now += seconds
        progress.add(event)
    assert progress.view.status == status


@pytest.mark.parametrize(("seconds", "offered"), [(9.9, False), (10.0, True)])
def test_after_ten_seconds_of_thinking_an_end_is_offered(seconds: float, offered: bool) -> None:
    clock = SetClock()
    progress = TurnViewBuilder(ReadingSpeed(), clock)
    progress.add(ThoughtDelta("hm"))
    clock.now += seconds
    progress.waiting()
    button = Button("now:", Texts().answer_now)
    assert progress.view.buttons == ([[button]] if offered else ())
    progress.add(ModelProgress(1, 2, 0))
    assert progress.view.buttons == ([[button]] if offered else ())
    progress.add(ToolCalled("c1", "bash", {}))
    assert progress.view == TurnView((ToolCallView("c1", "bash", ""),))
    clock.now += 100.0
    progress.waiting()
    assert progress.view == TurnView(
        (ToolCallView("c1", "bash", ""),), status="running bash for 100 s"
    )
