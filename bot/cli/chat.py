"""voltaire chat: talk in the terminal, with the same live reply as on a phone."""

import asyncio
import base64
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from agent.aio import BackgroundTasks
from agent.approvals import ApprovalRequest
from agent.errors import AgentError
from agent.events import ApprovalAsked, Event, TurnFinished, from_wire
from agent.sandbox.output_buffer import clean
from backend.aio import first_of
from backend.client import BackendClient, BackendUnavailable
from bot.approval_question import approval_keyboard, decision, question, send_whole
from bot.channel import Button, ChannelError, OutgoingMessage, send
from bot.cli.ask import new_update
from bot.cli.command import Options, chat_option, model_option, runs
from bot.cli.connect import running_backend, telling_what_keeps
from bot.cli.holder_client import HolderClient, HolderGone, Terminal, with_holder
from bot.commands.changes import ANYWAY
from bot.commands.people import TOY_PROFILE
from bot.commands.trust import TRUST
from bot.live_replies import LiveReply, ReadingSpeed, TurnViewBuilder
from bot.settings import Settings
from bot.terminal import FILES_FOLDER, InputLines
from bot.terminal import Terminal as Screen
from bot.texts import TEXTS

COMMAND = re.compile(r"/(\w+|(changes|undo|model) \S+)")  # and no path or sentence
HELP = "/new a fresh conversation · /retry the last answer once more · /changes what turns changed · /undo takes it back · /memory the notes · /trust what strangers wrote · /model what answers · jobs: voltaire jobs list · /help this · Ctrl-C stops an answer · /exit or Ctrl-D ends"
GREETING = "Voltaire, in the terminal. Write something, or /help; /exit ends. Its files are in a folder of their own, not in this one."
TOY_SERVES = "The model is Pocket, a toy of 5 MB. A real one: voltaire model fit"
PROMPT = "[bold]›[/bold] "


@click.command("chat", help="Talk in the terminal; /help inside, Ctrl-D ends it.")
@chat_option
@model_option
@runs
async def command(options: Options, chat: str, model: str) -> None:
    lines = InputLines(sys.stdin)
    screen = Screen(Console(), lines, Path.cwd() / FILES_FOLDER)
    await converse(options.settings, chat, screen, lines, model)


async def converse(
    settings: Settings, chat: str, screen: Screen, lines: InputLines, model: str = ""
) -> None:
    """Talk until the input ends. Scheduled jobs run meanwhile, whatever process holds the state."""
    command = asyncio.current_task()
    assert command
    screen.console.print(GREETING)
    async with running_backend(settings, model) as backend, telling_what_keeps(backend):
        with suppress(BackendUnavailable):
            if (await backend.status()).backend.profile == TOY_PROFILE:
                screen.console.print(TOY_SERVES)
        conversation = Conversation(chat, screen, lines, command, backend)
        await with_holder(settings, backend, conversation.run, jobs=True)


@dataclass
class Shown:
    """What of a turn is on the screen."""

    reply: LiveReply
    question: asyncio.Task[None] | None = None


