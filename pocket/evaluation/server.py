"""The product's embedded llama.cpp server with one model, as a child on a UNIX socket."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from pocket.evaluation.wire import Address, WireError, get

READY_SECONDS = 60.0
STOP_SECONDS = 5.0
CACHE_MIB = 1024


class ServerFailed(Exception):
    """The server did not start; the text says why."""


@contextmanager
def serving(model: Path, threads: int = 2) -> Iterator[Address]:
    """A server that has `model` loaded with its whole window, on one slot."""
    with TemporaryDirectory(prefix="pocket-") as folder, TemporaryFile() as log:
        socket = Path(folder) / "llama.sock"
        child = subprocess.Popen(_command(model, socket, threads), stdout=log, stderr=log)
        try:
            yield _ready(child, Address(socket=str(socket)), log)
        finally:
            _stop(child)


def _command(model: Path, socket: Path, threads: int) -> list[str]:
    flags = {
        "--model": model, "--host": socket, "--ctx-size": 0, "--parallel": 1, "--gpu-layers": 0,
        "--threads": threads, "--threads-batch": threads, "--cache-ram": CACHE_MIB,
        "--slot-prompt-similarity": 0.95, "--verbosity": 1,
    }  # fmt: skip
    values = [str(part) for pair in flags.items() for part in pair]
    return [sys.executable, "-m", "backend.embedded", *values]


def _ready(child: subprocess.Popen[bytes], address: Address, log: IO[bytes]) -> Address:
    deadline = time.monotonic() + READY_SECONDS
    while not _healthy(address):
        if child.poll() is not None or time.monotonic() > deadline:
            raise ServerFailed(f"the server did not start: {_last_line(log)}")
        time.sleep(0.02)  # a child that loads gives no event to wait for
    return address


def _healthy(address: Address) -> bool:
    try:
        get(address, "/health")
    except WireError:
        return False
    return True


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
