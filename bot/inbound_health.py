"""Whether messages of an app come in, for /status, doctor and the service manager."""

import asyncio
import logging
import time
from dataclasses import dataclass, field

from backend.protocol import Phrase

log = logging.getLogger(__name__)

STALE_SECONDS = 90.0


@dataclass
class InboundHealth:
    """`last_at`: when the app's server last answered, in seconds since the epoch. `changed` is set when messages
    begin or cease to come in. `quiet`: silence is no failure, as of a webhook while nobody writes."""

    app: str
    changed: asyncio.Event
    quiet: bool = False
    last_at: float | None = None
    _failure: Phrase | None = field(default=None, init=False)
    _heard: float | None = field(default=None, init=False)  # monotonic: it sleeps with the machine

    def answered(self) -> None:
        if self.last_at is None or self._failure:
            self.changed.set()
        if self._failure:
            log.warning("messages from %s come in again", self.app)
        self.last_at, self._heard, self._failure = time.time(), time.monotonic(), None

    def failed(self, why: Phrase) -> None:
        """`why` is a sentence."""
        if why != self._failure:
            log.error("%s", why)
            self.changed.set()
        self._failure = why

    @property
    def failing(self) -> bool:
        return self._failure is not None

    def problem(self) -> Phrase | None:
        """One sentence on what is wrong; None while messages come in."""
        if self._failure:
            return self._failure
        silent = 0.0 if self.quiet or self._heard is None else time.monotonic() - self._heard
        told = Phrase("{app}: no answer for {seconds} s.", app=self.app, seconds=round(silent))
        return told if silent > STALE_SECONDS else None
