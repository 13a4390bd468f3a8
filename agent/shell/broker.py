"""Answers the commands of one bash call, each on a connection of its own.

A connection carries frames: a kind (1 byte), a length (4 bytes, big-endian), content. The client begins with
C: program, folder and arguments, separated by NUL. The broker sends O and E (standard output and error), R (a
request for the next piece of standard input) and at last X (the exit code). A client answers R with I and sends
nothing else; one that does otherwise is cut off. For a client that does not read, nothing is buffered but by the
socket.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

from agent.errors import AgentError, StrangersWords, ToolError
from agent.sandbox.proxy import closing
from agent.shell import registry
from agent.shell.command import HELP, HelpAsked, ShellCall, UsageError
from agent.tools.tool import Call
from agent.trust import Taint

log = logging.getLogger(__name__)

HEAD_SECONDS = 15
MOST_ARGUMENTS = 256 << 10  # bytes
PIECE = 1 << 16
MOST_CALLS = 2000  # commands of one bash call
MOST_BYTES = 256 << 20  # of one bash call, both directions
MOST_DENIED = 3  # questions of one bash call
WHEN_DENIED = "Owners denied {count} steps of this call, so nobody is asked again."
BROKEN = "it failed; the program's log says why."
OUT_OF_RANGE = "a number or a day is too large, or too small."


async def unmarked(source: str) -> None:
    """The `mark` of a broker outside of a sandbox."""


class ClientGone(Exception):
    """The client has closed its connection, or broken the protocol."""


@dataclass(eq=False)
class Broker:
    """agent.sandbox.bwrap_process.CommandAnswers for a bash call. `touched` is the strangers' text that counts
    when an owner is asked; what the commands give is added to it."""

    call: Call
    touched: list[Taint] = field(default_factory=list)
    calls: int = 0
    passed: int = 0  # bytes
    _gave: set[str] = field(default_factory=set)  # the sources of strangers' text in this call
    _denied: int = 0
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        # Not fields, because a Callable field cannot be set where a protocol is asked for.
        self.mark: Callable[[str], Awaitable[None]] = unmarked
        self.waiting: Callable[[], AbstractContextManager[None]] = nullcontext

    def listing(self) -> str:
        return registry.listing(self.call.context)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with closing(writer):
            try:
                async with asyncio.timeout(HEAD_SECONDS):
                    kind, content = await read_frame(reader, MOST_ARGUMENTS)
                if kind != b"C":
                    raise ClientGone
                async with asyncio.TaskGroup() as both:
                    streams = ClientStreams(self, reader, writer)
                    following = both.create_task(streams.follow())
                    await self.answer(streams, content.decode("utf-8", "replace").split("\0"))
                    following.cancel()
            except* (ClientGone, TimeoutError):
                log.info("the client of a command has gone, or speaks another protocol")

    async def answer(self, streams: "ClientStreams", words: Sequence[str]) -> None:
        """Run one command and send its exit code."""
        program, folder, *arguments = [*words, "", ""][: max(len(words), 2)]
        call = ShellCall(self.call, folder, streams, self)
        began = time.monotonic()
        self.calls += 1
        code, said = await self.run(call, program, arguments)
        if said:
            await call.warn(f"{program}: {said}\n")
        milliseconds = (time.monotonic() - began) * 1000
        log.info("command %s: exit code %d after %.0f ms", program[:40], code, milliseconds)
        await streams.end(code)

    async def run(self, call: ShellCall, program: str, words: Sequence[str]) -> tuple[int, str]:
        """Run a command; return its exit code, and what went wrong."""
        try:
            if self.calls > MOST_CALLS:
                raise ToolError(f"One call of bash may use {MOST_CALLS} commands.")
            commands = registry.commands(program)
            first = " ".join([program, *words[:1]])
            command = commands.get(first) or commands.get(program)
            if command is None:
                return await self.overview(call, program, words)
            rest = words[1:] if command.name == first and first != program else words
            own = command.name == program  # its usage includes the subcommands
            usages = [each.usage for each in commands.values()] if own else [command.usage]
            try:
                positional, options = command.check(rest)
                await call.leaves(command.name, "\n".join(words))
                await command.function(call, *positional, **options)
            except UsageError as error:
                return 2, "\n".join([str(error), *(f"usage: {usage}" for usage in usages)])
            except HelpAsked as help:
                await call.write(str(help))
                others = [usage for usage in usages if usage != command.usage]
                await call.write("".join(f"usage: {usage}\n" for usage in others))
        except ClientGone:
            raise
        except AgentError as error:
            if isinstance(error, StrangersWords):
                await call.stranger(error.source)
            return 1, str(error)
        except OverflowError:
            return 2, OUT_OF_RANGE
        except Exception:
            log.exception("the command %s failed", program)
            return 1, BROKEN
        return 0, ""

    async def overview(
        self, call: ShellCall, program: str, words: Sequence[str]
    ) -> tuple[int, str]:
        """Answer a program that was typed without one of its subcommands."""
        usages = [each.usage for each in registry.commands(program).values()]
        if not usages:
            raise ToolError("there is no such command here.")
        if words and words[0] in HELP:
            await call.write("".join(f"{usage}\n" for usage in usages))
            return 0, ""
        wrong = f"there is no {program} {words[0]}" if words else "a subcommand is missing"
        return 2, "\n".join([wrong, *(f"usage: {usage}" for usage in usages)])

    async def approve(self, what: str, scope: str) -> None:
        """Ask for approval like Call.approve, one question at a time, and deny all after MOST_DENIED denials."""
        with self.waiting():
            async with self._asking:
                if self._denied >= MOST_DENIED:
                    raise ToolError(WHEN_DENIED.format(count=MOST_DENIED))
                try:
                    await self.call.approve(what, scope=scope, touched=self.touched)
                except ToolError:
                    self._denied += 1
                    raise

    async def stranger(self, source: str) -> None:
        """Mark the chat, and the files that the call changes, before text of that source is written."""
        if source not in self._gave:
            await self.mark(source)
            self._gave.add(source)
            self.touched.append(Taint(source, time.time()))
            self.call.strangers.append(source)

    def count(self, size: int) -> None:
        self.passed += size
        if self.passed > MOST_BYTES:
            raise ToolError(f"The commands of one call of bash may move {MOST_BYTES >> 20} MiB.")


@dataclass(eq=False)
class ClientStreams:
    """The standard streams of one command on a connection; each method waits for the other side."""

    broker: Broker
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    _wanted: bool = False
    _came: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    _ended: bool = False

    async def follow(self) -> None:
        """Receive what the client sends; ClientGone at its end."""
        while True:
            kind, content = await read_frame(self.reader, PIECE)
            if kind != b"I" or not self._wanted:
                raise ClientGone
            self._wanted = False
            self._came.put_nowait(content)

    async def read(self) -> bytes:
        if self._ended:
            return b""
        self._wanted = True
        await self._send(b"R", b"")
        piece = await self._came.get()
        self.broker.count(len(piece))
        self._ended = not piece
        return piece

    async def write(self, kind: Literal["O", "E"], content: bytes) -> None:
        for at in range(0, len(content), PIECE):
            piece = content[at : at + PIECE]
            if kind == "O":
                self.broker.count(len(piece))
            await self._send(kind.encode(), piece)

    async def end(self, code: int) -> None:
        await self._send(b"X", bytes([code]))

    async def _send(self, kind: bytes, content: bytes) -> None:
        try:
            self.writer.write(kind + len(content).to_bytes(4) + content)
            await self.writer.drain()
        except ConnectionError:
            raise ClientGone from None


async def read_frame(reader: asyncio.StreamReader, most: int) -> tuple[bytes, bytes]:
    """The kind and content of a frame; ClientGone at the end, and for more than `most` bytes."""
    try:
        head = await reader.readexactly(5)
        length = int.from_bytes(head[1:])
        if length > most:
            raise ClientGone
        return head[:1], await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        raise ClientGone from None
