"""Updates by long polling, one poller per token, or by a webhook; both go on after any failure.

Each update is parsed on its own and handled before it is acknowledged. Handlers are quick and write what must last;
when one returns, its update may be forgotten by Telegram. While the state cannot be written, the update waits, and
its person is told so once.
"""

import asyncio
import hmac
import json
import logging
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from telegram import Bot, Update
from telegram.error import Conflict, InvalidToken, RetryAfter, TelegramError, TimedOut
from telegram.ext import Application, CallbackContext

from agent.aio import complete
from agent.store.database import storable
from agent.store.errors import StoreError
from agent.store.set_aside import SetAsideTable
from backend.connections import Connections
from backend.protocol import Phrase
from bot.intake import Unparsable, UpdateGate
from bot.messaging_apps import InboundHealth
from bot.telegram.message_calls import SOURCE

if TYPE_CHECKING:  # a server's modules cost 20 ms of every start, and few have a webhook
    from aiohttp import web

log = logging.getLogger(__name__)

URGENT = re.compile(r"/(status|stop)(?=[\s@]|$)")
KNOWN = 2000  # update ids kept to pass over a second delivery
POLL_SECONDS = 25
RECOVERY_SECONDS = 3
FIRST_BACKOFF = 0.05  # a call that fails once is made again before anybody notices
LONGEST_BACKOFF = 30.0
CONFLICT_BACKOFF = 0.5  # two that poll at full speed would only cut each other off
STOP_SECONDS = 3.0  # for the updates in hand, and to acknowledge them, when we stop
REPEATED_IDS = 10_000  # by how much the id of an update that comes once more may be lower
ANSWER_SECONDS = 5.0  # for an answer beyond the time that a poll may wait
HEADER = "X-Telegram-Bot-Api-Secret-Token"
UPDATE_BYTES = 1 << 20  # of a webhook's request
PATH = "/telegram"
TakeUpdates = Callable[[Sequence[object]], Coroutine[Any, Any, None]]  # as JSON; raises nothing


def why(error: TelegramError) -> Phrase:
    """Describe an error in a sentence."""
    if isinstance(error, Conflict):
        return Phrase(
            "Another copy of this bot asks for updates with the same token; stop one of them."
        )
    if isinstance(error, InvalidToken):
        return Phrase("Telegram no longer accepts the bot token; see @BotFather.")
    return Phrase("Telegram cannot be reached ({why}).", why=str(error))


def wait_of(error: TelegramError) -> float:
    """The seconds to wait that Telegram demands; 0 if it does not say."""
    return error._retry_after.total_seconds() if isinstance(error, RetryAfter) else 0.0


