"""One turn: ask the model, run what it calls, repeat until it answers.

    finished = await run_turn(Turn(...), emit)

Every finished step is in the journal before the next one starts, so a turn cut
off anywhere is taken up again by running it once more with the same journal.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from agent.aio import move_on_when
from agent.errors import (
    AgentError,
    BackendAway,
    ContextFull,
    Looping,
    ToolLimit,
    TurnError,
)
from agent.events import TurnFinished, TurnStarted
from agent.llm.tool_call_parser import KnownTools, ToolCallParser
from agent.messages import Assistant, ToolCall
from agent.model import Completion, Request
from agent.store.errors import StoreError
from agent.turn import texts
from agent.turn.answer_checks import AnswerChecks
from agent.turn.delegate import delegating
from agent.turn.limits import TurnLimits
from agent.turn.model_caller import ModelCaller
from agent.turn.step import Step, read_step
from agent.turn.tool_runner import CallOutcome, ToolRunner, TurnProgress, by_name, described
from agent.turn.transcript import TurnTranscript
from agent.turn.turn import Emit, Ending, Turn, at_once

__all__ = ["Emit", "Turn", "TurnLimits", "at_once", "run_turn"]

log = logging.getLogger(__name__)

LAST_WORD_TOKENS = 1024  # of the budget, kept for the answer at a limit
SHORTENINGS = 2
REPORTED = 8  # lines of a report
SOON = 0.9  # of the seconds: no new step begins after it
ROOM = 3 / 8  # bytes of tool output per token of the window: an eighth of it, at 3 bytes a token


async def run_turn(turn: Turn, emit: Emit) -> TurnFinished:
    """Run or resume a turn; its last event, exactly one TurnFinished, is returned as well.

    `emit` must not block. Cancelling the task leaves the turn as it stands, to be
    resumed from its journal (a shutdown); `turn.stop` finishes it (/stop). Raises
    StoreError when the journal cannot be written: the turn stays open then, too.
    """
    course = TurnTranscript(turn.journal)
    turn = delegating(turn, run_turn, course.aside)
    emit(TurnStarted(turn.journal.turn, turn.journal.chat))
    running = _Running(turn, course, emit)
    await course.open()
    ending = await _ending(turn, running)
    await course.close(stopped=ending.reason == "cancelled")
    usage = course.usage
    await turn.journal.finish(ending.message, ending.text, ending.reason, usage)
    finished = TurnFinished(ending.text, ending.reason, running.tally.calls, usage)
    emit(finished)
    return finished


async def _ending(turn: Turn, running: "_Running") -> Ending:
    """How the turn ends: by itself, by /stop, or by what went wrong."""
    try:
        ended = await _unless_stopped(turn, running)
    except TurnError as error:
        return Ending.said(str(error), error.reason)
    except AgentError as error:
        return Ending.said(str(error), "backend" if isinstance(error, BackendAway) else "error")
    except StoreError:
        raise
    except Exception:
        log.exception("turn %s of %s failed", turn.journal.turn, turn.journal.chat)
        return Ending.said(texts.BUG, "error")
    return ended or Ending.said(running.so_far(), "cancelled")


async def _unless_stopped(turn: Turn, running: "_Running") -> Ending | None:
    """The turn's own end, or None when it was stopped first."""
    async with move_on_when(turn.stop):
        return await running.within_time()
    return None


