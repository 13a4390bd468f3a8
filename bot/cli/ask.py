"""voltaire ask: one turn in the terminal, as plain text or as JSON Lines."""

import asyncio
import json
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import click

from agent.chats.assignment import Assignment
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
from bot.cli import Misused
from bot.cli.options import chat_option, json_option, runs, settings_of, words
from bot.settings import Settings


@click.command("ask", help="Ask one thing (- reads standard input) and print the answer.")
@click.argument("text")
@chat_option
@json_option
@click.pass_context
@runs
async def command(ctx: click.Context, text: str, chat: str, as_json: bool) -> int:
    said = words(text).strip()
    if not said:
        raise Misused("There is nothing to ask: the text is empty.")
    show = Lines() if as_json else Plain()
    return await ask(settings_of(ctx), said, chat, show)


async def ask(settings: Settings, text: str, chat: str, show: "Shown", model: str = "") -> int:
    """Put a message into a chat and show its turn; the exit code."""
    from agent.chats.assignment import ChatOptions
    from agent.chats.chats import Incoming, cli_source
    from bot.cli.connect import running_agent
    from bot.composition import open_chats

    source = cli_source()
    async with running_agent(settings, model) as agent:
        await agent.ready()
        await agent.window.check()
        service = ChatOptions(frozenset({source}), settings.agent.timezone, resumes=False)
        async with open_chats(agent, service, show) as chats:
            await chats.submit(Incoming(chat, source, str(time.time_ns()), text))
            finished = await show.finished()
    return {"done": 0, "backend": 3, "cancelled": 130}.get(finished.reason, 1)


@dataclass
class Shown(ABC):
    """A listener that prints a turn and knows when it has ended."""

    _end: asyncio.Future[TurnFinished] = field(init=False)

    def __post_init__(self) -> None:
        self._end = asyncio.get_running_loop().create_future()

    async def finished(self) -> TurnFinished:
        return await self._end

    async def event(self, assignment: Assignment, event: Event) -> None:
        self.print(event)
        if isinstance(event, TurnFinished) and not self._end.done():
            self._end.set_result(event)

    async def waiting(self, chat: str, why: str) -> None:
        self.print(Notice(why))

    @abstractmethod
    def print(self, event: Event) -> None: ...


class Lines(Shown):
    """One JSON object a line."""

    def print(self, event: Event) -> None:
        fields = as_json(event)
        if fields is not None:
            click.echo(json.dumps(fields, ensure_ascii=False))


@dataclass
class Plain(Shown):
    """The answer on stdout as it grows; what is done for it on stderr (`quiet`) or beside it."""

    quiet: bool = True
    _text: str = ""

    def print(self, event: Event) -> None:
        match event:
            case TextDelta(text):
                self._text += text
                click.echo(text, nl=False)
                sys.stdout.flush()
            case ToolCalled(_, name, arguments):
                self._fresh_line()
                click.echo(f"→ {name} {json.dumps(arguments, ensure_ascii=False)}", err=self.quiet)
            case ToolFinished(ok=ok, output=output, shown=shown):
                self._tool_output(shown or output, ok)
            case Notice(text):
                self._fresh_line()
                click.echo(f"· {text}", err=self.quiet)
            case ModelFinished(finish_reason="tool_calls"):
                self._fresh_line()
            case TurnFinished(text):
                self._finish(text)

    def _tool_output(self, output: str, ok: bool) -> None:
        lines = output.splitlines()
        for line in lines[:8]:
            click.echo(f"  {line}", err=self.quiet)
        if len(lines) > 8:
            click.echo(f"  … {len(lines) - 8} more lines", err=self.quiet)
        if not ok:
            click.echo("  (failed)", err=self.quiet)

    def _fresh_line(self) -> None:
        if self._text:
            click.echo()
        self._text = ""

    def _finish(self, text: str) -> None:
        """The stream is a preview; what counts is the whole reply."""
        if self._text.strip() != text.strip():
            self._fresh_line()
            click.echo(text, nl=False)
        click.echo()
