"""The live reply: a turn's events, gathered into a view and shown at the channel's pace."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from agent.aio import BackgroundTasks, set_within
from agent.events import (
    Event,
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
from bot.channel import Channel, Step, View
from bot.texts import Texts

TYPING_SECONDS = 4.5  # the app shows it for 5 s
REFRESH_SECONDS = 20.0  # a draft fades after 30 s
FIRST_PAUSE = 0.35  # quick answers need no live view
LONGEST_PAUSE = 3.0
Clock = Callable[[], float]


@dataclass(slots=True)
class Pace:
    """How fast this chat's model was last seen to read; tokens a second and seconds."""

    prefill_tok_s: float | None = None
    ttft_s: float | None = None

    def learn(self, finished: ModelFinished) -> None:
        self.prefill_tok_s = finished.prefill_tok_s or self.prefill_tok_s
        if finished.ttft_ms is not None:
            self.ttft_s = finished.ttft_ms / 1000


class Gathering:
    """Folds events into the view of a turn."""

    def __init__(self, texts: Texts, pace: Pace, clock: Clock = time.monotonic) -> None:
        self.view = View()
        self._texts = texts
        self._pace = pace
        self._clock = clock
        self._reading_since = clock()
        self._read_before = 0

    def add(self, event: Event) -> None:
        match event:
            case ModelProgress():
                self._reading(event)
            case TextDelta(text):
                self.view = replace(self.view, text=self.view.text + text, status="")
            case ThoughtDelta(text):
                self.view = replace(self.view, thoughts=self.view.thoughts + text, status="")
            case ToolCalled(id, name, arguments):
                step = Step(id, name, headline(arguments))
                self.view = View((*self.view.steps, step))
            case ToolProgress(id, text):
                self._step(id, detail=text)
            case ToolFinished():
                self._finished(event)
            case ModelFinished():
                self._pace.learn(event)
                self._await_model()
            case Notice(text):  # what was being written has broken off and will come anew
                self.view = replace(self.view, text="", thoughts="", status=text)
            case _:
                pass

    def waiting(self) -> None:
        """Nothing has come for a while: say what is waited for, as an estimate."""
        shown = self.view.status or self.view.text or self.view.thoughts
        if not shown and self._pace.ttft_s:
            status = self._texts.reading_estimate.format(seconds=max(1, round(self._pace.ttft_s)))
            self.view = replace(self.view, status=status)

    def _reading(self, progress: ModelProgress) -> None:
        if progress.processed < self._read_before or progress.processed <= progress.cached:
            self._await_model()
        self._read_before = progress.processed
        self.view = replace(self.view, status=self._reading_line(progress))

    def _reading_line(self, progress: ModelProgress) -> str:
        left = progress.total - progress.processed
        read = progress.processed - progress.cached
        spent = self._clock() - self._reading_since
        speed = read / spent if read > 0 and spent > 0.2 else self._pace.prefill_tok_s
        if left <= 0 or not speed:
            return self._texts.reading.format(done=progress.processed, total=progress.total)
        return self._texts.reading_eta.format(
            done=progress.processed, total=progress.total, seconds=max(1, round(left / speed))
        )

    def _finished(self, event: ToolFinished) -> None:
        state = "ok" if event.ok else "failed"
        detail = event.shown or event.output
        self._step(event.id, state=state, detail=detail, seconds=event.duration_ms / 1000)
        self._await_model()

    def _step(self, id: str, **changes: object) -> None:
        steps = (replace(s, **changes) if s.id == id else s for s in self.view.steps)  # type: ignore[arg-type]
        self.view = replace(self.view, steps=tuple(steps))

    def _await_model(self) -> None:
        self._reading_since = self._clock()


def headline(arguments: dict[str, object]) -> str:
    """What a call is about, in one line: its first argument."""
    first = next(iter(arguments.values()), "")
    line = " ".join(str(first).split())
    return line if len(line) <= 80 else line[:79] + "…"


class Reply:
    """One turn's live reply. `feed` is called with each event and never blocks."""

    def __init__(self, channel: Channel, chat: str, gathering: Gathering) -> None:
        self._channel = channel
        self._chat = chat
        self._gathering = gathering
        self._live = channel.live(chat)
        self._changed = asyncio.Event()
        self._due = asyncio.Event()  # a tool's line comes at once, lest the answer overtake it
        self._ended = asyncio.Event()

    def feed(self, event: Event) -> None:
        self._gathering.add(event)
        if isinstance(event, TurnFinished):
            self.end()
        if isinstance(event, ToolCalled):
            self._due.set()
        self._changed.set()

    def end(self) -> None:
        """From now on nothing more is shown of the running turn."""
        self._live.close(self._gathering.view)
        self._ended.set()
        self._due.set()
        self._changed.set()

    async def run(self) -> None:
        """Show the turn until it has ended; then leave its tool lines."""
        await set_within(self._due, FIRST_PAUSE)
        if self._ended.is_set():
            return
        async with BackgroundTasks() as tasks:
            tasks.start(self._type(), "typing")
            await self._show()
        await self._live.settle(self._gathering.view)

    async def _type(self) -> None:
        while True:
            await self._channel.typing(self._chat)
            await asyncio.sleep(TYPING_SECONDS)

    async def _show(self) -> None:
        pause = 0.0
        while not self._ended.is_set():
            await set_within(self._changed, REFRESH_SECONDS)
            self._gathering.waiting()
            self._changed.clear()
            await self._live.show(self._gathering.view)
            pause = self._longer(pause)
            await set_within(self._ended, pause)

    def _longer(self, pause: float) -> float:
        base = self._channel.limits(self._chat).pause
        return min(max(base, pause * 1.1), max(base, LONGEST_PAUSE))
