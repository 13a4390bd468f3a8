"""The terminal as a channel, by rich: texts as Markdown, a live view in place, questions answered by number. What is
shown may hold a stranger's words, and does not drive the terminal.
"""

import asyncio
import errno
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.text import Text

from agent.files import replacing
from agent.sandbox.output_buffer import clean
from bot.attachments import safe_name
from bot.channel import (
    Channel,
    ChannelLimits,
    Keyboard,
    LiveView,
    MessageRefused,
    NamedFile,
    OutgoingMessage,
    ToolCallView,
    TurnView,
)

MARKS = {"running": "…", "ok": "✓", "failed": "✗"}
DETAIL_LINES = 6
THOUGHT_LINES = 4
UNLIMITED = 1 << 62  # bytes
FILES_FOLDER = "files from the agent"


class Terminal(Channel):
    """One person at one terminal. Files that are sent go into `folder`."""

    source = prefix = "cli"

    def __init__(self, console: Console, lines: "InputLines", folder: Path) -> None:
        self.console = console
        self._lines = lines
        self._folder = folder
        self._ids = count(1)
        self._busy = asyncio.Lock()
        self._view: TerminalView | None = None

    def private_chat(self, user: str) -> str:
        return user

    def user_of(self, chat: str) -> str:
        return chat

    def limits(self, chat: str) -> ChannelLimits:
        return ChannelLimits(upload=UNLIMITED, download=UNLIMITED, update_seconds=0.1)

    @asynccontextmanager
    async def permit(self, chat: str) -> AsyncIterator[None]:
        async with self._busy:
            yield

    async def send_part(
        self, chat: str, message: OutgoingMessage
    ) -> tuple[str, OutgoingMessage | None]:
        self.console.print(Markdown(clean(message.text)))
        return str(next(self._ids)), None

    async def send_files(
        self, chat: str, files: Sequence[NamedFile], caption: str, *, silent: bool = False
    ) -> list[str]:
        """Write the files into the folder. Raises MessageRefused if that fails."""
        for number, (file, name) in enumerate(files):
            path = self._folder / (safe_name(name) or "file")
            content = await asyncio.to_thread(file.read)
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                if self._folder.is_symlink():  # of a repository that a stranger wrote
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                with replacing(path) as new:  # and no link in its place is followed
                    await asyncio.to_thread(new.write_bytes, content)
            except OSError as error:
                raise MessageRefused(f"{path} could not be written: {error.strerror}") from None
            told = [caption, str(path)] if caption and number == 0 else [str(path)]
            line = Text(clean(" · ".join(told)))
            if self._view is None or not self._view.add_file(line):
                self.console.print(line)
        return [str(next(self._ids)) for _ in files]

    async def edit(self, chat: str, message: str, text: str, keyboard: Keyboard = ()) -> None:
        self.console.print(Markdown(clean(text)))

    def live_view(self, chat: str) -> "TerminalView":
        self._view = TerminalView(self.console)
        return self._view

    async def ask(self, chat: str, question: str, keyboard: Keyboard) -> str:
        """Show a question, wait for the number of a button, and return its key. EOFError when the input ends."""
        buttons = [button for row in keyboard for button in row]
        async with self.permit(chat):
            self.console.print(Markdown(clean(question)))
            for number, button in enumerate(buttons, 1):
                self.console.print(
                    Text.assemble("  ", (str(number), "bold"), f" {clean(button.label)}")
                )
            while True:
                answer = (await self._lines.next()).strip()
                if answer.isdecimal() and 1 <= int(answer) <= len(buttons):
                    return buttons[int(answer) - 1].key
                self.console.print(f"1 to {len(buttons)}?")


class TerminalView(LiveView):
    """A turn's live view; its tool lines stay, the growing text is replaced by the final one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._open = True
        self._files = list[Text]()

    def add_file(self, line: Text) -> bool:
        """Show the line of a sent file below the tool lines; False if the turn has ended."""
        if self._open:
            self._files.append(line)
        return self._open

    async def show(self, view: TurnView) -> None:
        if not self._open:
            return
        if self._live is None:
            self._live = Live(console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        thoughts = "\n".join(clean(view.thoughts).strip().splitlines()[-THOUGHT_LINES:])
        parts: list[RenderableType] = [*tool_lines(view), *self._files]
        parts += [Text(thoughts, style="dim italic")] if thoughts else []
        parts += [Markdown(clean(view.text))] if view.text else []
        parts += [Text(view.status, style="italic")] if view.status else []
        self._live.update(Group(*parts), refresh=True)

    def close(self, view: TurnView) -> None:
        """Print the tool lines and files now: nothing can be inserted above the final text later."""
        if not self._open:
            return
        self._open = False
        if self._live is not None:
            self._live.stop()
            self._live = None
        for line in [*tool_lines(view), *self._files]:
            self._console.print(line)


def tool_lines(view: TurnView) -> list[Text]:
    steps = [Text(f"{'☑' if each.done else '☐'} {clean(each.text)}") for each in view.plan]
    calls = [line for call in view.calls for line in (headline(call), detail(call)) if line.plain]
    return [*steps, *calls]


def headline(call: ToolCallView) -> Text:
    took = f" · {call.seconds:.1f} s" if call.seconds >= 0.1 else ""
    return Text.assemble(
        f"{MARKS[call.state]} ", (clean(call.name), "bold"), f" {clean(call.summary)}{took}"
    )


def detail(call: ToolCallView) -> Text:
    lines = clean(call.detail).strip().splitlines()
    more = [f"… {len(lines) - DETAIL_LINES} more lines"] if len(lines) > DETAIL_LINES else []
    return Text("\n".join(f"  {line}" for line in [*lines[:DETAIL_LINES], *more]), style="dim")


class InputLines:
    """Lines of a stream (standard input), read in a thread that ends with the program.

    Of several waiting calls of `next` the latest gets the next line: a question precedes the next message.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._unread: deque[str] = deque()
        self._waiting: list[asyncio.Future[str]] = []
        self._ended = False
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, daemon=True).start()

    async def next(self) -> str:
        """The next line without its end. Raises EOFError when there are no more."""
        if self._unread:
            return self._unread.popleft()
        if self._ended:
            raise EOFError
        waiting: asyncio.Future[str] = self._loop.create_future()
        self._waiting.append(waiting)
        try:
            return await waiting
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def _read(self) -> None:
        for line in self._stream:
            self._loop.call_soon_threadsafe(self._add, line.rstrip("\n"))
        with suppress(RuntimeError):  # the loop has ended first
            self._loop.call_soon_threadsafe(self._end)

    def _add(self, line: str) -> None:
        if self._waiting:
            self._waiting.pop().set_result(line)
        else:
            self._unread.append(line)

    def _end(self) -> None:
        self._ended = True
        for waiting in self._waiting:
            waiting.set_exception(EOFError)
        self._waiting.clear()
