"""Updates of a messaging app, each handled before it is acknowledged to the app.

While the state cannot be written, an update waits. One that cannot be parsed, or crashes its handler or the
whole program each time, is set aside.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from agent.store.errors import StoreError
from agent.store.set_aside import UPDATES, SetAsideTable, update_key

log = logging.getLogger(__name__)

FIRST_RETRY = 1.0
LONGEST_RETRY = 30.0


class Unparsable(Exception):
    """An update that cannot be parsed; `why` is what was raised."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.why = why


class EventGate:
    """`source` is the app's name. Handlers are quick, and store what must last."""

    def __init__(self, source: str, set_aside: SetAsideTable) -> None:
        self._source = source
        self._set_aside = set_aside
        self._crashed: set[tuple[str, str]] = set()
        self._unparsable: list[tuple[str, Exception, str]] = []  # key, what was raised, text
        self._keeping = asyncio.Lock()

    async def take(self, text: str, handle: Callable[[], Awaitable[None]]) -> None:
        """Return when the update (`text` as received) is handled, set aside, or left to `keep_unparsable`.
        `handle` may raise Unparsable, StoreError, and whatever a bug raises."""
        row = UPDATES, update_key(self._source, text)

        async def attempt() -> bool:
            async with self._set_aside.attempt(*row, text) as allowed:
                return not allowed or await self._handled(handle, row, text)

        await self._once_stored(attempt)

    async def keep_unparsable(self) -> None:
        """Set aside the updates that could not be parsed, in one transaction: with a commit each, a flood of
        them would delay all later ones. Acknowledge no update before this returns."""

        async def keep() -> bool:
            count = len(self._unparsable)
            await self._set_aside.add_updates(self._unparsable[:count])
            del self._unparsable[:count]
            return True

        async with self._keeping:  # a webhook's updates come concurrently
            if self._unparsable:
                await self._once_stored(keep)

    async def _once_stored(self, attempt: Callable[[], Awaitable[bool]]) -> None:
        """Repeat until it returns True, with pauses while the state cannot be written."""
        done, pause = False, FIRST_RETRY
        while not done:
            try:
                done = await attempt()
            except StoreError as error:
                log.warning("an update of %s waits: %s", self._source, error)
                await asyncio.sleep(pause)
                pause = min(LONGEST_RETRY, 2 * pause)

    async def _handled(
        self, handle: Callable[[], Awaitable[None]], row: tuple[str, str], text: str
    ) -> bool:
        """False to try again. Raises StoreError."""
        try:
            await handle()
        except StoreError:
            raise
        except Unparsable as crash:
            log.warning("an update of %s cannot be parsed (%s)", self._source, crash.why)
            self._unparsable.append((row[1], crash.why, text))
            return True
        except Exception as crash:
            log.warning("an update of %s failed (%s)", self._source, type(crash).__name__)
            self._crashed.add(row)
            if await self._set_aside.crashed(*row, crash, text):
                log.exception("an update of %s crashed each time", self._source)
                return True
            return False
        if row in self._crashed:
            self._crashed.discard(row)
            await self._set_aside.passed(*row)
        return True
