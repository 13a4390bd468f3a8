"""`voltaire` on a terminal of its own, as a person at a keyboard has it.

async with typing_at(["setup"]) as terminal:
    await terminal.until("Time zone")
    terminal.type("UTC\n")
    assert await terminal.ended() == 0
"""

import asyncio
import fcntl
import os
import re
import struct
import termios
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fakes.command_line import VOLTAIRE, becoming
from fakes.patience import SECONDS, soon

CTRL_C, CTRL_D = "\x03", "\x04"
STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ROWS, COLUMNS = 40, 200


class PseudoTerminal:
    """`output` is all that was shown so far, without colours and movements of the cursor."""

    def __init__(self, side: int, process: asyncio.subprocess.Process) -> None:
        self._side, self.process = side, process
        self._bytes = b""
        self._seen = 0  # characters of the output that `until` has passed
        self._more, self._closed = asyncio.Event(), False
        asyncio.get_running_loop().add_reader(side, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._side, 65536)
        except OSError:  # the last program on the terminal has ended
            data = b""
        if not data:
            self._closed = True
            asyncio.get_running_loop().remove_reader(self._side)
        self._bytes += data
        self._more.set()

    @property
    def output(self) -> str:
        return STYLE.sub("", self._bytes.decode("utf-8", "replace")).replace("\r\n", "\n")

    async def until(self, pattern: str) -> re.Match[str]:
        """Wait until what is shown after the last match matches."""
        async with asyncio.timeout(SECONDS):
            while not (found := re.compile(pattern).search(self.output, self._seen)):
                assert not self._closed, self.output
                self._more.clear()
                await self._more.wait()
        self._seen = found.end()
        return found

    def type(self, text: str) -> None:
        os.write(self._side, text.encode())

    def hang_up(self) -> None:
        """Take the terminal away, as a connection that breaks does."""
        asyncio.get_running_loop().remove_reader(self._side)
        with open(os.devnull, "rb") as null:
            os.dup2(null.fileno(), self._side)

    async def asked(self, question: str) -> None:
        await self.until(question)
        await soon(self._reads)

    async def answer(self, *answers: tuple[str, str]) -> None:
        """Wait for each question, and type its answer."""
        for question, text in answers:
            await self.asked(question)
            self.type(text if text in (CTRL_C, CTRL_D) else f"{text}\n")

    def _reads(self) -> bool:
        """Whether the program waits for what is typed: Python may miss a Ctrl-C just before that."""
        process = Path(f"/proc/{self.process.pid}")
        call = process.joinpath("syscall").read_text("ascii").split()
        if call[:1] == ["0"] and call[1] != "0x0":  # read(n, ...), of a secret
            with suppress(OSError):
                return process.joinpath("fd", str(int(call[1], 16))).readlink() == Path("/dev/tty")
        return call[1:2] in (["0x0"], ["0x1"])  # read(0, ...), or select(1, ...)

    async def ended(self) -> int:
        """The exit code, once all that was printed has been read."""
        code = await asyncio.wait_for(self.process.wait(), SECONDS)
        self._read_rest()
        return code

    def _read_rest(self) -> None:
        os.set_blocking(self._side, False)
        with suppress(OSError):
            while data := os.read(self._side, 65536):
                self._bytes += data


@asynccontextmanager
async def typing_at(
    words: Sequence[str | Path], env: Mapping[str, str] | None = None
) -> AsyncIterator[PseudoTerminal]:
    """Run a command with a terminal as its standard streams, which is also its controlling one."""

    def become() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        becoming([str(word) for word in words], env or os.environ)()

    side, other = os.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    try:
        process = await asyncio.create_subprocess_exec(
            VOLTAIRE, *words, stdin=other, stdout=other, stderr=other, start_new_session=True, preexec_fn=become
        )  # fmt: skip
    finally:
        os.close(other)
    terminal = PseudoTerminal(side, process)
    try:
        yield terminal
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        asyncio.get_running_loop().remove_reader(side)
        os.close(side)
