"""The worker of one chat: takes its lease, then its oldest messages, and plays turns until none waits."""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agent.aio import move_on_when, set_within
from agent.chats.assignment import Assignment, Emit, Listener, Run, Service
from agent.chats.lease import STOP_POLL_SECONDS, Lease
from agent.context.user_message import tell
from agent.errors import BackendAway
from agent.events import Event, TokenUsage, TurnFinished
from agent.messages import Assistant, ToolCall, ToolResult, User
from agent.store import Store
from agent.store.errors import StoreError
from agent.store.inbox import InboxRow
from agent.store.turns import OpenTurn, PendingWork, RenderedMessage, TurnProgress
from agent.turn import texts
from agent.turn.journal import StoredJournal, Window

log = logging.getLogger(__name__)

SETTLE_BOUND_SECONDS = 10.0
STORE_RETRY_SECONDS = 5.0
RESUMES = 4  # a turn cut off more often in the same step is ended, lest it take us down for ever
DRAIN_SECONDS = 30.0
EPHEMERAL = "cli"  # sources of command lines: once killed, nobody waits for their answers


@dataclass
class Worker:
    """Lives while its chat has something waiting; `retire` is called at its end."""

    chat: str
    owner: str
    store: Store
    run_turn: Run
    window: Window
    service: Service
    listener: Listener
    retire: Callable[[], None]
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event | None = None  # of the turn that runs now
    put_down: str = ""  # the turn that waits for a store that can be written: no fault of its own
    free: asyncio.Event = field(default_factory=asyncio.Event)  # no turn runs or begins
    zone: str = ""  # of the chat, an IANA name; read when a turn begins

    def __post_init__(self) -> None:
        self.free.set()

    async def run(self) -> None:
        try:
            while await self._serve():
                pass
        finally:
            self.retire()

    async def emptied(self) -> None:
        """Return when no turn runs or begins; one that does is stopped."""
        while not self.free.is_set():
            self.wake.set()
            self._wish_to_stop()
            await set_within(self.free, STOP_POLL_SECONDS)

    async def _serve(self) -> bool:
        """Play a turn, or rest for want of one; False when there is nothing more to do."""
        self.wake.clear()
        try:
            if await self._turn():
                return True
            async with move_on_when(self.wake):
                await self._rest()
        except StoreError as error:
            await self._held_up(str(error))
            return True
        except Exception:
            log.exception("the worker of %s failed", self.chat)
        return self.wake.is_set()

    async def _turn(self) -> bool:
        """Play one turn, an unfinished one first; False when there is none."""
        if not self._ours(await self._due()):
            return False
        lease = Lease(self.store.leases, self.chat, self.owner, self._wish_to_stop, self._waits)
        async with lease.held(), self._busy():
            due = await self._due()
            self.zone = due.zone or self.service.zone
            if due.unfinished and due.unfinished.source in self.service.sources:
                await self._resume(due.unfinished)
                return True
            if due.unfinished:
                await self._abandon(due.unfinished)
                due = await self._due()  # what it was to answer may wait again
            rows = await self._settled(due)
            if rows:
                await self._play(await self._begin(rows), rows)
            return bool(rows)

    @asynccontextmanager
    async def _busy(self) -> AsyncIterator[None]:
        self.free.clear()
        try:
            yield
        finally:
            self.free.set()

    async def _begin(self, rows: Sequence[InboxRow]) -> OpenTurn:
        turn = secrets.token_hex(8)
        try:
            rows = await self.service.fetch(rows)
            told = await tell(self.store, rows, self.zone, self.window.enter)
        except StoreError:
            raise
        except Exception:  # better answered without what came along than never
            log.exception("what came with a message of %s could not be brought", self.chat)
            told = plain(rows)
        return await self.store.turns.begin(turn, rows, told)

    async def _due(self) -> PendingWork:
        return await self.store.turns.pending(self.chat, self.service.sources)

    def _ours(self, due: PendingWork) -> bool:
        """Whether there is something for us to do."""
        cut_off = due.unfinished and due.unfinished.source in self.service.sources
        return bool(due.waiting or cut_off)

    async def _resume(self, turn: OpenTurn) -> None:
        if turn.id == self.put_down or await self.store.turns.resume(turn) <= RESUMES:
            await self._play(turn, await self.store.inbox.of_turn(turn.id))
            return
        log.error("turn %s of %s was cut off %d times and is given up", turn.id, self.chat, RESUMES)
        await self._close_calls(turn)
        journal = self._journal(turn, await self.store.inbox.of_turn(turn.id))
        await journal.finish(None, texts.GIVEN_UP, "error", TokenUsage())

    async def _abandon(self, turn: OpenTurn) -> None:
        """End another source's turn whose process is gone; what it was to answer waits again."""
        await self._close_calls(turn)
        await self.store.turns.cancel(turn, requeue=not turn.source.startswith(EPHEMERAL))

    async def _close_calls(self, turn: OpenTurn) -> None:
        for call in unanswered(turn, await self.store.turns.progress(turn)):
            await self.store.turns.add(turn, ToolResult(call.id, call.name, texts.INTERRUPTED))

    async def _settled(self, due: PendingWork) -> list[InboxRow]:
        """The oldest waiting message and those that belong to it, once they have stopped coming."""
        deadline = self.store.clock() + SETTLE_BOUND_SECONDS
        while True:
            rows = gathered(due.waiting)
            if not rows:
                return rows
            now = self.store.clock()
            quiet = max(row.received_at + row.incoming.settle_s for row in rows)
            remaining = min(quiet, deadline) - now
            if remaining <= 0:
                return rows
            self.wake.clear()
            await set_within(self.wake, min(remaining, SETTLE_BOUND_SECONDS))
            due = await self._due()

    async def _play(self, turn: OpenTurn, rows: Sequence[InboxRow]) -> None:
        journal = self._journal(turn, rows)
        assignment = Assignment(turn, tuple(journal.answers), journal)
        self.stop = assignment.stop
        try:
            async with self._heard(assignment) as emit:
                await self._run(assignment, emit)
        finally:
            self.stop = None

    async def _run(self, assignment: Assignment, emit: Emit) -> None:
        began = time.monotonic()
        try:
            _tell(assignment, await self.run_turn(assignment, emit), time.monotonic() - began)
        except StoreError:
            self.put_down = assignment.turn.id
            raise  # nothing can be written: the turn stays open and is resumed
        except Exception:
            log.exception("turn %s of %s failed", assignment.turn.id, self.chat)
            await self._close_calls(assignment.turn)
            await assignment.journal.finish(None, texts.BUG, "error", TokenUsage())
            emit(TurnFinished(texts.BUG, "error", 0))

    def _journal(self, turn: OpenTurn, rows: Sequence[InboxRow]) -> StoredJournal:
        return StoredJournal(
            self.store,
            turn,
            self.window,
            self.zone,
            self.service.sources,
            self.service.compose,
            self.service.fetch,
            [row.incoming for row in rows],
        )

    @asynccontextmanager
    async def _heard(self, assignment: Assignment) -> AsyncIterator[Emit]:
        """An emitter whose events reach the listener in order, all of them before the turn is over."""
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        hearing = asyncio.create_task(self._hear(assignment, events))
        try:
            yield events.put_nowait
            events.put_nowait(None)
            await asyncio.wait([hearing], timeout=DRAIN_SECONDS)
        finally:
            hearing.cancel()
            await asyncio.wait([hearing])

    async def _hear(self, assignment: Assignment, events: asyncio.Queue[Event | None]) -> None:
        try:
            while (event := await events.get()) is not None:
                await self.listener.event(assignment, event)
        except Exception:
            log.exception("the listener of turn %s failed", assignment.turn.id)

    def _wish_to_stop(self) -> bool:
        if self.stop:
            self.stop.set()
        return self.stop is not None

    async def _waits(self, why: str) -> None:
        try:
            await self.listener.waiting(self.chat, why)
        except Exception:
            log.exception("the listener of %s failed", self.chat)

    async def _rest(self) -> None:
        """After the reply: what may be done while nobody waits."""
        with contextlib.suppress(BackendAway):
            await self.window.rest(self.chat)

    async def _held_up(self, why: str) -> None:
        log.error("%s waits: %s", self.chat, why)
        await self._waits(why)
        await set_within(self.wake, STORE_RETRY_SECONDS)


