"""Polling: one poller per token, and whether it is alive."""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from telegram.error import Conflict, InvalidToken, TelegramError
from telegram.request import HTTPXRequest

log = logging.getLogger(__name__)

STALE_SECONDS = 90.0  # a poll takes 25 s at most when nothing comes
POOL = 64


class AlreadyPolling(Exception):
    """Another process on this machine polls with the same token; `str` is a sentence."""


@contextmanager
def only_poller(lock: Path) -> Iterator[None]:
    """Hold the token's lock file. Raises AlreadyPolling."""
    lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(fd, 20).decode() or "?"
        os.close(fd)
        raise AlreadyPolling(
            f"Another voltaire bot runs with this token (process {holder})."
        ) from None
    try:
        os.truncate(fd, 0)
        os.write(fd, str(os.getpid()).encode())
        yield
    finally:
        os.close(fd)


class Poll:
    """How polling goes. `last_at` is when the last poll was answered, in seconds since the epoch."""

    def __init__(self) -> None:
        self.last_at: float | None = None
        self._trouble: str | None = None

    def calls(self, seconds: float) -> HTTPXRequest:
        """For everything but polling; an answer may take that many seconds."""
        return HTTPXRequest(connection_pool_size=POOL, pool_timeout=30.0, read_timeout=seconds)

    def polls(self) -> HTTPXRequest:
        return _Watched(self)

    def answered(self) -> None:
        self.last_at = time.time()
        if self._trouble:
            log.info("polling works again")
        self._trouble = None

    def failed(self, error: TelegramError) -> None:
        """The error callback of the updater."""
        trouble = _sentence(error)
        if trouble != self._trouble:
            log.error("%s", trouble)
        self._trouble = trouble

    def sentence(self) -> str | None:
        """What is wrong with polling, None while it works."""
        if self._trouble:
            return self._trouble
        silent = time.time() - (self.last_at or time.time())
        return f"no answer for {silent:.0f} s" if silent > STALE_SECONDS else None


class _Watched(HTTPXRequest):
    def __init__(self, poll: Poll) -> None:
        super().__init__(connection_pool_size=1, read_timeout=10.0)
        self._poll = poll

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        status, body = await super().do_request(*args, **kwargs)
        if status == 200:
            self._poll.answered()
        return status, body


def _sentence(error: TelegramError) -> str:
    if isinstance(error, Conflict):
        return "Another copy of this bot is polling with the same token; stop one of them."
    if isinstance(error, InvalidToken):
        return "Telegram no longer accepts the bot token; see @BotFather."
    return f"Telegram cannot be reached ({error})."
