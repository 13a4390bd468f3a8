"""News for the owner: kept, numbered, streamed. One line of JSON each in the backend's own file."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from backend.protocol import Alert

KEPT = 200
REPEAT_SECONDS = 300.0  # the same words again within this time are one piece of news


class Alerts:
    def __init__(
        self, path: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.path = path
        self.kept: deque[Alert] = deque(maxlen=KEPT)
        self._clock = clock
        self._came = asyncio.Event()

    def read(self) -> None:
        """Take up what an earlier life kept, and keep the file short."""
        with suppress(OSError):
            for line in self.path.read_text("utf-8").splitlines()[-KEPT:]:
                with suppress(ValueError):
                    self.kept.append(Alert.model_validate_json(line))
        with suppress(OSError):  # on a full disk the long file stays
            self._shorten()

    def _shorten(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(f"{alert.model_dump_json()}\n" for alert in self.kept), "utf-8")
        fresh.replace(self.path)

    def tell(self, name: str, level: str, text: str) -> None:
        now = self._clock()
        if self._repeats(name, text, now):
            return
        last = self.kept[-1].id if self.kept else 0
        number = max(last + 1, int(now.timestamp() * 1000))
        alert = Alert.model_validate(
            {"id": number, "at": now, "name": name, "level": level, "text": text}
        )
        self.kept.append(alert)
        with suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(alert.model_dump_json() + "\n")
        came, self._came = self._came, asyncio.Event()
        came.set()

    async def stream(self, after: int) -> AsyncGenerator[Alert]:
        """What is kept above `after`, then each new one."""
        while True:
            came = self._came
            for alert in [alert for alert in self.kept if alert.id > after]:
                after = alert.id
                yield alert
            await came.wait()

    def _repeats(self, name: str, text: str, now: datetime) -> bool:
        same = next((alert for alert in reversed(self.kept) if alert.name == name), None)
        recent = same is not None and (now - same.at).total_seconds() < REPEAT_SECONDS
        return bool(same and recent and same.text == text)
