"""The server's time: the system clock, or one that a test moves."""

from collections.abc import Callable

Clock = Callable[[], float]  # Unix time in seconds


class VirtualClock:
    """A clock that stands still until `advance` is called."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._now = start

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds
