"""Updates by webhook in place of polling: a small server behind the owner's reverse proxy.

Telegram repeats an update until it is answered with 200, and that happens once it
is taken. The secret token, new at each start, is all that tells Telegram from others.
"""

import asyncio
import hmac
import json
import logging
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from telegram import Bot
from telegram.error import RetryAfter, TelegramError

from bot.telegram.polling import FIRST_BACKOFF, LONGEST_BACKOFF, PollState, TakeUpdate

if TYPE_CHECKING:  # a server's modules cost 20 ms of every start, and few have a webhook
    from aiohttp import web

log = logging.getLogger(__name__)

HEADER = "X-Telegram-Bot-Api-Secret-Token"
UPDATE_BYTES = 1 << 20
PATH = "/telegram"


class Webhook:
    """`url` is the public HTTPS address, `listen` "HOST:PORT" of ours behind it."""

    def __init__(
        self,
        bot: Bot,
        state: PollState,
        take: TakeUpdate,
        kinds: Sequence[str],
        url: str,
        listen: str,
    ) -> None:
        self._bot = bot
        self._state = state
        state.by_webhook = True
        self._take = take
        self._kinds = kinds
        self._url = url.rstrip("/") + PATH
        self._host, _, port = listen.rpartition(":")
        self._port = int(port)
        self._secret = secrets.token_urlsafe(32)

    async def run(self) -> None:
        """Listen until cancelled. Raises OSError when the address cannot be used."""
        from aiohttp import web

        app = web.Application(client_max_size=UPDATE_BYTES)
        app.add_routes([web.post(PATH, self._receive)])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=3.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host.strip("[]"), self._port).start()
            await self._register()
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    async def _register(self) -> None:
        pause = FIRST_BACKOFF
        while True:
            try:
                await self._bot.set_webhook(
                    self._url, secret_token=self._secret, allowed_updates=self._kinds
                )
            except TelegramError as error:
                self._state.failed(error)
                after = error._retry_after.total_seconds() if isinstance(error, RetryAfter) else 0
                await asyncio.sleep(max(after, pause))
                pause = min(LONGEST_BACKOFF, 2 * pause)
            else:
                self._state.answered()
                return

    async def _receive(self, request: "web.Request") -> "web.Response":
        from aiohttp import web

        given = request.headers.get(HEADER, "")
        if not hmac.compare_digest(given.encode(), self._secret.encode()):
            return web.Response(status=403)
        update: object
        try:
            body = await request.read()
            update = json.loads(body)
        except web.HTTPRequestEntityTooLarge:
            update = f"{request.content_length} bytes"
        except (ValueError, RecursionError):
            update = body.decode("utf-8", "replace")
        self._state.answered()
        await asyncio.shield(asyncio.ensure_future(self._take(update)))
        return web.Response()
