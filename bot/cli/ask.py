"""voltaire ask: one turn in the terminal, as plain text or as JSON Lines."""

import json
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import click

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
from bot.cli.command import Misused, Options, chat_option, json_option, model_option, runs
from bot.cli.connect import SILENT_SECONDS, running_backend, telling_what_keeps
from bot.cli.holder_client import HolderClient, with_holder
from bot.settings import Settings

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
    show = print_json if as_json else TextPrinter().print
    finished = await run_one_turn(options.settings, chat, text, show, model=model)
    return EXIT_CODES.get(finished.reason, 1)


async def run_one_turn(
    settings: Settings,
    chat: str,
    text: str,
    show: Callable[[Event], None],
    stranger: str = "",
    model: str = "",
) -> TurnFinished:
    """Run one turn of a chat. `stranger` names the source of a text that the user did not write."""
    update = new_update()

    async def turn(client: HolderClient) -> TurnFinished:
        async with client.terminal(chat, interactive=False) as terminal:
            await terminal.send(say=text, update=update, stranger=stranger)
            while True:
                event = from_wire(await terminal.receive())
                show(event)
                if isinstance(event, TurnFinished):
                    return event

    async with running_backend(settings, model) as backend, telling_what_keeps(backend):
        return await with_holder(settings, backend, turn)


def new_update() -> str:
    """A message's own name, by which it is answered once, whatever process holds the state."""
    return f"{time.time_ns()}-{secrets.token_hex(4)}"


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
    _sign: str = ""  # of life, that was printed last
    _at: float = field(default_factory=time.monotonic)  # when something was printed last

    def print(self, event: Event) -> None:
        match event:
            case ModelProgress(total=total):
                self._alive(f"· reading {total:,} tokens …")
            case ThoughtDelta():
                self._alive("· thinking …")
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
                shown, text = self._line.strip(), text.strip()
                rest = (
                    text.removeprefix(shown) if text.startswith(shown) else text.removesuffix(shown)
                )
                if rest.strip():  # all of it where the streamed text was a preview
                    self._end_line()
                    click.echo(rest.strip(), nl=False)
                click.echo()

    def _alive(self, sign: str) -> None:
        """Say what goes on, once, where nothing was printed for SILENT_SECONDS."""
        if sign != self._sign and time.monotonic() - self._at > SILENT_SECONDS:
            self._step(sign)
            self._sign = sign

    def _step(self, line: str) -> None:
        click.echo(line, err=not self.steps_out)
        self._at, self._sign = time.monotonic(), ""

    def _end_line(self) -> None:
        if self._line:
            click.echo()
        self._line = ""
