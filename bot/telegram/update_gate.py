"""Updates, each parsed on its own and handled before it is acknowledged.

Handlers are quick and write what must last; when one returns, its update may be
forgotten by Telegram. While the state cannot be written, the update waits. What
cannot be parsed, and what handlers crash at every time, is set aside as a dead letter.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from typing import Any

from telegram import Update
from telegram.ext import Application, CallbackContext

from agent.store.dead_letters import DeadLetterTable
from agent.store.errors import StoreError
from bot.telegram.chat_key import SOURCE

log = logging.getLogger(__name__)

KNOWN = 2000  # update ids kept to pass over a second delivery
FIRST_RETRY = 1.0
LONGEST_RETRY = 30.0


class UpdateGate:
    """Passes updates to the application's handlers, each once."""

    def __init__(
        self, application: Application[Any, Any, Any, Any, Any, Any], dead_letters: DeadLetterTable
    ) -> None:
        self._application = application
        self._dead_letters = dead_letters
        self._known: OrderedDict[int, None] = OrderedDict()
        self._errors: dict[int, Exception] = {}
        application.add_error_handler(self._keep_error)

    async def take(self, raw: object) -> None:
        """Returns when the update, as JSON, is handled for good or set aside."""
        number = update_number(raw)
        if number in self._known:
            return
        pause = FIRST_RETRY
        while True:
            try:
                if await self._handled(number, raw):
                    break
            except StoreError as error:
                log.warning("update %s waits: %s", number, error)
                await asyncio.sleep(pause)
                pause = min(LONGEST_RETRY, 2 * pause)
        if number is not None:
            self._known[number] = None
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)

    async def _handled(self, number: int | None, raw: object) -> bool:
        """Whether it is handled or set aside; False to try it again. Raises StoreError."""
        try:
            update = parsed(raw, self._application)
        except Exception as error:  # noqa: BLE001 - the library trusts whatever it parses
            log.warning("update %s cannot be parsed (%s)", number, type(error).__name__)
            name = "" if number is None else str(number)
            await self._dead_letters.unreadable(SOURCE, name, as_json(raw), described(error))
            return True
        try:
            await self._application.process_update(update)
            crash = self._errors.pop(update.update_id, None)
        except Exception as error:  # noqa: BLE001 - the library fails at the update beside handlers
            crash = error
        return crash is None or await self._crashed(update.update_id, raw, crash)

    async def _crashed(self, number: int, raw: object, error: Exception) -> bool:
        """Whether the update has crashed for the last time. Raises StoreError."""
        if isinstance(error, StoreError):
            raise error
        set_aside = await self._dead_letters.crashed(
            SOURCE, str(number), as_json(raw), described(error)
        )
        log.error("update %d failed", number, exc_info=error if set_aside else None)
        return set_aside

    async def _keep_error(
        self, update: object, context: CallbackContext[Any, Any, Any, Any]
    ) -> None:
        if isinstance(update, Update) and context.error is not None:
            self._errors[update.update_id] = context.error


def update_number(raw: object) -> int | None:
    """The update_id of an update; None where it has none that Telegram would give."""
    number = raw.get("update_id") if isinstance(raw, dict) else None
    return number if type(number) is int and 0 <= number < 1 << 63 else None


def parsed(raw: object, application: Application[Any, Any, Any, Any, Any, Any]) -> Update:
    """Raises whatever the library raises at what it does not expect."""
    if not isinstance(raw, dict) or update_number(raw) is None:
        raise ValueError("no update")
    update = Update.de_json(raw, application.bot)
    application.context_types.context.from_update(update, application)
    message = update.effective_message
    if message is not None:  # what is stored of it, and used when it is answered
        known = (message.message_id, message.chat.id, message.message_thread_id or 0)
        if not all(type(id) is int and abs(id) < 1 << 63 for id in known):
            raise ValueError("an id is no number of 64 bits")
        if not isinstance(message.text or message.caption or "", str):
            raise ValueError("the text is none")
    return update


def as_json(raw: object) -> str:
    try:
        return json.dumps(raw)
    except (ValueError, RecursionError):  # a number or a nesting beyond what Python writes
        return json.dumps(type(raw).__name__)


def described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
