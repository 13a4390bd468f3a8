"""Alerts for the owner: numbered, stored in a JSON Lines file, and streamed."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from backend.files import read_json_lines, write_json_lines
from backend.protocol import Alert, Phrase, unended

log = logging.getLogger(__name__)

KEPT = 200
REPEAT_SECONDS = 300.0  # an alert with the same name and text within this time is dropped
AddAlert = Callable[[str, str, Phrase], None]  # name, level, text


class Alerts:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept: deque[Alert] = deque(maxlen=KEPT)
        self._added = asyncio.Event()

    def read(self) -> None:
        """Load the last KEPT alerts of earlier backends, and truncate the file to them."""
        self.kept.extend(read_json_lines(self.path, Alert, KEPT))
        write_json_lines(self.path, self.kept)

    def stands(self, name: str) -> bool:
        """Whether the last alert of that name has not ended."""
        levels = [alert.level for alert in self.kept if alert.name == name]
        return levels[-1:] not in ([], ["over"])

    def add(self, name: str, level: str, text: Phrase) -> None:
        now = datetime.now(UTC)
        same = next((alert for alert in reversed(self.kept) if alert.name == name), None)
        repeated = level != "over" and same is not None and same.text == text
        if same and repeated and 0 <= (now - same.at).total_seconds() < REPEAT_SECONDS:
            return
        last = self.kept[-1].id if self.kept else 0
        number = max(last + 1, int(now.timestamp() * 1000))
        alert = Alert.model_validate(
            {"id": number, "at": now, "name": name, "level": level, "text": text}
        )
        self.kept.append(alert)
        log.log(
            logging.INFO if level in ("info", "over") else logging.WARNING,
            "alert name=%s level=%s text=%s",
            name,
            level,
            text,
        )
        with suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(alert.to_data() + "\n")
        added, self._added = self._added, asyncio.Event()
        added.set()

    async def stream(self, after: int) -> AsyncGenerator[Alert]:
        """The stored alerts with an id above `after`, less those that have ended; then each new one."""
        while True:
            added = self._added
            for alert in unended(alert for alert in self.kept if alert.id > after):
                after = alert.id
                yield alert
            await added.wait()
