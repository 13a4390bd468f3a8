"""A conversation in the terminal: the agent's chats on the Terminal channel, answers through the outbox."""

import asyncio
import itertools
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO

from rich.console import Console

from agent.approvals import Request
from agent.assignment import Service
from agent.chats import Chats, Incoming, cli_source
from agent.events import Decision
from agent.journal import Reply
from agent.store import Store, open_store
from backend.client import BackendClient
from bot.channel import Channel, Letter
from bot.compose import DATABASE, open_agent, open_chats, private
from bot.delivery import Delivery
from bot.question import buttons, decision, question
from bot.replies import Replies
from bot.settings import Settings
from bot.terminal import SENT, Lines, Terminal
from bot.texts import Texts, texts


@dataclass(frozen=True)
class Talk:
    """One chat at one terminal."""

    chat: str
    source: str
    store: Store
    chats: Chats
    channel: Channel
    lines: Lines
    texts: Texts
    _numbers: "itertools.count[int]" = field(
        default_factory=lambda: itertools.count(time.time_ns())
    )

    async def say(self, text: str) -> None:
        await self.channel.send(self.chat, Letter(text))

    async def submit(self, words: str) -> None:
        update = str(next(self._numbers))
        await self.chats.submit(Incoming(self.chat, self.source, update, words))

    async def commanded(self, word: str) -> str:
        """Do what a command says; what there is to say about it, "" for an unknown one."""
        match word:
            case "/new":
                await self.chats.stop(self.chat)
                await self.chats.new(self.chat)
                return self.texts.new
            case "/stop":
                return "…" if await self.chats.stop(self.chat) else self.texts.nothing_runs
            case "/retry":
                return "…" if await self.chats.retry(self.chat) else self.texts.nothing_to_retry
            case "/memory":
                notes = await self.store.notes.all(self.chat)
                lines = "\n".join(f"{note.id}. {note.text}" for note in notes)
                return self.texts.notes.format(notes=lines) if notes else self.texts.no_notes
        return ""

    async def rest(self) -> None:
        """Wait until nothing is waiting to be answered or shown."""
        while await self.store.inbox.waiting(self.chat, [self.source]) or self.chats.running():
            await asyncio.sleep(0.05)
        while await self.store.outbox.next(self.chat):
            await asyncio.sleep(0.05)


@asynccontextmanager
async def open_talk(settings: Settings, backend: BackendClient, chat: str) -> AsyncIterator[Talk]:
    """Everything for one terminal, answering only what is typed there."""
    private(settings.state_dir)
    fixed, lines, source = texts(settings.telegram.language), Lines(sys.stdin), cli_source()
    terminal = Terminal(Console(), lines, settings.state_dir / SENT)
    async with (
        open_store(settings.state_dir / DATABASE) as store,
        Replies(terminal, fixed) as replies,
        open_agent(
            settings,
            backend,
            store,
            ask=_Asking(terminal, fixed),
            courier=partial(_Courier, terminal),
        ) as agent,
        open_chats(agent, _service(settings, source), replies) as chats,
    ):
        await agent.ready()
        delivery = Delivery(store, terminal, fixed, chat, replies.final)
        delivering = asyncio.create_task(delivery.run())
        try:
            yield Talk(chat, source, store, chats, terminal, lines, fixed)
        finally:
            delivering.cancel()
            await asyncio.wait([delivering])


def _service(settings: Settings, source: str) -> Service:
    zone = settings.agent.timezone
    return Service(frozenset({source}), zone, compose=_compose, resumes=False)


def _compose(reply: Reply) -> list[str]:
    return [Letter(reply.text).written()]


@dataclass(frozen=True)
class _Asking:
    """agent.approvals.Ask at a terminal: who sits there is the owner."""

    channel: Channel
    texts: Texts

    async def __call__(self, request: Request) -> Decision | None:
        rows = buttons(self.texts, request.id)
        words = question(self.texts, request, elsewhere=False)
        try:
            asked = await self.channel.ask(request.chat, words, rows)
        except EOFError:
            return "denied"  # nobody sits there any more
        return decision(asked.choice)[1] if asked.choice else None


@dataclass(frozen=True)
class _Courier:
    """agent.desk.Courier of a chat at a terminal."""

    channel: Channel
    chat: str

    async def send_file(self, file: BinaryIO, name: str, caption: str) -> None:
        await self.channel.file(self.chat, file, name, caption)
