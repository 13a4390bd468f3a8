"""One worker per chat: inbox to turn, turn to outbox.

    async with Chats(store, run, window, NoChannels()) as chats:
        await chats.submit(Incoming(...))     # durable when it returns
        await chats.stop("tg:1")

A worker exists while its chat has something waiting or running, so idle chats cost nothing. At start,
whatever a killed process left unfinished is taken up; what a terminal asked, when it asks again.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Self

from agent.aio import BackgroundTasks, move_on_when, set_within
from agent.channels import Assignment, Channels, RunTurn, SilentListener, TurnListener
from agent.context import user_message
from agent.context.window import ModelWindow
from agent.errors import BackendAway
from agent.events import Emit, Event, TokenUsage, TurnFinished
from agent.language import speaking, translated
from agent.messages import ToolResult, User
from agent.store import Incoming, Store
from agent.store.backup import SNAPSHOT
from agent.store.errors import StoreError
from agent.store.inbox import CLI, InboxRow, MessageChanged
from agent.store.turns import OpenTurn, PendingWork, RenderedMessage
from agent.timezones import known_zone
from agent.turn import texts
from agent.turn.conversation import StoredJournal, unanswered

log = logging.getLogger(__name__)

SETTLE_BOUND_SECONDS = 10.0
STORE_RETRY_SECONDS = 5.0
RESUMES = 4  # a turn cut off more often in the same step is ended: it may crash the program
CRASH_RETRY_SECONDS = 1.0
DRAIN_SECONDS = 30.0
NOTHING = PendingWork(None, None, None, ())


class Chats:
    """The chats' workers. `zone` (IANA) is that of chats without their own. Every method but the context's own may
    raise StoreError."""

    def __init__(
        self,
        store: Store,
        run: RunTurn,
        window: ModelWindow,
        channels: Channels,
        listener: TurnListener | None = None,
        zone: str = "UTC",
    ) -> None:
        self.store = store
        self._channels = channels
        self._zone = zone
        self._run = run
        self._window = window
        self._listener = listener or SilentListener()
        self._workers: dict[str, Worker] = {}
        self.tasks = BackgroundTasks()

    async def __aenter__(self) -> Self:
        unfinished = await self.store.turns.chats_unfinished()
        for chat, source in [*unfinished, *await self.store.inbox.chats_waiting()]:
            if source != CLI and self._channels.owns(chat, source):
                self.wake(chat)
        self.store.freeze.on_freeze.append(self.stop_all)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Running turns are cut off; the next start resumes them."""
        self.store.freeze.on_freeze.remove(self.stop_all)
        await self.tasks.stop()

    async def submit(self, incoming: Incoming) -> bool:
        """Store a message and start its turn; False for a duplicate, and for an edit of another person's message.

        An edit of a message that the running turn answers stops that turn.
        """
        if incoming.kind == "edit":
            if not await self.store.inbox.changes_message(incoming):
                return False
            worker = self._workers.get(incoming.chat)
            if worker and worker.answers(incoming.ref):
                await self.stop(incoming.chat)
        if not await self.store.inbox.add(incoming):
            return False
        self.wake(incoming.chat)
        return True

    def wake(self, chat: str) -> None:
        """Have the chat's worker look for messages, and start one if there is none."""
        if worker := self._workers.get(chat):
            worker.wake.set()
            return
        worker = Worker(
            chat,
            self.store,
            self._run,
            self._window,
            self._channels,
            self._listener,
            self._zone,
            retire=lambda: self._workers.pop(chat, None),
        )
        self._workers[chat] = worker
        self.tasks.start(worker.run(), f"chat {chat}")

    def running(self) -> list[str]:
        """Chats whose turn runs or begins now."""
        return [chat for chat, worker in self._workers.items() if worker.stop]

    def assignment(self, chat: str) -> Assignment | None:
        """The turn that runs in that chat now."""
        worker = self._workers.get(chat)
        return worker.assignment if worker else None

    def stop_all(self) -> int:
        """Stop every turn that runs; returns how many."""
        return sum(worker.stop_turn() for worker in self._workers.values())

    async def stop(self, chat: str) -> bool:
        """Stop the turn that runs in that chat; False when none does.

        Its open questions to owners are withdrawn first: a press after this grants nothing.
        """
        await self.store.approvals.withdraw(chat)
        worker = self._workers.get(chat)
        return worker is not None and worker.stop_turn()

    def answer_now(self, chat: str) -> bool:
        """End the thinking of the turn that runs in that chat; False when none does."""
        worker = self._workers.get(chat)
        if worker and worker.assignment:
            worker.assignment.answer_now.set()
            return True
        return False

    async def retry(self, chat: str) -> bool:
        """Answer the last message again, without the first answer in the prompt; False when there is none, or
        while a turn runs."""
        last = await self.store.turns.last(chat)
        if last is None or await self.store.turns.unfinished(chat):
            return False
        if not await self.store.turns.retry(last[0]):
            return False
        self._window.audit.forget(last[0].conversation)
        self.wake(chat)
        return True

    async def forget(self, chat: str, by: str = "") -> None:
        """Delete a chat with all that belongs to it, once its turn and waiting messages are ended."""
        waiting = await self.store.inbox.waiting(chat)
        await self.store.inbox.discard(chat, [row.id for row in waiting])
        if worker := self._workers.get(chat):
            await worker.stop_and_wait()
        await self.store.chats.forget(chat, by)
        # Has the last good copy made anew, without the chat.
        await self.store.key_values.put(SNAPSHOT, 0)


