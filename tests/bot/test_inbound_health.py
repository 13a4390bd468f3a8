"""Whether messages come in, by a clock that stands still while the machine sleeps."""

import asyncio
import time

import pytest

from bot.messaging_apps import STALE_SECONDS, InboundHealth
from fakes.words import saying


@pytest.mark.parametrize("quiet", [False, True])
def test_a_night_of_sleep_is_no_silence(monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    health = InboundHealth("Telegram", asyncio.Event(), quiet=quiet)
    assert health.problem() is None
    health.answered()
    wall, awake = time.time(), time.monotonic()
    monkeypatch.setattr(time, "time", lambda: wall + 8 * 3600)
    assert health.problem() is None
    monkeypatch.setattr(time, "monotonic", lambda: awake + STALE_SECONDS + 1)
    assert health.problem() == (None if quiet else saying("Telegram", "91 s"))