def _tell(assignment: Assignment, ended: TurnFinished, seconds: float) -> None:
    """One line for the log: ids and figures, nothing that was said."""
    turn, usage = assignment.turn, ended.usage
    log.info(
        "turn turn=%s chat=%s source=%s reason=%s tool_calls=%d prompt=%d cached=%d completion=%d seconds=%.2f",
        *(turn.id, turn.chat, turn.source, ended.reason, ended.tool_calls),
        *(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, seconds),
    )


def gathered(rows: Sequence[InboxRow]) -> list[InboxRow]:
    """The first of the rows and those right behind it that were said as one (an album, a paste)."""
    taken = list(rows[:1])
    for row in rows[1:]:
        before, this = taken[-1].incoming, row.incoming
        one = before.kind == this.kind == "message" and before.sender == this.sender
        # An app's times may be whole seconds: what has nothing to wait for stands alone.
        if not one or not before.settle_s or abs(this.at - before.at) > before.settle_s:
            break
        taken.append(row)
    return taken


def plain(rows: Sequence[InboxRow]) -> RenderedMessage:
    """The words alone."""
    return RenderedMessage("", User("\n".join(row.incoming.text for row in rows)))


def unanswered(turn: OpenTurn, steps: TurnProgress) -> list[ToolCall]:
    """The turn's tool calls without a result."""
    messages = [entry.message for entry in steps.entries if entry.turn == turn.id]
    results = {message.call for message in messages if isinstance(message, ToolResult)}
    calls = [call for m in messages if isinstance(m, Assistant) for call in m.calls]
    return [call for call in calls if call.id not in results]
