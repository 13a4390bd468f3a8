"""A time limit that stands still while a person is asked."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Countdown:
    """Calls `late` after `seconds`, not counting pauses."""

    def __init__(self, seconds: float, late: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._left = seconds
        self._late = late
        self._pauses = 0
        self._go()

    @contextmanager
    def paused(self) -> Iterator[None]:
        if not self._pauses:
            self._timer.cancel()
            self._left -= self._loop.time() - self._since
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._go()

    def cancel(self) -> None:
        self._pauses += 1  # nothing starts it again
        self._timer.cancel()

    def _go(self) -> None:
        self._since = self._loop.time()
        self._timer = self._loop.call_later(max(self._left, 0), self._late)