class _Running:
    """The turn's loop. `run` is the sentence; the rest are its words."""

    def __init__(self, turn: Turn, course: TurnTranscript, emit: Emit) -> None:
        self.course = course
        self.tally = TurnProgress()
        self._turn = turn
        self._emit = emit
        self._limits = turn.limits
        self._known = KnownTools.of(turn.schemas)
        self._asking = ModelCaller(turn.model, self._known, turn.limits, turn.ready, emit)
        self._objections = AnswerChecks()
        self._acting = ToolRunner(
            by_name(turn.tools),
            turn.desk,
            turn.approvals,
            emit,
            turn.journal.turn,
            turn.journal.chat,
            self.tally,
        )
        self._repairs = 0
        self._window = 0
        self._soon = 0.0

    async def within_time(self) -> Ending:
        seconds = self._limits.seconds
        self._soon = asyncio.get_running_loop().time() + SOON * seconds
        try:
            async with asyncio.timeout(seconds) as limit:
                return await self.run()
        except TimeoutError:
            if limit.expired():
                raise ToolLimit(self._report(self._out_of_time())) from None
            raise

    async def run(self) -> Ending:
        await self._take_up()
        while not (limit := self._limit()):
            step = await self._ask()
            if step.calls:
                await self._act(step)
            elif advice := self._objections(step, self.tally.done):
                await self._object(step, advice)
            else:
                return self._answer(step)
        return await self._last_word(limit)

    async def _take_up(self) -> None:
        """Go on where the journal stands; after a crash, with the open calls first."""
        self._window = await self._asking.window()
        self._acting.room = round(self._window * ROOM)
        for call, result in self.course.results():
            self.tally.remember(call, result)
        if open_calls := self.course.open_calls():
            waiting = await self._turn.approvals.undecided(self._turn.journal.turn)
            await self._act_on(open_calls, lost=self.course.started - waiting)
        elif self.course.own and isinstance(self.course.own[-1], Assistant):
            await self.course.note(texts.GO_ON)

    async def _ask(self, *, last: bool = False) -> Step:
        await self.course.compact()
        completion, reader = await self._fitting(last=last)
        await self.course.asked(completion)
        taken = self.course.call_ids()
        return read_step(completion, reader, self._known, taken, self._turn.new_id)

    async def _fitting(self, *, last: bool) -> tuple[Completion, ToolCallParser]:
        """A completion of the transcript, shortened as often as the server finds it too long."""
        for _ in range(SHORTENINGS):
            try:
                return await self._asking(self._request(last=last))
            except ContextFull:
                if not await self.course.compact(full=True):
                    raise
        return await self._asking(self._request(last=last))

    def _request(self, *, last: bool) -> Request:
        left = self._limits.tokens - self.course.usage.completion_tokens
        budget = LAST_WORD_TOKENS if last else max(LAST_WORD_TOKENS, left - LAST_WORD_TOKENS)
        return Request(
            messages=self.course.messages,
            tools=tuple(self._turn.schemas),
            tool_choice="none" if last else "auto",
            max_tokens=min(self._limits.reply_cap(self._window), budget),
            sampling=self._turn.sampling,
            thinking=self._turn.thinking,
        )

    async def _act(self, step: Step) -> None:
        self._objections.acted()
        await self.course.step(step)
        await self._act_on(step.calls, unreadable=step.unreadable)
        await self.course.steer()

    async def _act_on(
        self,
        calls: Sequence[ToolCall],
        *,
        unreadable: Collection[str] = (),
        lost: Collection[str] = (),
    ) -> None:
        """Run the calls in order. `lost` had started when the program was killed."""
        refused = False
        for call in calls:
            if call.id in lost:
                await self.course.result(call, texts.INTERRUPTED)
                continue
            outcome = await self._run(call, readable=call.id not in unreadable)
            refused |= outcome.refused
            await self.course.result(call, outcome.text)
            if outcome.circle:
                raise Looping(self._report(texts.LOOPING.format(call=described(call))))
        self._repairs += refused

    async def _run(self, call: ToolCall, *, readable: bool) -> CallOutcome:
        most = self._limits.max_tool_calls
        if self.tally.calls >= most:
            return CallOutcome(texts.NOT_RUN_LIMIT.format(count=most))
        outcome = await self._acting(call, partial(self.course.begin, call), readable=readable)
        if self.tally.calls >= most:
            return replace(outcome, text=f"{outcome.text}\n{texts.LAST_CALL}")
        return outcome

    async def _object(self, step: Step, advice: str) -> None:
        await self.course.step(step)
        await self.course.note(advice)

    def _answer(self, step: Step) -> Ending:
        text = self._objections.text(step, self.tally.done)
        if text:
            return Ending(text, "done", step.message)
        return Ending.said(texts.UNUSABLE if step.cut_call else texts.NO_ANSWER, "error")

    def _limit(self) -> TurnError | None:
        """What ends the turn at a limit, if one is reached."""
        if self.tally.calls >= self._limits.max_tool_calls:
            return ToolLimit(texts.LIMIT_CALLS.format(count=self._limits.max_tool_calls))
        if self.course.usage.completion_tokens >= self._limits.tokens - LAST_WORD_TOKENS:
            return ToolLimit(texts.LIMIT_TOKENS.format(count=self._limits.tokens))
        if asyncio.get_running_loop().time() >= self._soon:
            return ToolLimit(self._out_of_time())
        return TurnError(texts.UNUSABLE) if self._repairs > self._limits.max_repairs else None

    async def _last_word(self, limit: TurnError) -> Ending:
        """One more answer without tools; a report of our own if the model calls all the same."""
        step = await self._ask(last=True)
        text = "" if step.calls else self._objections.text(step, self.tally.done)
        if not text:
            raise type(limit)(self._report(str(limit)))
        # Past too many malformed calls the model has found words after all: an answer.
        return Ending(text, limit.reason if isinstance(limit, ToolLimit) else "done", step.message)

    def _out_of_time(self) -> str:
        return texts.LIMIT_SECONDS.format(count=round(self._limits.seconds))

    def _report(self, why: str) -> str:
        lines = [f"- {line}" for line in self.tally.lines[-REPORTED:]]
        return "\n".join([why, *([texts.DONE_SO_FAR, *lines] if lines else [])])

    def so_far(self) -> str:
        """What a stopped turn has to show."""
        return f"{self._asking.partial}\n\n{texts.STOPPED}".strip()