class Poller:
    """Polls for updates, each of which is handled before the next poll acknowledges it."""

    def __init__(
        self, bot: Bot, state: InboundHealth, take: TakeUpdates, kinds: Sequence[str]
    ) -> None:
        self._bot = bot
        self._state = state
        self._take = take
        self._kinds = kinds
        self._offset: int | None = None
        self._backoff = FIRST_BACKOFF

    async def run(self) -> None:
        try:
            while True:
                await self._poll()
        finally:
            with suppress(TelegramError, TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    if self._offset is not None:
                        await self._get_updates(timeout=0, limit=1)

    async def _poll(self) -> None:
        try:
            # The first does not wait for an update, and one after a failure not for long: the answer
            # shows that they come in. (Another poller comes back within that time.)
            timeout = POLL_SECONDS if self._state.last_at else 0
            if self._state.failure:
                timeout = RECOVERY_SECONDS
            updates = await self._get_updates(timeout=timeout, allowed_updates=self._kinds)
        except TelegramError as error:
            self._state.failed(why(error))
            await self._back_off(error)
            return
        self._state.answered()
        before = self._offset
        await complete(self._take_and_advance(updates), grace=STOP_SECONDS)
        if updates and self._offset == before:  # nothing in it that can be acknowledged
            await self._pause(0.0)
        else:
            self._backoff = FIRST_BACKOFF

    async def _get_updates(self, *, timeout: float, **fields: Any) -> list[object]:
        """Updates as JSON, unparsed: Bot.get_updates loses all of them to one that it cannot parse."""
        call = {"offset": self._offset, "timeout": timeout, **fields}
        wait = timeout + ANSWER_SECONDS
        try:
            updates = await self._bot._post("getUpdates", call, read_timeout=wait)
        except RecursionError as error:
            raise TelegramError("its answer is nested too deeply") from error
        if not isinstance(updates, list):
            raise TelegramError("its answer is no list of updates")
        return updates

    async def _take_and_advance(self, updates: Sequence[object]) -> None:
        """An update may come once more, after newer ones; after a week without any, the ids
        begin anew, lower or higher (https://core.telegram.org/bots/api#update)."""
        await self._take(updates)
        for update in updates:
            self._advance_past(update_number(update))

    def _advance_past(self, number: int | None) -> None:
        if number is None:
            return
        following = number + 1
        if self._offset is None or not 0 < self._offset - following < REPEATED_IDS:
            self._offset = following

    async def _back_off(self, error: TelegramError) -> None:
        """Pauses grow while it goes wrong. A webhook left behind would refuse us for ever."""
        if isinstance(error, Conflict) and "webhook" in str(error).lower():
            with suppress(TelegramError):
                await self._bot.delete_webhook()
        if isinstance(error, TimedOut):
            return  # the call itself has waited
        await self._pause(CONFLICT_BACKOFF if isinstance(error, Conflict) else wait_of(error))

    async def _pause(self, least: float) -> None:
        await asyncio.sleep(max(least, self._backoff))
        self._backoff = min(LONGEST_BACKOFF, 2 * self._backoff)


class Webhook:
    """A small server behind the owner's reverse proxy.

    `url` is the public HTTPS address, `listen` "HOST:PORT" of ours behind it. Telegram
    repeats an update until it is answered with 200, and that happens once it is taken.
    The secret token, new at each start, is all that tells Telegram from others.
    """

    def __init__(
        self,
        bot: Bot,
        state: InboundHealth,
        take: TakeUpdates,
        kinds: Sequence[str],
        url: str,
        listen: str,
    ) -> None:
        self._bot = bot
        self._state = state
        state.quiet = True
        self._take = take
        self._kinds = kinds
        self._url = url.rstrip("/") + PATH
        self._host, _, port = listen.rpartition(":")
        self._port = int(port)
        self._secret = secrets.token_urlsafe(32)
        self._connections = Connections()

    async def run(self) -> None:
        """Listen until cancelled. Raises OSError when the address cannot be used."""
        from aiohttp import web

        app = web.Application(client_max_size=UPDATE_BYTES)
        app.add_routes([web.post(PATH, self._receive)])
        async with self._connections.serving(app, self._host, self._port, shutdown_timeout=3.0):
            await self._register()
            await asyncio.Event().wait()

    async def _register(self) -> None:
        pause = FIRST_BACKOFF
        while True:
            try:
                await self._bot.set_webhook(
                    self._url, secret_token=self._secret, allowed_updates=self._kinds
                )
            except TelegramError as error:
                self._state.failed(why(error))
                await asyncio.sleep(max(wait_of(error), pause))
                pause = min(LONGEST_BACKOFF, 2 * pause)
            else:
                self._state.answered()
                return

    async def _receive(self, request: "web.Request") -> "web.Response":
        from aiohttp import web

        given = request.headers.get(HEADER, "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._secret.encode()):
            return web.Response(status=403)
        self._connections.keep(request.transport)
        update: object
        try:
            body = await request.read()
            update = json.loads(body)
        except web.HTTPRequestEntityTooLarge:
            update = f"{request.content_length} bytes"
        except (ValueError, RecursionError):
            update = body.decode("utf-8", "replace")
        self._state.answered()
        await complete(self._take([update]))
        return web.Response()


# -- one update ---------------------------------------------------------------


class Dispatcher:
    """Parses updates and passes each once to the application's handlers. While updates cannot be stored, `waits`
    is called with the first one of each chat."""

    def __init__(
        self,
        application: Application[Any, Any, Any, Any, Any, Any],
        set_aside: SetAsideTable,
        waits: Callable[[Update, StoreError], None],
    ) -> None:
        self._application = application
        self._gate = UpdateGate(SOURCE, set_aside)
        self._waits = waits
        self._waiting: set[int] = set()  # chats
        self._known: OrderedDict[int, None] = OrderedDict()
        self._errors: dict[int, Exception] = {}
        application.add_error_handler(self._keep_error)

    async def take(self, updates: Sequence[object]) -> None:
        """Return once the updates, as JSON, are handled for good or set aside."""
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
        """Parse an update and run its handler. Raises Unparsable, StoreError, and what the handler raised."""
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
    """Sort updates: /status and /stop before those of other chats; within a chat the order stays."""
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
    """The update_id of an update; None if it is missing or not one of Telegram's."""
    number = field(raw, "update_id")
    return number if type(number) is int and 0 <= number < 1 << 63 else None


def parse_update(raw: object, application: Application[Any, Any, Any, Any, Any, Any]) -> Update:
    """Parse one update; any exception means that it is malformed."""
    if not isinstance(raw, dict) or update_number(raw) is None:
        raise ValueError("no update")
    whole = storable(json.dumps(raw, ensure_ascii=False))  # without half a sign, as JSON may hold
    update = Update.de_json(json.loads(whole), application.bot)
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
