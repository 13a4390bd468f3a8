"""Updates, each handled before it is acknowledged.

Handlers are quick and write what must last; when one returns, its update may be
forgotten by Telegram. While the state cannot be written, the update waits.
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
RETRY_SECONDS = 1.0
LONGEST_RETRY = 30.0


class Arrivals:
    def __init__(self, application: Application[Any, Any, Any, Any, Any, Any]) -> None:
        self._application = application
        self._known: OrderedDict[int, None] = OrderedDict()
        self._failed: dict[int, Exception] = {}
        application.add_error_handler(self._note)

    async def take(self, update: Update) -> None:
        """Returns when the update is dealt with for good."""
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
        """False while the state cannot be written; a bug of ours must not hold up everybody."""
        await self._application.process_update(update)
        error = self._failed.pop(update.update_id, None)
        if isinstance(error, StoreError):
            log.error("update %d waits: %s", update.update_id, error)
            return False
        if error is not None:
            log.error("update %d failed", update.update_id, exc_info=error)
        return True

    async def _note(self, update: object, context: CallbackContext[Any, Any, Any, Any]) -> None:
        if isinstance(update, Update) and context.error is not None:
            self._failed[update.update_id] = context.error
