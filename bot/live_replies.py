"""What is shown of a running turn: its events, folded into a view that is sent as often as the channel allows."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from agent.aio import BackgroundTasks, set_within
from agent.channels import Assignment
from agent.events import (
    ApprovalAsked,
    ApprovalPending,
    Event,
    GpuQueued,
    ModelFinished,
    ModelProgress,
    Notice,
    PlanChanged,
    Reason,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    ToolFinished,
    ToolProgress,
    TurnFinished,
)
from agent.store import Incoming
from agent.store.chats import Chat
from bot.channel import Button, Channel, ChannelError, OutgoingMessage, ToolCallView, TurnView, send
from bot.texts import TEXTS

log = logging.getLogger(__name__)

TYPING_SECONDS = 4.5  # apps show it for 5 s
REFRESH_SECONDS = 5.0  # at most between two updates without an event; a draft expires after 30 s
FIRST_PAUSE = 0.35  # seconds; a quicker answer needs no live view
LONGEST_PAUSE = 3.0
TEXT_FIRST = 1.0  # seconds for which a reaction waits for the answer to be sent
SUMMARY_CHARACTERS = 80
QUIET_SECONDS = 1.0  # without a new word, after which the elapsed time is shown
OFFER_SECONDS = 10.0  # of thinking, before a button offers to end it
ANSWER_NOW = "now"  # the kind of that button
MOST_UNSENT = 200
ToolLines = Literal["all", "long", "none"]
TOOL_LINES = "tools"  # the name of that setting of a chat
LONG_SECONDS = 5.0  # of a call that counts as long


class LiveReplies:
    """A listener of the agent's turns: each running turn has a live reply, which runs in `tasks`.

    `whom` names who is asked on behalf of a chat. `ended` is called
    for each turn once its text is sent, with the messages that it answers.
    """

    def __init__(
        self,
        channel: Channel,
        whom: Callable[[str], Awaitable[str]] | None = None,
        ended: Callable[[Sequence[Incoming], Reason], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self._channel = channel
        self._whom = whom
        self._ended = ended
        self._speeds: dict[str, ReadingSpeed] = {}
        self._open: dict[str, LiveReply] = {}
        self._unsent: dict[str, LiveReply] = {}  # of ended turns whose text is not sent yet
        self._sent: dict[str, asyncio.Event] = {}  # by turn; set when its text is sent
        self.tasks = BackgroundTasks()

    async def event(self, assignment: Assignment, event: Event) -> None:
        turn, chat = assignment.turn.id, assignment.chat
        reply = self._open.get(turn)
        if reply is None and not isinstance(event, TurnFinished):
            speed = self._speeds.setdefault(chat, ReadingSpeed())
            builder = TurnViewBuilder(speed, lines=tool_lines(assignment.known))
            reply = self._open[turn] = LiveReply(self._channel, chat, builder)
            self.tasks.start(reply.run(), "a live reply")
        if reply is not None:
            reply.add(event)
            if isinstance(event, ApprovalPending) and self._whom:
                self.tasks.start(reply.name_asked(self._whom(chat)), "who is asked")
        if isinstance(event, TurnFinished):
            self._open.pop(turn, None)
            if reply is not None:
                self._unsent[turn] = reply
                if len(self._unsent) > MOST_UNSENT:
                    del self._unsent[next(iter(self._unsent))]
            if self._ended and assignment.answers:
                self.tasks.start(self._told(assignment, event.reason), "a reaction")

    async def waiting(self, chat: str, why: str) -> None:
        async def send_notice() -> None:
            try:
                await send(self._channel, chat, OutgoingMessage(why, silent=True))
            except ChannelError as error:
                log.warning("%s was not told that it waits: %s", chat, error)

        self.tasks.start(send_notice(), "a notice")

    async def final(self, turn: str) -> None:
        """End the turn's live view, before its text is sent and within the chat's permit."""
        reply = self._unsent.pop(turn, None) or self._open.get(turn)
        if reply is not None:
            await reply.final()

    async def show_calls(self, chat: str) -> None:
        """Wait until the tool lines of the chat's open turn are shown, before a file is sent below them."""
        for reply in [reply for reply in self._open.values() if reply.chat == chat]:
            await reply.show_calls()

    def sent(self, turn: str) -> None:
        """Finish the turn's live reply, once its text or the first part of it was sent."""
        if turn in self._sent:
            self._sent[turn].set()

    async def _told(self, assignment: Assignment, reason: Reason) -> None:
        """Call `ended` once the text is sent, or after TEXT_FIRST: some turns end without one."""
        assert self._ended
        sent = self._sent[assignment.turn.id] = asyncio.Event()
        try:
            await set_within(sent, TEXT_FIRST)
        finally:
            del self._sent[assignment.turn.id]
        await self._ended(assignment.answers, reason)


