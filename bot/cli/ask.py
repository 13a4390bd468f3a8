"""voltaire ask: one turn in the terminal, as plain text or as JSON Lines."""

import asyncio
import json
import secrets
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Self

import click

from agent.aio import BackgroundTasks
from agent.events import (
    Event,
    ModelFinished,
    ModelProgress,
    Notice,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    ToolFinished,
    TurnFinished,
    as_json,
    from_wire,
)
from agent.sandbox.output_buffer import clean
from backend.client import BackendClient
from bot.cli.command import Misused, Options, chat_option, json_option, model_option, runs
from bot.cli.connect import SILENT_SECONDS, running_backend, tell_on_stderr, telling_what_keeps
from bot.cli.holder_client import HolderClient, with_holder
from bot.settings import Settings

SAVE_CURSOR, RESTORE_CURSOR, CLEAR = "\x1b7", "\x1b8", "\x1b[J"  # CLEAR: to the screen's end
EXIT_CODES = {"done": 0, "backend": 3, "cancelled": 130}  # by the reason that the turn ended


@click.command("ask", help="Ask one thing (- reads standard input) and print the answer.")
@click.argument("text")
@chat_option
@model_option
@json_option
@runs
async def command(options: Options, text: str, chat: str, model: str, as_json: bool) -> int:
    text = (sys.stdin.read() if text == "-" else text).strip()
    if not text:
        raise Misused("There is nothing to ask: the text is empty.")
    if as_json:
        finished = await run_one_turn(options.settings, chat, text, print_json, model=model)
    else:
        printer = TextPrinter()
        late = printer if model else None  # a download shows a line of its own
        async with nullcontext() if late else printer:
            finished = await run_one_turn(
                options.settings,
                chat,
                text,
                printer.print,
                model=model,
                say=printer.step,
                shown=late,
            )
    return EXIT_CODES.get(finished.reason, 1)


async def run_one_turn(
    settings: Settings,
    chat: str,
    text: str,
    show: Callable[[Event], None],
    stranger: str = "",
    model: str = "",
    say: Callable[[str], None] = tell_on_stderr,
    shown: AbstractAsyncContextManager[object] | None = None,
) -> TurnFinished:
    """Run one turn of a chat. `stranger` names the source of a text that the user did not write; `say` is called with
    what the model server does before it is ready; `shown` is entered meanwhile and left at the end."""
    async with (
        running_backend(settings, model) as backend,
        shown or nullcontext(),
        telling_what_keeps(backend, say),
    ):
        return await turn_at_holder(settings, backend, chat, text, new_update(), show, stranger)


async def turn_at_holder(
    settings: Settings,
    backend: BackendClient,
    chat: str,
    text: str,
    update: str,
    show: Callable[[Event], None],
    stranger: str = "",
    client: str = "",
) -> TurnFinished:
    """Run one turn in the process that holds the state. `client` names the program at the owner's page that asks."""

    async def turn(holder: HolderClient) -> TurnFinished:
        async with holder.terminal(chat, interactive=False, client=client) as terminal:
            await terminal.send(say=text, update=update, stranger=stranger)
            while True:
                event = from_wire(await terminal.receive())
                show(event)
                if isinstance(event, TurnFinished):
                    return event

    return await with_holder(settings, backend, turn)


def new_update() -> str:
    """Create a message's unique update id, for which it is answered once, whichever process holds the state."""
    return f"{time.time_ns()}-{secrets.token_hex(4)}"


def print_json(event: Event) -> None:
    """Print an event as a line of JSON, if it has that form."""
    fields = as_json(event)
    if fields is not None:
        click.echo(json.dumps(fields, ensure_ascii=False))


class TextPrinter:
    """The answer on stdout as it grows; tool calls and notices on stderr, or there too (`steps_out`).

    Within its context a model that reads, thinks or writes what is not shown (a tool call) is told after
    SILENT_SECONDS: each second at the cursor of a terminal, elsewhere by one line.
    """

    def __init__(self, *, steps_out: bool = False) -> None:
        self._steps_out = steps_out
        self._line = ""  # of the answer, so far
        self._over = False  # whether the call that wrote it has ended
        self._doing = "waiting for the model"  # what goes on since `_since`
        self._since = self._at = time.monotonic()  # `_at`: when something was printed last
        self._told = ""  # the last sign of life
        self._caveat = ""  # of a job that was planned, where nothing will run it
        self._tasks = BackgroundTasks()

    async def __aenter__(self) -> Self:
        self._tasks.start(self._tick(), "signs of life")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.stop()
        self._wipe()

    def print(self, event: Event) -> None:
        match event:
            case ModelProgress(processed=done, total=total):
                self._does("writing" if done >= total else f"reading {total:,} tokens")
            case ThoughtDelta():
                self._does("thinking")
            case TextDelta(text):
                self._wipe()
                if self._over:  # by another call of the model
                    self._end_line()
                self._over = False
                self._line += text
                self._does("writing")
                click.echo(clean(text), nl=False)  # it may repeat a stranger's words
                sys.stdout.flush()
                self._at = time.monotonic()
            case ToolCalled(_, name, arguments):
                self._does(f"running {name}")
                self.step(f"→ {name} {json.dumps(arguments, ensure_ascii=False)}")
            case ToolFinished(name=name, ok=ok, output=output, shown=shown):
                self._does("")
                lines = (shown or output).splitlines()
                for line in lines[:8]:
                    self.step(f"  {line}")
                if len(lines) > 8:
                    self.step(f"  … {len(lines) - 8} more lines")
                if not ok:
                    self.step("  (failed)")
                if name == "schedule" and ok:
                    from agent.schedule.planner import NOTHING_RUNS  # others need none of it

                    self._caveat = NOTHING_RUNS if NOTHING_RUNS in output else ""
            case Notice(text):
                self.step(f"· {text}")
            case ModelFinished(finish_reason=reason):
                self._over = reason not in ("length", "cut")  # with which the next goes on
            case TurnFinished(text):
                self._does("")
                shown, text = self._line.strip(), text.strip()
                rest = (
                    text.removeprefix(shown) if text.startswith(shown) else text.removesuffix(shown)
                )
                if rest.strip():  # all of it where the streamed text was a preview
                    self._end_line()
                    click.echo(clean(rest.strip()), nl=False)
                click.echo()
                if self._caveat and self._caveat not in text:
                    click.echo(self._caveat)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1)
            self.tell()

    def tell(self) -> None:
        """Print what the model does, once nothing was printed for SILENT_SECONDS."""
        now = time.monotonic()
        if not self._doing or now - self._at < SILENT_SECONDS:
            return
        if sys.stderr.isatty():
            self._told = f"· {self._doing}, {now - self._since:.0f} s"
            click.echo(f"{SAVE_CURSOR}{CLEAR} {self._told}{RESTORE_CURSOR}", nl=False, err=True)
        elif self._told != self._doing and not self._line:
            self._told = self._doing
            click.echo(f"· {self._doing} …", err=True)

    def _does(self, doing: str) -> None:
        if doing != self._doing:
            self._wipe()
            self._doing, self._since = doing, time.monotonic()

    def _wipe(self) -> None:
        """Take the sign of life from the terminal."""
        if self._told and sys.stderr.isatty():
            click.echo(CLEAR, nl=False, err=True)
        self._told = ""

    def step(self, line: str) -> None:
        self._wipe()
        self._end_line()
        click.echo(clean(line), err=not self._steps_out)
        self._at = time.monotonic()

    def _end_line(self) -> None:
        if self._line:
            self._wipe()
            click.echo()
        self._line = ""
