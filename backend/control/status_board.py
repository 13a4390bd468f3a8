"""The model server's status, and who waits for it to change. The supervisor alone writes it."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from backend.protocol import ServerStatus


class StatusBoard:
    def __init__(self, status: ServerStatus) -> None:
        self.current = status
        self._changed = asyncio.Event()

    def set(self, **changes: Any) -> None:
        self.current = self.current.model_copy(update=changes)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def changes(self) -> AsyncGenerator[ServerStatus]:
        """The status as it is, then after each change; a slow reader sees the newest only."""
        while True:
            changed = self._changed
            yield self.current
            await changed.wait()
