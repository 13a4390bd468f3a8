"""One worker per chat: inbox to turn, turn to outbox.

    async with Chats(store, run, window, ChatOptions(frozenset({"telegram"}))) as chats:
        await chats.submit(Incoming(...))     # durable when it returns
        await chats.stop("tg:1")

A worker exists while its chat has something waiting or running, so idle chats cost nothing. At start,
whatever a killed process left unfinished is taken up.
"""

import os
import secrets
from contextlib import ExitStack, suppress
from typing import Self

from agent.aio import BackgroundTasks
from agent.chats.assignment import ChatOptions, Listener, RunTurn, SilentListener
from agent.chats.worker import EPHEMERAL, Worker
from agent.context.window import ModelWindow
from agent.store import Incoming, Store
from agent.store.backup import SNAPSHOT
from agent.store.errors import StoreError


def cli_source() -> str:
    """A source for this process's own messages, which no other process answers."""
    return f"{EPHEMERAL}:{os.getpid()}-{secrets.token_hex(4)}"


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
        self._owner = ""  # of the leases
        self._stack = ExitStack()
        self._workers: dict[str, Worker] = {}
        self.tasks = BackgroundTasks()

    async def __aenter__(self) -> Self:
        sources, left = self.options.sources, []
        if self.options.resumes:
            left += await self.store.turns.chats_unfinished(sources)
            left += await self.store.inbox.chats_waiting(sources)
        self._owner = self._stack.enter_context(self.store.leases.owner())
        for chat in dict.fromkeys(left):
            self.wake(chat)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Running turns are cut off; the next start resumes them."""
        with self._stack:
            await self.tasks.stop()
            with suppress(StoreError):  # a cancelled worker may not have released its own
                await self.store.leases.release_all(self._owner)

    async def submit(self, incoming: Incoming) -> bool:
        """Store a message and have it answered; False for a duplicate.

        An edit of a message that the running turn answers stops that turn.
        """
        if incoming.kind == "edit":
            if await self.store.inbox.is_known(incoming):
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
            self._owner,
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
        """Chats whose turn runs in this process now."""
        return [chat for chat, worker in self._workers.items() if worker.stop]

    async def stop(self, chat: str) -> bool:
        """Stop the turn that runs in that chat, in any process; False when none does.

        Its open questions to owners are withdrawn first: a press after this grants nothing.
        """
        await self.store.approvals.withdraw(chat)
        worker = self._workers.get(chat)
        if worker and worker.stop:
            worker.stop.set()
            return True
        return await self.store.leases.request_stop(chat)

    def answer_now(self, chat: str) -> bool:
        """End the thinking of the turn that runs in that chat in this process; False when none does."""
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
        waiting = await self.store.inbox.waiting(chat, self.options.sources)
        await self.store.inbox.discard(chat, [row.id for row in waiting])
        if worker := self._workers.get(chat):
            await worker.stop_and_wait()
        await self.store.chats.forget(chat, by)
        # Has the last good copy made anew, without the chat.
        await self.store.key_values.put(SNAPSHOT, 0)
