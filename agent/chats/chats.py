"""One worker per chat: inbox to turn, turn to outbox.

    async with Chats(store, run, window, ChatOptions()) as chats:
        await chats.submit(Incoming(...))     # durable when it returns
        await chats.stop("tg:1")

A worker exists while its chat has something waiting or running, so idle chats cost nothing. At start,
whatever a killed process left unfinished is taken up; what a terminal asked, when it asks again.
"""

from typing import Self

from agent.aio import BackgroundTasks
from agent.chats.assignment import Assignment, ChatOptions, Listener, RunTurn, SilentListener
from agent.chats.worker import Worker
from agent.context.window import ModelWindow
from agent.store import Incoming, Store
from agent.store.backup import SNAPSHOT
from agent.store.inbox import CLI


class Chats:
    """Every method but the context's own may raise StoreError."""

    def __init__(
        self,
        store: Store,
        run: RunTurn,
        window: ModelWindow,
        options: ChatOptions,
        listener: Listener | None = None,
    ) -> None:
        self.store = store
        self.options = options
        self._run = run
        self._window = window
        self._listener = listener or SilentListener()
        self._workers: dict[str, Worker] = {}
        self.tasks = BackgroundTasks()

    async def __aenter__(self) -> Self:
        unfinished = await self.store.turns.chats_unfinished()
        for chat, source in [*unfinished, *await self.store.inbox.chats_waiting()]:
            if source != CLI and self.options.own(chat, source):
                self.wake(chat)
        self.store.freeze.on_freeze.append(self.stop_all)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Running turns are cut off; the next start resumes them."""
        self.store.freeze.on_freeze.remove(self.stop_all)
        await self.tasks.stop()

    async def submit(self, incoming: Incoming) -> bool:
        """Store a message and have it answered; False for a duplicate, and for an edit of another's message.

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
            self.options,
            self._listener,
            retire=lambda: self._workers.pop(chat, None),
        )
        self._workers[chat] = worker
        self.tasks.start(worker.run(), f"chat {chat}")

    def running(self) -> list[str]:
        """Chats whose turn runs or begins now."""
        return [chat for chat, worker in self._workers.items() if worker.stop]

    def assignment(self, chat: str) -> Assignment | None:
        """What runs in that chat now."""
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
