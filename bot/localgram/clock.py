"""Where the server's time comes from: the wall, or a test's hand."""

from collections.abc import Callable

Clock = Callable[[], float]  # Unix time in seconds


class VirtualClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._now = start

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds
