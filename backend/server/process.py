"""llama-server as a child process: a context manager, in its own process group, with its log.

async with server_process(argv, env, record) as process:
    code = await process.wait()
"""

import asyncio
import ctypes
import json
import os
import random
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from backend import proc
from backend.files import replace_text

PR_SET_PDEATHSIG = 1
HEAD_BYTES, TAIL_BYTES = 64 << 10, 256 << 10
TERM_SECONDS, KILL_SECONDS = 3.0, 10.0
IDLE = b"all slots are idle\n"  # what llama-server writes each time that its figures are asked for
_prctl = ctypes.CDLL(None, use_errno=True).prctl  # bound before any fork


class ServerLog:
    """The output of a child but for lines of an idle server: its first 64 KiB and its last 256 KiB, in whole chunks as received."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail: deque[bytes] = deque()
        self.total = 0
        self._kept = 0

    def feed(self, chunk: bytes) -> None:
        if chunk.endswith(IDLE) and chunk.count(b"\n") == 1:
            return
        self.total += len(chunk)
        if len(self.head) < HEAD_BYTES:
            self.head += chunk
        self.tail.append(chunk)
        self._kept += len(chunk)
        while self._kept > TAIL_BYTES and len(self.tail) > 1:
            self._kept -= len(self.tail.popleft())

    def lines(self, last: int) -> list[str]:
        """The last lines, oldest first."""
        return b"".join(self.tail).decode("utf-8", "replace").splitlines()[-last:]

    def first(self) -> list[str]:
        """The first lines of the log."""
        return self.head.decode("utf-8", "replace").splitlines()

    def everything(self) -> list[str]:
        """All lines that are stored, for a diagnosis."""
        tail = self.lines(1 << 20)
        return tail if self.total <= TAIL_BYTES else [*self.first(), *tail]


@dataclass(frozen=True, slots=True)
class ServerProcess:
    pid: int
    log: ServerLog
    _process: asyncio.subprocess.Process
    _reader: asyncio.Task[None]

    async def wait(self) -> int:
        """The exit code (negative: a signal); the end of the log may not have been read yet."""
        return await self._process.wait()

    async def final_log(self) -> list[str]:
        """The whole log of a child that has ended."""
        # A grandchild may keep the pipe open; its output no longer matters.
        await asyncio.wait([self._reader], timeout=0.5)
        return self.log.everything()

    @property
    def exited(self) -> bool:
        return self._process.returncode is not None

    def signal(self, number: int) -> None:
        """Send a signal to the whole process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def end(self, grace: float = TERM_SECONDS) -> None:
        """TERM, a bounded wait, KILL, and a bounded wait for the kernel to reap it."""
        if not self.exited:
            self.signal(signal.SIGTERM)
        for seconds in (grace, KILL_SECONDS):
            # In a task that is cancelled asyncio.timeout raises no TimeoutError before Python 3.11.3.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), seconds)
            self.signal(signal.SIGKILL)


@asynccontextmanager
async def server_process(
    argv: Sequence[str], env: Mapping[str, str], record: Path
) -> AsyncIterator[ServerProcess]:
    """Run `argv` for the block; its whole process group is ended on leaving.

    The file `record` identifies it while it runs, for `end_orphan` of a later backend.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=signal_at_parent_death(os.getpid(), signal.SIGKILL),
    )
    log = ServerLog()
    reader = asyncio.create_task(read(process, log))
    running = ServerProcess(process.pid, log, process, reader)
    try:
        write_record(record, process.pid)
        yield running
    finally:
        try:
            await running.end()
        finally:
            running.signal(signal.SIGKILL)
            reader.cancel()
            with suppress(OSError):
                record.unlink(missing_ok=True)


def signal_at_parent_death(parent: int, number: int) -> Callable[[], None]:
    """A preexec_fn that makes the kernel send the signal to the child when this process ends."""

    def prepare() -> None:
        _prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the line above
            os._exit(1)

    return prepare


async def read(process: asyncio.subprocess.Process, log: ServerLog) -> None:
    assert process.stdout
    while chunk := await process.stdout.read(1 << 16):
        log.feed(chunk)


def write_record(record: Path, pid: int) -> None:
    """Record a running server, so that a later backend can end it."""
    identity = {"pid": pid, "started": proc.started(pid), "boot": proc.boot()}
    with suppress(OSError):  # a full disk: the server normally ends with this process anyway
        replace_text(record, json.dumps(identity))


async def end_orphan(record: Path) -> int | None:
    """End the server that an earlier backend left running; return its pid, or None if there is none."""
    pid = 0
    with suppress(OSError, ValueError, TypeError, KeyError):
        found = json.loads(record.read_text("utf-8"))
        # The pid alone may by now belong to another process.
        if found["boot"] == proc.boot() and proc.started(int(found["pid"])) == found["started"]:
            pid = int(found["pid"])
    with suppress(OSError):
        record.unlink(missing_ok=True)
    if not pid:
        return None
    for number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < deadline:
            if proc.state(pid) in (None, "Z"):
                return pid
            await asyncio.sleep(0.05)  # not a child of this process, so its end has to be polled
    return pid


FIRST_S, LAST_S = 1.0, 60.0  # the pause doubles from the first to the last value
GIVE_UP_AFTER = 5
RETRY_S = 600.0  # the pause after giving up


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """How long to wait before the next start.

    `failures`: the number of starts in a row that ended before they served a token.
    """

    failures: int = 0

    @property
    def given_up(self) -> bool:
        return self.failures >= GIVE_UP_AFTER

    def ended(self, *, served: bool, lasting: bool = False) -> "RestartBackoff":
        """Count the end of a run; `lasting`: the cause is not changed by another start."""
        if served:
            return RestartBackoff()
        return RestartBackoff(max(GIVE_UP_AFTER, self.failures) if lasting else self.failures + 1)

    def pause(self, rng: random.Random, first: float = FIRST_S, retry: float = RETRY_S) -> float:
        """Seconds until the next start, with jitter."""
        if self.given_up:
            return retry
        longest = min(LAST_S, first * 2.0**self.failures)
        return max(first, rng.uniform(longest / 2, longest))
