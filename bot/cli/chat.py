"""voltaire chat: talk in the terminal, with the same live reply as on a phone."""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from agent.approvals import ApprovalRequest
from agent.chats.assignment import Assignment, ChatOptions
from agent.chats.chats import Chats, cli_source
from agent.events import Decision, Event, TurnFinished
from agent.store import Incoming
from bot.approval_question import approval_keyboard, decision, question, send_whole
from bot.channel import Button, ChannelError, ChannelFileSender, OutgoingMessage, send
from bot.chat_trust import TRUST, ChatTrust
from bot.cli.command import Options, chat_option, runs
from bot.cli.connect import running_agent
from bot.composition import open_chats
from bot.replies import Replies
from bot.settings import Settings
from bot.terminal import FILES_FOLDER, InputLines, Terminal
from bot.texts import TEXTS

HELP = "/new a fresh conversation · /retry the last answer once more · /memory the notes · /trust what strangers wrote · /help this · Ctrl-C stops an answer · Ctrl-D ends"


@click.command("chat", help="Talk in the terminal; /help inside, Ctrl-D ends it.")
@chat_option
@runs
async def command(options: Options, chat: str) -> None:
    async with open_conversation(options.settings, chat) as conversation:
        await conversation.run()


@asynccontextmanager
async def open_conversation(settings: Settings, chat: str) -> AsyncIterator["Conversation"]:
    table, source = TEXTS, cli_source()
    lines = InputLines(sys.stdin)
    terminal = Terminal(Console(), lines, Path.cwd() / FILES_FOLDER)

    async def whom(_: str) -> str:
        return table.you

    replies = Replies(terminal, table, whom)

    async def ask(request: ApprovalRequest) -> Decision | None:
        """agent.approvals.AskOwners: whoever is at the terminal is the owner."""
        text = question(table, request)
        keyboard = approval_keyboard(table, request)
        try:
            await send_whole(terminal, request.chat, table, request)
            return decision(await terminal.ask(request.chat, text, keyboard))[1]
        except (EOFError, ChannelError):
            return "denied"

    sender = partial(ChannelFileSender, terminal)
    async with running_agent(settings, ask=ask, file_sender=sender) as agent, replies.tasks:
        await agent.ready()
        await agent.window.check()
        listener = TerminalListener(terminal, replies)
        zone = settings.agent.timezone
        own = ChatOptions(frozenset({source}), zone, resumes=False)
        trust = ChatTrust(chat, agent.store, (await agent.sandboxes.of(chat)).files, table, zone)
        async with open_chats(agent, own, listener) as chats:
            yield Conversation(chat, source, terminal, lines, chats, listener, trust)


@dataclass
class TerminalListener:
    """Shows the live reply, then the final text."""

    terminal: Terminal
    replies: Replies
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def event(self, assignment: Assignment, event: Event) -> None:
        await self.replies.event(assignment, event)
        if isinstance(event, TurnFinished):
            await self.replies.final(assignment.turn.id)
            await send(self.terminal, assignment.chat, OutgoingMessage(event.text))
            self.ended.set()

    async def waiting(self, chat: str, why: str) -> None:
        await self.replies.waiting(chat, why)


@dataclass
class Conversation:
    """Handles lines from the terminal: messages, and the commands of HELP."""

    chat: str
    source: str
    terminal: Terminal
    lines: InputLines
    chats: Chats
    listener: TerminalListener
    trust: ChatTrust

    async def run(self) -> None:
        """Handle lines until the input ends."""
        while True:
            self.terminal.console.print("[bold]›[/bold] ", end="")
            try:
                line = (await self.lines.next()).strip()
            except EOFError:
                return
            if line:
                await self._input(line)

    async def _input(self, line: str) -> None:
        if line == "/help":
            self.terminal.console.print(HELP)
        elif line == "/new":
            await self.chats.store.chats.new_conversation(self.chat)
            self.terminal.console.print("A fresh conversation; notes stay.")
        elif line == "/retry":
            if await self.chats.retry(self.chat):
                await self._wait_for_answer()
        elif line == "/memory":
            notes = await self.chats.store.notes.all(self.chat)
            self.terminal.console.print(
                "\n".join(f"- {note.text}" for note in notes) or "No notes."
            )
        elif line == "/trust":
            await self._trust()
        elif line.startswith("/"):
            self.terminal.console.print(f"There is no {line.split()[0]} here. {HELP}")
        else:
            await self.chats.submit(
                Incoming(self.chat, self.source, str(time.time_ns()), line, origin="owner")
            )
            await self._wait_for_answer()

    async def _trust(self) -> None:
        """Show what strangers wrote; the person at the terminal, an owner, may vouch for it."""
        text, keyboard = await self.trust.report()
        if not keyboard:
            self.terminal.console.print(text)
            return
        leave = Button("", self.trust.texts.kept_touched)
        chosen = await self.terminal.ask(self.chat, text, [*keyboard, [leave]])
        if chosen and await self.trust.vouch(chosen.removeprefix(f"{TRUST}:"), "terminal"):
            self.terminal.console.print(self.trust.texts.vouched)

    async def _wait_for_answer(self) -> None:
        """Wait for the answer; Ctrl-C meanwhile stops it, and not the conversation."""
        loop = asyncio.get_running_loop()
        stopping = set[asyncio.Task[bool]]()
        loop.add_signal_handler(
            signal.SIGINT, lambda: stopping.add(loop.create_task(self.chats.stop(self.chat)))
        )
        task = asyncio.current_task()
        assert task
        try:
            await self.listener.ended.wait()
        finally:
            self.listener.ended.clear()
            loop.add_signal_handler(signal.SIGINT, task.cancel)
