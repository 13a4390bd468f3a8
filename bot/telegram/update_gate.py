"""Updates, each parsed on its own and handled before it is acknowledged.

Handlers are quick and write what must last; when one returns, its update may be
forgotten by Telegram. While the state cannot be written, the update waits, and its person is
told so once.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from telegram import Update
from telegram.ext import Application, CallbackContext

from agent.store.errors import StoreError
from agent.store.set_aside import SetAsideTable
from bot.event_gate import EventGate, Unparsable
from bot.telegram.message_calls import SOURCE

URGENT = re.compile(r"/(status|stop)(?=[\s@]|$)")
KNOWN = 2000  # update ids kept to pass over a second delivery


class UpdateGate:
    """Passes updates to the application's handlers, each once. While updates cannot be stored, `waits` is
    called with the first one of each chat."""

    def __init__(
        self,
        application: Application[Any, Any, Any, Any, Any, Any],
        set_aside: SetAsideTable,
        waits: Callable[[Update, StoreError], None],
    ) -> None:
        self._application = application
        self._gate = EventGate(SOURCE, set_aside)
        self._waits = waits
        self._waiting: set[int] = set()  # chats
        self._known: OrderedDict[int, None] = OrderedDict()
        self._errors: dict[int, Exception] = {}
        application.add_error_handler(self._keep_error)

    async def take(self, updates: Sequence[object]) -> None:
        """Returns when the updates, as JSON, are handled for good or set aside."""
        for raw in urgent_first(updates):
            number = update_number(raw)
            if number in self._known:
                continue
            await self._gate.take(as_json(raw), partial(self._handle, raw))
            if number is not None:
                self._known[number] = None
                if len(self._known) > KNOWN:
                    self._known.popitem(last=False)
        await self._gate.keep_unparsable()

    async def _handle(self, raw: object) -> None:
        """Raises Unparsable, StoreError, and what a handler crashed with."""
        try:
            update = parse_update(raw, self._application)
        except Exception as error:  # noqa: BLE001 - the library trusts whatever it parses
            raise Unparsable(error) from None
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
        else:
            self._waiting.clear()
        if crash is not None:
            raise crash

    async def _keep_error(
        self, update: object, context: CallbackContext[Any, Any, Any, Any]
    ) -> None:
        if isinstance(update, Update) and context.error is not None:
            self._errors[update.update_id] = context.error


def urgent_first(updates: Sequence[object]) -> Sequence[object]:
    """/status and /stop before what other chats sent earlier; within a chat the order stays."""
    urgent: list[object] = []
    others: list[object] = []
    waiting: set[str] = set()  # chats with an update in `others`
    for raw in updates:
        chat, text = chat_in(raw), field(field(raw, "message"), "text")
        if chat not in waiting and isinstance(text, str) and URGENT.match(text):
            urgent.append(raw)
        else:
            waiting.add(chat)
            others.append(raw)
    return urgent + others


def chat_in(raw: object) -> str:
    """The id of the chat that an update in JSON belongs to; "" where none is found."""
    for body in raw.values() if isinstance(raw, dict) else ():
        for chat in (field(body, "chat"), field(field(body, "message"), "chat")):
            if isinstance(chat, dict):
                return str(chat.get("id"))
    return ""


def field(raw: object, name: str) -> object:
    return raw.get(name) if isinstance(raw, dict) else None


def update_number(raw: object) -> int | None:
    """The update_id of an update; None where it has none that Telegram would give."""
    number = field(raw, "update_id")
    return number if type(number) is int and 0 <= number < 1 << 63 else None


def parse_update(raw: object, application: Application[Any, Any, Any, Any, Any, Any]) -> Update:
    """Parse one update; any exception means that it is malformed."""
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