class LiveReply:
    """One turn's live reply. `add` is called with each event and never blocks."""

    def __init__(self, channel: Channel, chat: str, progress: "TurnViewBuilder") -> None:
        self._channel = channel
        self.chat = chat
        self._progress = progress
        self._live = channel.live_view(chat)
        self._changed = asyncio.Event()
        self._due = asyncio.Event()  # show now: a tool's line must precede the answer
        self._hurry = asyncio.Event()  # the pause between two updates ends
        self._updated = asyncio.Event()
        self._calls_shown = 0
        self._ended = asyncio.Event()
        self._settled = asyncio.Event()  # nothing is being sent beside `run`
        self._settled.set()

    def add(self, event: Event) -> None:
        self._progress.add(event)
        if isinstance(event, TurnFinished):
            self.end()
        if isinstance(event, ToolCalled | PlanChanged):
            self._due.set()
        self._changed.set()

    async def name_asked(self, whom: Awaitable[str]) -> None:
        self._progress.asked = await whom
        self._changed.set()

    async def show_calls(self) -> None:
        """Wait until the tool lines are shown, at most LONGEST_PAUSE: something is to be sent below them."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_PAUSE):
                while (
                    self._calls_shown < len(self._progress.view.calls) and not self._ended.is_set()
                ):
                    self._updated.clear()
                    self._hurry.set()
                    await self._updated.wait()

    async def final(self) -> None:
        """End the live view. Called within the chat's permit, so it must not wait for `run`, which may need it."""
        self.end()
        if self._progress.view.stays:
            self._settled.clear()
            try:
                await self._live.settle(self._progress.view)
            finally:
                self._settled.set()

    def end(self) -> None:
        if self._ended.is_set():
            return  # a second `close` would undo what `finish` does
        self._live.close(self._progress.view)
        for event in (self._ended, self._due, self._changed, self._hurry, self._updated):
            event.set()

    async def run(self) -> None:
        """Show the turn until it has ended; then leave what stays of its view."""
        await set_within(self._due, FIRST_PAUSE)
        if self._ended.is_set():
            if self._progress.view.stays:
                await self._finish()
            return
        typing = asyncio.create_task(self._type())
        try:
            pause = 0.0
            while not self._ended.is_set():
                shortest = self._channel.limits(self.chat).update_seconds
                slow = 10 * shortest  # a channel that takes ten a second is updated each second
                await set_within(self._changed, min(REFRESH_SECONDS, slow))
                self._progress.waiting()
                self._changed.clear()
                view = self._progress.view
                await self._live.show(view)
                self._calls_shown = len(view.calls)
                self._updated.set()
                pause = min(max(shortest, pause * 1.1), max(shortest, min(LONGEST_PAUSE, slow)))
                if await set_within(self._hurry, pause) and not self._ended.is_set():
                    self._hurry.clear()
        finally:
            typing.cancel()
            await asyncio.wait([typing])
        await self._finish()

    async def _finish(self) -> None:
        await self._settled.wait()
        await self._live.finish(self._progress.view)

    async def _type(self) -> None:
        while True:
            if self._progress.pending_since is None:
                await self._channel.typing(self.chat)
            await asyncio.sleep(TYPING_SECONDS)


@dataclass(slots=True)
class ReadingSpeed:
    """The last measured prefill speed (tokens a second) and time to the first token in a chat."""

    prefill_tok_s: float | None = None
    ttft_s: float | None = None


