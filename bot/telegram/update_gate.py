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
FIRST_RETRY = 1.0
LONGEST_RETRY = 30.0


class UpdateGate:
    """Passes updates to the application's handlers, each once."""

    def __init__(self, application: Application[Any, Any, Any, Any, Any, Any]) -> None:
        self._application = application
        self._known: OrderedDict[int, None] = OrderedDict()
        self._errors: dict[int, Exception] = {}
        application.add_error_handler(self._keep_error)

    async def take(self, update: Update) -> None:
        """Returns when the update is handled for good; a bug of ours does not hold up the others."""
        if update.update_id in self._known:
            return
        pause = FIRST_RETRY
        while True:
            await self._application.process_update(update)
            error = self._errors.pop(update.update_id, None)
            if not isinstance(error, StoreError):
                break
            log.error("update %d waits: %s", update.update_id, error)
            await asyncio.sleep(pause)
            pause = min(LONGEST_RETRY, 2 * pause)
        if error is not None:
            log.error("update %d failed", update.update_id, exc_info=error)
        self._known[update.update_id] = None
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)

    async def _keep_error(
        self, update: object, context: CallbackContext[Any, Any, Any, Any]
    ) -> None:
        if isinstance(update, Update) and context.error is not None:
            self._errors[update.update_id] = context.error