@dataclass
class Worker:
    """Runs while its chat has something waiting; `retire` is called at its end."""

    chat: str
    store: Store
    run_turn: RunTurn
    window: ModelWindow
    channels: Channels
    listener: TurnListener
    default_zone: str
    retire: Callable[[], object]
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event | None = None  # of the turn that begins or runs
    assignment: Assignment | None = None  # of the turn that runs
    unwritable: str = ""  # the turn that was cut off because the store could not be written
    free: asyncio.Event = field(default_factory=asyncio.Event)  # set while no turn runs or begins
    handling: tuple[str, object] | None = None  # table and key of the row being answered
    pending: PendingWork = NOTHING  # as last read

    def __post_init__(self) -> None:
        self.free.set()
        self.wake.set()

    async def run(self) -> None:
        """Run turns; when none waits, compact and warm the prompt until a message comes."""
        try:
            while True:
                self.wake.clear()
                try:
                    if await self._answer_next():
                        continue
                    async with move_on_when(self.wake):
                        with suppress(BackendAway):
                            await self.window.rest(self.chat)
                except StoreError as error:
                    log.error("%s waits: %s", self.chat, error)  # noqa: TRY400 - one sentence
                    await self._tell_waiting(str(error))
                    await set_within(self.wake, STORE_RETRY_SECONDS)
                    continue
                except Exception as error:
                    log.exception("the worker of %s failed", self.chat)
                    if await self._count_crash(error):
                        continue
                if not self.wake.is_set():
                    return
        finally:
            self.retire()

    async def _count_crash(self, error: Exception) -> bool:
        """Count the crash at the row being answered, which sets it aside at the third; False without a row."""
        if self.handling is None:
            return False
        table, key = self.handling
        try:
            await self.store.set_aside.crashed(table, key, error)
        except StoreError as failure:
            log.error("%s waits: %s", self.chat, failure)  # noqa: TRY400 - one sentence
        await set_within(self.wake, CRASH_RETRY_SECONDS)
        return True

    def answers(self, ref: str) -> bool:
        """Whether the turn that runs answers the message with the app's id `ref`."""
        answered = self.assignment.answers if self.assignment else ()
        return bool(ref) and any(each.ref == ref for each in answered)

    def stop_turn(self) -> bool:
        """Stop the turn that runs or begins; False when none does."""
        if self.stop:
            self.stop.set()
        return self.stop is not None

    async def stop_and_wait(self) -> None:
        """Stop the turn that runs or begins, and return once none does."""
        self.stop_turn()
        self.wake.set()
        await self.free.wait()

    async def _answer_next(self) -> bool:
        """Run one turn, an unfinished one first; False when there is none."""
        self.handling = None
        pending = await self._pending()
        turn = pending.unfinished
        if not pending.waiting and not (turn and self.channels.owns(self.chat, turn.source)):
            return False
        self.free.clear()
        self.stop = asyncio.Event()
        try:
            with speaking(self.language):
                if turn:
                    await self._resume(turn)
                    return True
                rows = await self._settled(pending)
                if rows and not self.channels.attends(rows[0].incoming):
                    await self.store.inbox.discard(self.chat, [rows[0].id])
                elif rows and (turn := await self._begin(rows)):
                    await self._answer(turn, rows)
                return bool(rows)
        finally:
            self.stop = None
            self.free.set()

    async def _resume(self, turn: OpenTurn) -> None:
        """Finish a turn that was cut off; end it where nobody waits for its answer any more, or where it is another
        process's, for which its messages wait again."""
        self.handling = "turns", turn.id
        rows = await self.store.inbox.of_turn(turn.id)
        own = self.channels.owns(self.chat, turn.source)
        if not own or (rows and not self.channels.attends(rows[0].incoming)):
            await self._close_calls(turn)
            await self.store.turns.cancel(turn, requeue=not own)
        elif turn.id == self.unwritable or await self.store.turns.resume(turn) <= RESUMES:
            await self._answer(turn, rows)
        else:
            await self._give_up(turn, rows)

    async def _pending(self) -> PendingWork:
        pending = await self.store.turns.pending(self.chat)
        own = [row for row in pending.waiting if self.channels.owns(self.chat, row.incoming.source)]
        self.pending = replace(pending, waiting=tuple(own))
        return self.pending

    @property
    def zone(self) -> str:
        """The chat's IANA time zone."""
        known = self.pending.chat
        return (known and known_zone(known.timezone or "")) or self.default_zone

    @property
    def language(self) -> str:
        """The language of the chat's fixed texts; "" if unknown."""
        return self.pending.chat.spoken if self.pending.chat else ""

    async def _settled(self, pending: PendingWork) -> list[InboxRow]:
        """The oldest waiting message and those that belong to it, once no more arrive."""
        deadline = time.monotonic() + SETTLE_BOUND_SECONDS
        while rows := gathered(pending.waiting):
            quiet = max(row.received_at + row.incoming.settle_s for row in rows)
            remaining = min(quiet - self.store.clock(), deadline - time.monotonic())
            if remaining <= 0:
                break
            self.wake.clear()
            await set_within(self.wake, remaining)
            pending = await self._pending()
        return rows

    async def _begin(self, rows: Sequence[InboxRow]) -> OpenTurn | None:
        """Begin a turn; None when its first message killed the program too often and is set aside, or when one
        was edited or taken back meanwhile."""
        first = rows[0].id
        self.handling = "inbox", first
        async with self.store.set_aside.attempt("inbox", first) as allowed:
            if not allowed:
                return None
            try:
                async with move_on_when(self.stop or asyncio.Event()):
                    rows = await self.channels.fetch(rows)  # a long recording takes its time
                plan = self.pending.chat.plan if self.pending.chat else ()
                message = await user_message.render(self.window, rows, self.zone, plan)
            except StoreError:
                raise
            except Exception:  # an answer without the attachments is better than none
                log.exception("what came with a message of %s could not be fetched", self.chat)
                text = "\n".join(row.incoming.text for row in rows)
                message = RenderedMessage("", User(text))
            try:
                turn = await self.store.turns.begin(secrets.token_hex(8), rows, message)
            except MessageChanged:
                return None
        self.handling = "turns", turn.id
        return turn

    async def _answer(self, turn: OpenTurn, rows: Sequence[InboxRow]) -> None:
        journal = self._journal(turn, rows)
        assignment = Assignment(
            turn,
            journal.answers,
            journal,
            self.pending.chat,
            self.pending.frozen,
            stop=self.stop or asyncio.Event(),  # it may have been set while the turn began
        )
        self.assignment = assignment
        if rows and not self.channels.attends(rows[0].incoming):
            assignment.stop.set()  # whoever asked left while the turn began
        began = time.monotonic()
        try:
            async with self._listening(assignment) as emit:
                try:
                    finished = await self.run_turn(assignment, emit)
                except StoreError:
                    self.unwritable = turn.id
                    raise  # the turn stays open and is resumed
                except Exception:
                    log.exception("turn %s of %s failed", turn.id, self.chat)
                    await self._close_calls(turn)
                    await journal.finish(None, translated(texts.BUG), "error", TokenUsage())
                    emit(TurnFinished(translated(texts.BUG), "error", 0))
                else:
                    log_turn(turn, finished, time.monotonic() - began)
        finally:
            self.assignment = None

    async def _give_up(self, turn: OpenTurn, rows: Sequence[InboxRow]) -> None:
        log.error("turn %s of %s was cut off %d times and is given up", turn.id, self.chat, RESUMES)
        await self._close_calls(turn)
        given_up, journal = translated(texts.GIVEN_UP), self._journal(turn, rows)
        await journal.finish(None, given_up, "error", TokenUsage())
        ended = Assignment(turn, journal.answers, journal, self.pending.chat)
        await self.listener.event(ended, TurnFinished(given_up, "error", 0))

    async def _close_calls(self, turn: OpenTurn) -> None:
        entries = (await self.store.turns.progress(turn)).entries
        for call in unanswered([entry.message for entry in entries if entry.turn == turn.id]):
            await self.store.turns.add(turn, ToolResult(call.id, call.name, texts.INTERRUPTED))

    def _journal(self, turn: OpenTurn, rows: Sequence[InboxRow]) -> StoredJournal:
        return StoredJournal(
            self.store,
            turn,
            self.window,
            self.zone,
            self.channels,
            [row.incoming for row in rows],
            self.pending.chat.settings if self.pending.chat else {},
        )

    @asynccontextmanager
    async def _listening(self, assignment: Assignment) -> AsyncIterator[Emit]:
        """An emitter whose events reach the listener in order, all before the block ends, or DRAIN_SECONDS later."""
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        drained = asyncio.Event()

        async def forward() -> None:
            try:
                while (event := await events.get()) is not None:
                    await self.listener.event(assignment, event)
            except Exception:
                log.exception("the listener of turn %s failed", assignment.turn.id)
            finally:
                drained.set()

        async with BackgroundTasks() as tasks:
            tasks.start(forward(), f"listener of {self.chat}")
            yield events.put_nowait
            events.put_nowait(None)
            await set_within(drained, DRAIN_SECONDS)

    async def _tell_waiting(self, why: str) -> None:
        try:
            await self.listener.waiting(self.chat, why)
        except Exception:
            log.exception("the listener of %s failed", self.chat)


def gathered(rows: Sequence[InboxRow]) -> list[InboxRow]:
    """The first row and the following ones that were sent as one message (an album, a paste)."""
    taken = list(rows[:1])
    for row in rows[1:]:
        before, this = taken[-1].incoming, row.incoming
        one = before.kind == this.kind == "message" and before.sender == this.sender
        # Times may be in whole seconds, so a message without a settling time stands alone.
        if not one or not before.settle_s or abs(this.at - before.at) > before.settle_s:
            break
        taken.append(row)
    return taken


def log_turn(turn: OpenTurn, finished: TurnFinished, seconds: float) -> None:
    """Log one line: ids and figures, no text of the conversation."""
    usage = finished.usage
    log.info(
        "turn turn=%s chat=%s source=%s reason=%s tool_calls=%d prompt=%d cached=%d completion=%d seconds=%.2f",
        *(turn.id, turn.chat, turn.source, finished.reason, finished.tool_calls),
        *(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, seconds),
    )
