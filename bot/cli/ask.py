"""voltaire ask: one turn in the terminal, as plain text or as JSON Lines."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import click

from agent.chats.assignment import Assignment, ChatOptions
from agent.chats.chats import cli_source
from agent.events import (
    Event,
    ModelFinished,
    Notice,
    TextDelta,
    ToolCalled,
    ToolFinished,
    TurnFinished,
    as_json,
)
from agent.store import Incoming
from bot.cli.command import Misused, Options, chat_option, json_option, runs
from bot.cli.connect import running_agent
from bot.composition import open_chats
from bot.settings import Settings

EXIT_CODES = {"done": 0, "backend": 3, "cancelled": 130}  # by the reason that the turn ended


@click.command("ask", help="Ask one thing (- reads standard input) and print the answer.")
@click.argument("text")
@chat_option
@json_option
@runs
async def command(options: Options, text: str, chat: str, as_json: bool) -> int:
    text = (sys.stdin.read() if text == "-" else text).strip()
    if not text:
        raise Misused("There is nothing to ask: the text is empty.")
    printer = TurnPrinter(print_json if as_json else TextPrinter().print)
    finished = await run_one_turn(options.settings, chat, text, printer)
    return EXIT_CODES.get(finished.reason, 1)


async def run_one_turn(
    settings: Settings, chat: str, text: str, printer: "TurnPrinter", stranger: str = ""
) -> TurnFinished:
    """Run one turn of a chat. `stranger` names the source of a text that the user did not write."""
    source = cli_source()
    async with running_agent(settings) as agent:
        await agent.ready()
        await agent.window.check()
        own = ChatOptions(frozenset({source}), settings.agent.timezone, resumes=False)
        async with open_chats(agent, own, printer) as chats:
            number = str(time.time_ns())
            await chats.submit(
                Incoming(chat, source, number, text, origin="owner", stranger=stranger)
            )
            return await printer.finished


class TurnPrinter:
    """A Listener that passes a turn's events to `show`; `finished` is how the turn ended."""

    def __init__(self, show: Callable[[Event], None]) -> None:
        self.finished: asyncio.Future[TurnFinished] = asyncio.get_running_loop().create_future()
        self._show = show

    async def event(self, assignment: Assignment, event: Event) -> None:
        self._show(event)
        if isinstance(event, TurnFinished) and not self.finished.done():
            self.finished.set_result(event)

    async def waiting(self, chat: str, why: str) -> None:
        self._show(Notice(why))


def print_json(event: Event) -> None:
    """One JSON object a line."""
    fields = as_json(event)
    if fields is not None:
        click.echo(json.dumps(fields, ensure_ascii=False))


@dataclass
class TextPrinter:
    """The answer on stdout as it grows; tool calls and notices on stderr, or there too (`steps_out`)."""

    steps_out: bool = False
    _line: str = ""  # of the answer, so far

    def print(self, event: Event) -> None:
        match event:
            case TextDelta(text):
                self._line += text
                click.echo(text, nl=False)
                sys.stdout.flush()
            case ToolCalled(_, name, arguments):
                self._end_line()
                self._step(f"→ {name} {json.dumps(arguments, ensure_ascii=False)}")
            case ToolFinished(ok=ok, output=output, shown=shown):
                lines = (shown or output).splitlines()
                for line in lines[:8]:
                    self._step(f"  {line}")
                if len(lines) > 8:
                    self._step(f"  … {len(lines) - 8} more lines")
                if not ok:
                    self._step("  (failed)")
            case Notice(text):
                self._end_line()
                self._step(f"· {text}")
            case ModelFinished(finish_reason="tool_calls"):
                self._end_line()
            case TurnFinished(text):
                if self._line.strip() != text.strip():  # the streamed text was a preview
                    self._end_line()
                    click.echo(text, nl=False)
                click.echo()

    def _step(self, line: str) -> None:
        click.echo(line, err=not self.steps_out)

    def _end_line(self) -> None:
        if self._line:
            click.echo()
        self._line = ""