@dataclass
class Conversation:
    """Handles lines from the terminal (messages, and the commands of HELP) and shows what comes."""

    chat: str
    screen: Screen
    lines: InputLines
    command: asyncio.Task[Any]  # which Ctrl-C ends while no turn runs
    backend: BackendClient
    asked: tuple[str, str] | None = None  # the message that waits for its answer, and its own name
    prompted: bool = False
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    retried: asyncio.Queue[bool] = field(default_factory=asyncio.Queue)
    speed: ReadingSpeed = field(default_factory=ReadingSpeed)
    shown: Shown | None = None

    async def run(self, client: HolderClient) -> None:
        """Talk until the input ends. Raises HolderGone; run again with the next holder, it goes on."""
        async with (
            client.terminal(self.chat, interactive=True) as terminal,
            BackgroundTasks() as tasks,
        ):
            try:
                talking, showing = await first_of(
                    self.talk(client, terminal), self.show(terminal, tasks)
                )
            finally:
                if self.shown:
                    self.shown.reply.end()
                    self.shown = None
            for task in (showing, talking):
                if not task.cancelled():
                    task.result()

    # -- what the person writes --------------------------------------------------

    async def talk(self, client: HolderClient, terminal: Terminal) -> None:
        if self.asked:
            await self.say(terminal)
        while True:
            if not self.prompted:
                self.screen.console.print(PROMPT, end="")
            self.prompted = True
            try:
                line = (await self.lines.next()).strip()
            except EOFError:
                return
            self.prompted = False
            if line in ("/exit", "/quit"):
                return
            if COMMAND.fullmatch(line):
                await self.obey(client, terminal, line)
            elif line:
                self.asked = line, new_update()
                await self.say(terminal)

    async def say(self, terminal: Terminal) -> None:
        assert self.asked
        text, update = self.asked
        await terminal.send(say=text, update=update)
        await self.wait_for_answer(terminal)
        self.asked = None

    async def obey(self, client: HolderClient, terminal: Terminal, line: str) -> None:
        out = self.screen.console.print
        if line == "/help":
            out(HELP)
        elif line == "/new":
            await client.call("new", chat=self.chat)
            out("A fresh conversation; notes stay.")
        elif line == "/retry":
            await terminal.send(retry=True)
            if await self.retried.get():
                await self.wait_for_answer(terminal)
        elif line == "/memory":
            notes = await client.call("notes", chat=self.chat)
            out(Text(clean("\n".join(f"- {note}" for note in notes) or "No notes.")))
        elif line.split()[0] in ("/changes", "/undo"):
            await self.changes(client, *line[1:].partition(" ")[::2])
        elif line == "/trust":
            await self.trust(client)
        elif line.partition(" ")[0] == "/model":
            server = (await self.backend.status()).backend
            out(
                f"{server.profile or server.model} answers. Another: voltaire model use NAME",
                markup=False,
            )
        else:
            out(f"There is no {line.split()[0]} here. {HELP}")

    async def changes(self, client: HolderClient, name: str, argument: str) -> None:
        """Show what turns changed, or take it back; what stands against that is asked."""
        out, rows = self.screen.console.print, []
        try:
            if name == "changes":
                text = await client.call(name, chat=self.chat, argument=argument)
            else:
                fields = {"chat": self.chat, "argument": argument}
                text, rows = await client.call(name, **fields, anyway=False)
                if rows:
                    keyboard = [[Button(*button) for button in row] for row in rows]
                    chosen = await self.screen.ask(self.chat, text, keyboard)
                    anyway = chosen.endswith(ANYWAY)
                    text = TEXTS.not_undone
                    if anyway:
                        text, _ = await client.call(name, **fields, anyway=True)
        except AgentError as error:
            text = str(error)
        out(Markdown(text))

    async def trust(self, client: HolderClient) -> None:
        """Show what strangers wrote; the person at the terminal, an owner, may vouch for it."""
        text, rows = await client.call("trust", chat=self.chat)
        if not rows:
            self.screen.console.print(text)
            return
        keyboard = [[Button(*button) for button in row] for row in rows]
        leave = Button("", TEXTS.kept_touched)
        chosen = await self.screen.ask(self.chat, text, [*keyboard, [leave]])
        what = chosen.removeprefix(f"{TRUST}:")
        if chosen and await client.call("vouch", chat=self.chat, what=what):
            self.screen.console.print(TEXTS.vouched)

    async def wait_for_answer(self, terminal: Terminal) -> None:
        """Wait for the answer; Ctrl-C meanwhile stops it, and not the conversation."""
        loop, stopping = asyncio.get_running_loop(), set[asyncio.Task[None]]()
        loop.add_signal_handler(
            signal.SIGINT, lambda: stopping.add(loop.create_task(terminal.send(stop=True)))
        )
        try:
            await self.answered.wait()
        finally:
            self.answered.clear()
            loop.add_signal_handler(signal.SIGINT, self.command.cancel)

    # -- what comes --------------------------------------------------------------

    async def show(self, terminal: Terminal, tasks: BackgroundTasks) -> None:
        """Show what the holder sends, until it ends."""
        while True:
            message = await terminal.receive()
            match message["type"]:
                case "event":
                    await self.event(from_wire(message), tasks)
                case "retried":
                    self.retried.put_nowait(message["done"])
                case "question":
                    request = ApprovalRequest(**message["request"])
                    work = self.decide(terminal, message["id"], request)
                    if self.shown:
                        self.shown.question = asyncio.create_task(work)
                    else:  # of a job
                        tasks.start(work, "a question")
                case "files":
                    problem = await self.keep(message["files"], message["caption"])
                    await terminal.send(reply=message["id"], value=problem)
                case "message":
                    self.screen.console.print()
                    await send(self.screen, self.chat, OutgoingMessage(message["text"]))
                    if self.prompted:
                        self.screen.console.print(PROMPT, end="")
                    await terminal.send(reply=message["id"])

    async def event(self, event: Event, tasks: BackgroundTasks) -> None:
        ended = isinstance(event, TurnFinished)
        if self.shown is None and not ended:
            view = TurnViewBuilder(self.speed)
            view.asked = TEXTS.you
            self.shown = Shown(LiveReply(self.screen, self.chat, view))
            tasks.start(self.shown.reply.run(), "a live reply")
        if self.shown:
            self.shown.reply.add(event)
            if self.shown.question and (ended or isinstance(event, ApprovalAsked)):
                self.shown.question.cancel()  # it has expired, or was withdrawn
        if isinstance(event, TurnFinished):
            if self.shown:
                await self.shown.reply.final()
                self.shown = None
            await send(self.screen, self.chat, OutgoingMessage(event.text))
            self.answered.set()

    async def decide(self, terminal: Terminal, id: str, request: ApprovalRequest) -> None:
        """Ask the person at the terminal, who is the owner."""
        text, keyboard = question(request), approval_keyboard(request)
        try:
            await send_whole(self.screen, request.chat, request)
            decided = decision(await self.screen.ask(request.chat, text, keyboard))[1]
        except (EOFError, ChannelError):
            decided = "denied"
        with suppress(HolderGone):
            await terminal.send(reply=id, value=decided)

    async def keep(self, files: Sequence[dict[str, Any]], caption: str) -> str:
        """Write files from the agent to the folder of this terminal; return what went wrong, "" for nothing."""
        content = [(BytesIO(base64.b64decode(each["base64"])), each["name"]) for each in files]
        try:
            await self.screen.send_files(self.chat, content, caption)
        except ChannelError as error:
            return str(error)
        return ""
