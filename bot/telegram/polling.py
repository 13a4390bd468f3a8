"""Long polling: one poller per token, its liveness, and going on after whatever happens."""

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from telegram import Bot, Update
from telegram.error import Conflict, InvalidToken, RetryAfter, TelegramError, TimedOut

from agent.aio import complete

log = logging.getLogger(__name__)

POLL_SECONDS = 25
STALE_SECONDS = 90.0
FIRST_PAUSE, LONGEST_PAUSE = (
    0.05,
    30.0,
)  # a call that fails once is made again before anybody sees it
CONFLICT_PAUSE = 0.5  # two that poll at full speed would only cut each other off
LAST_SECONDS = 3.0  # for the update in hand, and to acknowledge it, when we stop
AGAIN = 10_000  # numbers by which an update that comes once more may lie behind
Take = Callable[[Update], Awaitable[None]]


class AlreadyPolling(Exception):
    """Another process on this machine polls with the same token; `str` is a sentence."""


@contextmanager
def only_poller(lock: Path) -> Iterator[None]:
    """Hold the token's lock file. Raises AlreadyPolling."""
    lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(fd)
        os.truncate(fd, 0)
        os.write(fd, str(os.getpid()).encode())
        yield
    finally:
        os.close(fd)


def _lock(fd: int) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(fd, 20).decode() or "?"
        raise AlreadyPolling(
            f"Another voltaire bot runs with this token (process {holder})."
        ) from None


class Poll:
    """How updates come in. `last_at` is when Telegram last answered, in seconds since the epoch."""

    def __init__(self) -> None:
        self.last_at: float | None = None
        self.by_webhook = False  # then nothing comes while nobody writes
        self._trouble: str | None = None

    def answered(self) -> None:
        self.last_at = time.time()
        if self._trouble:
            log.warning("updates come in again")
        self._trouble = None

    def failed(self, error: TelegramError) -> None:
        trouble = _sentence(error)
        if trouble != self._trouble:
            log.error("%s", trouble)
        self._trouble = trouble

    def sentence(self) -> str | None:
        """What is wrong, None while updates come in."""
        if self._trouble:
            return self._trouble
        silent = 0.0 if self.by_webhook else time.time() - (self.last_at or time.time())
        return f"no answer for {silent:.0f} s" if silent > STALE_SECONDS else None


class Poller:
    """Asks for updates and has each taken before it acknowledges it with the next question."""

    def __init__(self, bot: Bot, poll: Poll, take: Take, kinds: Sequence[str]) -> None:
        self._bot = bot
        self._poll = poll
        self._take = take
        self._kinds = kinds
        self._offset: int | None = None
        self._pause = FIRST_PAUSE

    async def run(self) -> None:
        try:
            while True:
                await self._round()
        finally:
            with suppress(TelegramError, TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._acknowledge()

    async def _round(self) -> None:
        try:
            updates = await self._bot.get_updates(
                self._offset, timeout=POLL_SECONDS, allowed_updates=self._kinds
            )
        except TelegramError as error:
            self._poll.failed(error)
            await self._rest(error)
            return
        self._poll.answered()
        self._pause = FIRST_PAUSE
        for update in updates:
            await complete(self._finish(update), grace=LAST_SECONDS)

    async def _finish(self, update: Update) -> None:
        await self._take(update)
        self._next(update)

    def _next(self, update: Update) -> None:
        """An update may come once more, after newer ones; after a week without any, the
        numbers begin anew, lower or higher (https://core.telegram.org/bots/api#update)."""
        following = update.update_id + 1
        if self._offset is None or not 0 < self._offset - following < AGAIN:
            self._offset = following

    async def _rest(self, error: TelegramError) -> None:
        """Pauses grow while it goes wrong. A webhook left behind would refuse us for ever."""
        if isinstance(error, Conflict) and "webhook" in str(error).lower():
            with suppress(TelegramError):
                await self._bot.delete_webhook()
        if isinstance(error, TimedOut):
            return  # waiting has happened already
        after = error._retry_after.total_seconds() if isinstance(error, RetryAfter) else 0.0
        least = CONFLICT_PAUSE if isinstance(error, Conflict) else 0.0
        await asyncio.sleep(max(after, least, self._pause))
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)

    async def _acknowledge(self) -> None:
        if self._offset is not None:
            await self._bot.get_updates(self._offset, timeout=0, limit=1)


def _sentence(error: TelegramError) -> str:
    if isinstance(error, Conflict):
        return "Another copy of this bot asks for updates with the same token; stop one of them."
    if isinstance(error, InvalidToken):
        return "Telegram no longer accepts the bot token; see @BotFather."
    return f"Telegram cannot be reached ({error})."
