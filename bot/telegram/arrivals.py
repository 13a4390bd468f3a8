"""The update queue that acknowledges nothing it has not handled.

python-telegram-bot asks for the next updates, which acknowledges the last ones,
as soon as its queue has taken them. So `put` returns only when the handlers,
which are quick and write what must last, are done.
"""

import asyncio
import logging
from collections import OrderedDict
from typing import Any

from telegram import Update
from telegram.ext import Application, CallbackContext

from agent.store.errors import StoreError

log = logging.getLogger(__name__)

KNOWN = 2000  # update ids kept to pass over a second delivery
RETRY_SECONDS = 2.0
LONGEST_RETRY = 30.0


class Arrivals(asyncio.Queue[object]):
    """Give `handle` the application before it starts."""

    def __init__(self) -> None:
        super().__init__()
        self._application: Application[Any, Any, Any, Any, Any, Any] | None = None
        self._known: OrderedDict[int, None] = OrderedDict()
        self._failed: dict[int, Exception] = {}
        self.last_at: float | None = None

    def handle(self, application: Application[Any, Any, Any, Any, Any, Any]) -> None:
        self._application = application
        application.add_error_handler(self._note)

    async def put(self, update: object) -> None:
        if not isinstance(update, Update) or self._application is None:
            await super().put(update)
            return
        if update.update_id in self._known:
            return
        pause = RETRY_SECONDS
        while not await self._done(update):
            await asyncio.sleep(pause)
            pause = min(LONGEST_RETRY, 2 * pause)
        self._known[update.update_id] = None
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)

    async def _done(self, update: Update) -> bool:
        """Whether the update is dealt with; False while the state cannot be written."""
        assert self._application
        await self._application.process_update(update)
        error = self._failed.pop(update.update_id, None)
        if isinstance(error, StoreError):
            log.error("update %d waits: %s", update.update_id, error)
            return False
        return True

    async def _note(self, update: object, context: CallbackContext[Any, Any, Any, Any]) -> None:
        if isinstance(update, Update) and context.error is not None:
            self._failed[update.update_id] = context.error
            if not isinstance(context.error, StoreError):
                log.error("update %d failed", update.update_id, exc_info=context.error)
