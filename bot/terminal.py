"""The terminal as a channel, on rich: texts as Markdown, a turn's view in place, questions answered by a key."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live as RichLive
from rich.markdown import Markdown
from rich.text import Text

from bot.channel import Asked, Enclosed, Limits, OutgoingMessage, Rows, Step, View

MARKS = {"running": "…", "ok": "✓", "failed": "✗"}
DETAIL_LINES = 6
THOUGHT_LINES = 4
ENDLESS = 1 << 31
SENT = "files from the agent"


class Terminal:
    """A Channel for one person at one terminal. `folder` takes the files that are sent."""

    def __init__(self, console: Console, lines: "Lines", folder: Path) -> None:
        self.console = console
        self._lines = lines
        self._folder = folder
        self._ids = count(1)
        self._busy = asyncio.Lock()

    def limits(self, chat: str) -> Limits:
        return Limits(ENDLESS, ENDLESS, ENDLESS, ENDLESS, ENDLESS, pause=0.1)

    @asynccontextmanager
    async def turn(self, chat: str) -> AsyncIterator[None]:
        async with self._busy:
            yield

    async def post(self, chat: str, letter: OutgoingMessage) -> tuple[str, OutgoingMessage | None]:
        self.console.print(Markdown(letter.text))
        return str(next(self._ids)), None

    async def send(self, chat: str, letter: OutgoingMessage) -> list[str]:
        async with self.turn(chat):
            message, _ = await self.post(chat, letter)
        return [message]

    async def edit(self, chat: str, message: str, text: str, rows: Rows = ()) -> None:
        self.console.print(Markdown(text))

    def live(self, chat: str) -> "Screen":
        return Screen(self.console)

    async def react(self, chat: str, message: str, emoji: str) -> None:
        """A terminal shows that it has been read by what comes next."""

    async def typing(self, chat: str) -> None:
        """The live view says what goes on."""

    async def ask(self, chat: str, question: str, rows: Rows) -> Asked:
        """Waits for the number of a choice."""
        choices = [choice for row in rows for choice in row]
        async with self.turn(chat):
            self.console.print(Markdown(question))
            for number, choice in enumerate(choices, 1):
                self.console.print(f"  [bold]{number}[/bold] {choice.label}")
            while True:
                answer = (await self._lines.next()).strip()
                if answer.isdigit() and 1 <= int(answer) <= len(choices):
                    return Asked(str(next(self._ids)), choices[int(answer) - 1].key)
                self.console.print(f"1 to {len(choices)}?")

    async def album(self, chat: str, files: Sequence[Enclosed], caption: str) -> list[str]:
        captions = [caption, *[""] * (len(files) - 1)]
        together = zip(files, captions, strict=True)
        return [await self.file(chat, file, name, words) for (file, name), words in together]

    async def file(self, chat: str, file: BinaryIO, name: str, caption: str) -> str:
        path = self._folder / Path(name).name
        content = await asyncio.to_thread(file.read)
        await asyncio.to_thread(_write, path, content)
        self.console.print(Text(" · ".join(filter(None, [caption, str(path)]))))
        return str(next(self._ids))


class Screen:
    """A turn's live view; its tool lines stay, the growing text gives way to the final one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: RichLive | None = None
        self._open = True

    async def show(self, view: View) -> None:
        if not self._open:
            return
        if self._live is None:
            self._live = RichLive(console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(Group(*_steps(view), *_growing(view)), refresh=True)

    def close(self, view: View) -> None:
        """Nothing in a terminal can be put above what is there: the tool lines come before the text."""
        if not self._open:
            return
        self._open = False
        if self._live is not None:
            self._live.stop()
            self._live = None
        for line in _steps(view):
            self._console.print(line)

    async def settle(self, view: View) -> None:
        """All that stays is there."""


def _steps(view: View) -> list[RenderableType]:
    return [line for step in view.steps for line in (_line(step), _detail(step)) if line.plain]


def _line(step: Step) -> Text:
    took = f" · {step.seconds:.1f} s" if step.seconds >= 0.1 else ""
    return Text.assemble(f"{MARKS[step.state]} ", (step.name, "bold"), f" {step.what}{took}")


def _detail(step: Step) -> Text:
    lines = step.detail.strip().splitlines()
    more = [f"… {len(lines) - DETAIL_LINES} more lines"] if len(lines) > DETAIL_LINES else []
    return Text("\n".join(f"  {line}" for line in [*lines[:DETAIL_LINES], *more]), style="dim")


def _growing(view: View) -> list[RenderableType]:
    thoughts = "\n".join(view.thoughts.strip().splitlines()[-THOUGHT_LINES:])
    parts: list[RenderableType] = [Text(thoughts, style="dim italic")] if thoughts else []
    parts += [Markdown(view.text)] if view.text else []
    return [*parts, Text(view.status, style="italic")] if view.status else parts


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


class Lines:
    """Lines of a stream (standard input), read in a thread that ends with the program.

    Who asked last is answered first: a question goes before the next message.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._early: deque[str] = deque()
        self._waiting: list[asyncio.Future[str]] = []
        self._ended = False
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, daemon=True).start()

    async def next(self) -> str:
        """The next line without its end. Raises EOFError when there are no more."""
        if self._early:
            return self._early.popleft()
        if self._ended:
            raise EOFError
        waiting: asyncio.Future[str] = self._loop.create_future()
        self._waiting.append(waiting)
        try:
            return await waiting
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def _came(self, line: str) -> None:
        if self._waiting:
            self._waiting.pop().set_result(line)
        else:
            self._early.append(line)

    def _end(self) -> None:
        self._ended = True
        for waiting in self._waiting:
            waiting.set_exception(EOFError)
        self._waiting.clear()

    def _read(self) -> None:
        for line in self._stream:
            self._loop.call_soon_threadsafe(self._came, line.rstrip("\n"))
        with suppress(RuntimeError):  # the loop has ended first
            self._loop.call_soon_threadsafe(self._end)
