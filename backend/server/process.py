"""llama-server as a child: for as long as a block lasts, in its own process group, with its log.

async with child(argv, env, record) as process:
    code = await process.wait()
"""

import asyncio
import ctypes
import json
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend import proc

PR_SET_PDEATHSIG = 1
HEAD_BYTES, TAIL_BYTES = 64 << 10, 256 << 10
TERM_SECONDS, KILL_SECONDS = 3.0, 10.0
_prctl = ctypes.CDLL(None, use_errno=True).prctl  # bound before any fork


class Log:
    """What a child printed: its first 64 KiB and its last 256, in whole chunks as they came."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail: deque[bytes] = deque()
        self.total = 0
        self._kept = 0

    def feed(self, chunk: bytes) -> None:
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
        """The lines of the start."""
        return self.head.decode("utf-8", "replace").splitlines()

    def everything(self) -> list[str]:
        """All that is kept, for a diagnosis."""
        if self.total <= TAIL_BYTES:
            return self.lines(1 << 20)
        return [*self.first(), *self.lines(1 << 20)]


@dataclass(frozen=True, slots=True)
class Child:
    pid: int
    log: Log
    _process: asyncio.subprocess.Process
    _reader: asyncio.Task[None]

    async def wait(self) -> int:
        """The exit code (negative: a signal); the last of the log may still be on its way."""
        return await self._process.wait()

    async def last_words(self) -> list[str]:
        """The whole log of a child that has ended."""
        # A grandchild may hold the pipe open; what it says no longer matters.
        await asyncio.wait([self._reader], timeout=0.5)
        return self.log.everything()

    @property
    def exited(self) -> bool:
        return self._process.returncode is not None

    def signal(self, number: int) -> None:
        """Send to the whole group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def end(self, grace: float = TERM_SECONDS) -> None:
        """TERM, a bounded wait, KILL, and a bounded wait for the kernel to let go of it."""
        if not self.exited:
            self.signal(signal.SIGTERM)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), grace)
        self.signal(signal.SIGKILL)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), KILL_SECONDS)


@asynccontextmanager
async def child(argv: Sequence[str], env: Mapping[str, str], record: Path) -> AsyncIterator[Child]:
    """Start `argv`; on leaving, its whole group is gone. `record` names it for a later life."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_dies_with(os.getpid()),
    )
    log = Log()
    reader = asyncio.create_task(_read(process, log))
    running = Child(process.pid, log, process, reader)
    try:
        write_record(record, process.pid)
        yield running
    finally:
        try:
            await running.end()
        finally:
            running.signal(signal.SIGKILL)
            reader.cancel()
            _forget(record)


def _dies_with(parent: int) -> Callable[[], None]:
    def prepare() -> None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the line above
            os._exit(1)

    return prepare


async def _read(process: asyncio.subprocess.Process, log: Log) -> None:
    assert process.stdout
    while chunk := await process.stdout.read(1 << 16):
        log.feed(chunk)


def write_record(record: Path, pid: int) -> None:
    """Note a running server, so that a later life of ours can end it."""
    started = proc.started(pid)
    if started is None:
        return
    noted = {"pid": pid, "started": started, "boot": proc.boot()}
    with suppress(OSError):  # on a full disk it serves all the same: it ends with us, as a rule
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps(noted), "utf-8")


async def end_orphan(record: Path) -> int | None:
    """End the server that an earlier life of ours left running; its pid, or None if there is none."""
    noted = _noted(record)
    _forget(record)
    pid = int(noted.get("pid", 0))
    # A pid alone may by now be somebody else's.
    if not pid or noted.get("boot") != proc.boot() or proc.started(pid) != noted.get("started"):
        return None
    await _end_foreign(pid)
    return pid


def _noted(record: Path) -> dict[str, Any]:
    try:
        noted = json.loads(record.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _forget(record: Path) -> None:
    with suppress(OSError):
        record.unlink(missing_ok=True)


async def _end_foreign(pid: int) -> None:
    for number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < deadline:
            if proc.started(pid) is None or proc.state(pid) == "Z":
                return
            await asyncio.sleep(0.05)  # not our child, so nothing tells us when it ends
