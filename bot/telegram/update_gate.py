"""Updates, each parsed on its own and handled before it is acknowledged.

Handlers are quick and write what must last; when one returns, its update may be
forgotten by Telegram. While the state cannot be written, the update waits, and its person is
told so once. What cannot be parsed, and what handlers or the whole program crash at every time, is set aside.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from telegram import Update
from telegram.ext import Application, CallbackContext

from agent.store.errors import StoreError
from agent.store.set_aside import SetAsideTable, update_key
from agent.store.unreadable import UPDATES
from bot.telegram.message_calls import SOURCE

log = logging.getLogger(__name__)

KNOWN = 2000  # update ids kept to pass over a second delivery
FIRST_RETRY = 1.0
LONGEST_RETRY = 30.0


class Unparsable(Exception):
    """An update that the library cannot parse; `why` is what it raised."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.why = why


Waits = Callable[[Update, StoreError], None]
"""Told of an update that cannot be stored now."""


class UpdateGate:
    """Passes updates to the application's handlers, each once. `waits` is called once for each chat
    until an update can be stored again."""

    def __init__(
        self,
        application: Application[Any, Any, Any, Any, Any, Any],
        set_aside: SetAsideTable,
        waits: Waits = lambda update, error: None,
    ) -> None:
        self._application = application
        self._set_aside = set_aside
        self._waits = waits
        self._waiting: set[int] = set()  # chats
        self._known: OrderedDict[int, None] = OrderedDict()
        self._errors: dict[int, Exception] = {}
        self._crashed: set[tuple[str, str]] = set()
        application.add_error_handler(self._keep_error)

    async def take(self, raw: object) -> None:
        """Returns when the update, as JSON, is handled for good or set aside."""
        number, text = update_number(raw), as_json(raw)
        if number in self._known:
            return
        row = UPDATES, update_key(SOURCE, text)
        handled, pause = False, FIRST_RETRY
        while not handled:
            try:
                async with self._set_aside.attempt(*row, text) as allowed:
                    handled = not allowed or await self._handled(raw, row, text)
            except StoreError as error:
                log.warning("update %s waits: %s", number, error)
                await asyncio.sleep(pause)
                pause = min(LONGEST_RETRY, 2 * pause)
        if number is not None:
            self._known[number] = None
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)

    async def _handled(self, raw: object, row: tuple[str, str], text: str) -> bool:
        """Whether it is handled or set aside; False to try again. Raises StoreError."""
        crash = await self._crash(raw)
        if crash is None:
            if row in self._crashed:
                self._crashed.discard(row)
                await self._set_aside.passed(*row)
            return True
        log.warning("update %s failed (%s)", update_number(raw), type(crash).__name__)
        if isinstance(crash, Unparsable):
            await self._set_aside.add(*row, crash.why, text)
            return True
        self._crashed.add(row)
        if await self._set_aside.crashed(*row, crash, text):
            log.error("update %s crashed each time", update_number(raw), exc_info=crash)
            return True
        return False

    async def _crash(self, raw: object) -> Exception | None:
        """What a handler crashed with, or Unparsable; None when it is handled. Raises StoreError."""
        try:
            update = parsed(raw, self._application)
        except Exception as error:  # noqa: BLE001 - the library trusts whatever it parses
            return Unparsable(error)
        try:
            await self._application.process_update(update)
            crash = self._errors.pop(update.update_id, None)
        except Exception as error:  # noqa: BLE001 - the library fails at the update beside handlers
            crash = error
        if isinstance(crash, StoreError):
            chat = update.effective_chat
            if chat and chat.id not in self._waiting:
                self._waiting.add(chat.id)
                self._waits(update, crash)
            raise crash
        self._waiting.clear()
        return crash

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