class TurnViewBuilder:
    """Folds the events of a turn into its view. `lines`: which tool calls leave a line."""

    def __init__(
        self,
        speed: ReadingSpeed,
        clock: Callable[[], float] = time.monotonic,
        *,
        lines: ToolLines = "all",
    ) -> None:
        self.view = TurnView()
        self._speed = speed
        self._clock = clock
        self._asked_at = clock()  # when the model last began to read
        self._lines = lines
        self._calls: dict[str, ToolCallView] = {}  # all of the turn, by id
        self._running: dict[str, tuple[str, float]] = {}  # by call: its tool, and when it began
        self.pending_since: float | None = None  # when an owner was asked, until the answer
        self.asked = TEXTS.an_owner  # who was asked
        self._queued: tuple[int, float] | None = None  # how many are ahead, and since when
        self._notice: tuple[str, float] | None = None  # why the turn waits, and since when
        self._progress: ModelProgress | None = None  # of the current model call
        self._due = 0.0  # when the prompt will be read, as last estimated
        self._heard_at = clock()  # of the model's last sign of life
        self._thinks_since: float | None = None
        self._thought = 0  # deltas, nearly always a token each
        self._timed = ""  # the status that `waiting` wrote last

    def add(self, event: Event) -> None:
        if not isinstance(event, ThoughtDelta | ModelProgress | ApprovalAsked):
            self._thinks_since, self._thought = None, 0
            if self.view.buttons:
                self.view = replace(self.view, buttons=())
        if isinstance(event, TextDelta | ThoughtDelta | ModelProgress | ToolCalled):
            self._heard_at, self._queued, self._notice = self._clock(), None, None
        match event:
            case GpuQueued(ahead):
                since = self._queued[1] if self._queued else self._clock()
                self._notice = None
                self._queued = (ahead, since) if ahead else None
                self._asked_at = self._clock()
                self.view = replace(self.view, status="")
                self.waiting()
            case ModelProgress():
                before = self._progress.processed if self._progress else 0
                if event.processed < before or event.processed <= event.cached:
                    self._asked_at = self._clock()
                self._progress = event
                self.view = replace(self.view, status=self._reading(event))
            case TextDelta(text):
                self.view = replace(self.view, text=self.view.text + text, status="")
            case ThoughtDelta(text):
                self._thought += 1
                self._thinks_since = self._thinks_since or self._clock()
                self.view = replace(self.view, thoughts=self.view.thoughts + text)
                self.waiting()
            case ToolCalled(id, name, arguments):
                first = " ".join(str(next(iter(arguments.values()), "")).split())
                if len(first) > SUMMARY_CHARACTERS:
                    first = first[: SUMMARY_CHARACTERS - 1] + "…"
                self._calls[id] = ToolCallView(id, name, first)
                self._running[id] = name, self._clock()
                self.view = TurnView(self._shown_calls(), plan=self.view.plan)
            case ToolProgress(id, text):
                self._change_call(id, detail=text)
            case ToolFinished():
                self._running.pop(event.id, None)
                self._change_call(
                    event.id,
                    state="ok" if event.ok else "failed",
                    detail=event.shown or event.output,
                    seconds=event.duration_ms / 1000,
                )
                self._asked_at = self._clock()
                self.view = replace(self.view, status="")
            case PlanChanged(plan):
                self.view = replace(self.view, plan=plan)
            case ApprovalPending():
                self.pending_since = self._clock()
                self.waiting()
            case ApprovalAsked():
                waited = self._clock() - (self.pending_since or self._clock())
                for id, (tool, since) in self._running.items():
                    self._running[id] = tool, since + waited  # the tool did not run meanwhile
                self.pending_since = None
                self.waiting()
            case ModelFinished():
                self._progress = None
                self._speed.prefill_tok_s = event.prefill_tok_s or self._speed.prefill_tok_s
                if event.ttft_ms is not None:
                    self._speed.ttft_s = event.ttft_ms / 1000
                self._asked_at = self._clock()
            case Notice(text):  # the model call is repeated: what it wrote is void
                self._notice = text, self._notice[1] if self._notice else self._clock()
                self._progress = self._queued = None
                self.view = replace(self.view, text="", thoughts="", status=text)
            case _:
                pass

    def waiting(self) -> None:
        """Update the status by the clock: what goes on (thinking, a question to an owner, a tool, reading), and
        for how long."""
        if self._thinks_since is not None:
            seconds = self._clock() - self._thinks_since
            status = TEXTS.thinking.format(seconds=round(seconds), tokens=self._thought)
            button = Button(f"{ANSWER_NOW}:", TEXTS.answer_now)
            buttons = [[button]] if seconds >= OFFER_SECONDS else ()
            self.view = replace(self.view, status=status, buttons=buttons)
            return
        if status := self._elapsed():
            if self._running:
                self.view = replace(self.view, calls=self._shown_calls())
            self._timed = status
            self.view = replace(self.view, status=status)

    def _elapsed(self) -> str:
        """What the turn waits for, with the seconds; "" where the shown status is newer."""
        now = self._clock()
        if self.pending_since is not None:
            seconds = round(now - self.pending_since)
            return TEXTS.approval_pending.format(who=self.asked, seconds=seconds)
        if self._running:
            tool, since = next(iter(self._running.values()))
            seconds = round(now - since)
            return TEXTS.running_since.format(tool=tool, seconds=seconds) if seconds else ""
        if self._notice:
            notice, since = self._notice
            seconds = round(now - since)
            late = seconds >= QUIET_SECONDS
            return TEXTS.notice_since.format(notice=notice, seconds=seconds) if late else notice
        if self._queued:
            ahead, since = self._queued
            return TEXTS.in_line.format(place=ahead + 1, seconds=round(now - since))
        return self._of_model(now)

    def _of_model(self, now: float) -> str:
        """As `_elapsed`, for the model: time is shown once its estimate is exceeded, or it is silent."""
        read = self._progress
        seconds, quiet = round(now - self._asked_at), now - self._heard_at
        if self.view.text or self.view.thoughts or (read and read.processed >= read.total):
            if quiet < QUIET_SECONDS:
                return ""
            # Perhaps a long tool call: its tokens are not shown.
            return TEXTS.working_since.format(seconds=round(quiet))
        if read:
            if now < self._heard_at + QUIET_SECONDS:
                return ""
            if now < self._due:
                return self._reading_eta(read, self._due - now)
            return TEXTS.reading_late.format(done=read.processed, total=read.total, seconds=seconds)
        if self.view.status not in ("", self._timed):
            return ""
        expected = self._speed.ttft_s and max(1, round(self._speed.ttft_s))
        if expected and seconds <= expected:
            return TEXTS.reading_estimate.format(seconds=expected)
        late = expected or seconds >= QUIET_SECONDS
        return TEXTS.reading_since.format(seconds=seconds) if late else ""

    def _reading(self, progress: ModelProgress) -> str:
        done, total = progress.processed, progress.total
        read, spent = done - progress.cached, self._clock() - self._asked_at
        speed = read / spent if read > 0 and spent > 0.2 else self._speed.prefill_tok_s
        if done >= total or not speed:
            return TEXTS.reading.format(done=done, total=total)
        seconds = max(1, round((total - done) / speed))
        self._due = self._clock() + seconds
        return self._reading_eta(progress, seconds)

    def _reading_eta(self, progress: ModelProgress, seconds: float) -> str:
        left = max(1, round(seconds))
        return TEXTS.reading_eta.format(done=progress.processed, total=progress.total, seconds=left)

    def _change_call(self, id: str, **changes: object) -> None:
        if id in self._calls:
            self._calls[id] = replace(self._calls[id], **changes)  # type: ignore[arg-type]
            self.view = replace(self.view, calls=self._shown_calls())

    def _shown_calls(self) -> tuple[ToolCallView, ...]:
        """The calls that have a line, by the setting."""
        now, calls = self._clock(), tuple(self._calls.values())
        since = {id: at for id, (_, at) in self._running.items()}
        match self._lines:
            case "none":
                return ()
            case "all":
                return calls
        took = {call.id: max(call.seconds, now - since.get(call.id, now)) for call in calls}
        return tuple(call for call in calls if took[call.id] >= LONG_SECONDS)


def tool_lines(chat: Chat | None) -> ToolLines:
    """Which tool calls leave a line in the chat."""
    found = chat.settings.get(TOOL_LINES) if chat else None
    return next((each for each in get_args(ToolLines) if each == found), "all")
