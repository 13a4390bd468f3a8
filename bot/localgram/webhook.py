"""Updates carried to a webhook, one after another, each until it is taken."""

import asyncio
import contextlib

import aiohttp

from bot.localgram.clock import Clock
from bot.localgram.updates import Updates

ANSWER_SECONDS = 60.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0  # assumed: Telegram says "a reasonable amount of attempts"
HEADER = "X-Telegram-Bot-Api-Secret-Token"


class Webhook:
    def __init__(self, updates: Updates, clock: Clock) -> None:
        self.url = ""
        self.failure: tuple[int, str] | None = None  # when (Unix time) and what
        self._secret = ""
        self._updates = updates
        self._clock = clock
        self._set = asyncio.Event()

    def set(self, url: str, secret: str) -> None:
        """Where updates go from now on; an empty URL gives them back to getUpdates."""
        self.url, self._secret, self.failure = url, secret, None
        self._updates.webhook = bool(url)
        (self._set.set if url else self._set.clear)()
        self._updates.wake("")

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as http:
            pause = FIRST_PAUSE
            while True:
                await self._set.wait()
                update = await self._updates.first()
                if self.url and await self._deliver(http, update.json()):
                    self._updates.acknowledge(update.id + 1)
                    pause = FIRST_PAUSE
                elif self.url:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)

    async def _deliver(self, http: aiohttp.ClientSession, update: dict[str, object]) -> bool:
        headers = {HEADER: self._secret} if self._secret else {}
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with (
                asyncio.timeout(ANSWER_SECONDS),
                http.post(self.url, json=update, headers=headers) as response,
            ):
                if response.ok:
                    return True
                self._fail(f"Wrong response from the webhook: {response.status} {response.reason}")
                return False
        self._fail("Connection refused")
        return False

    def _fail(self, text: str) -> None:
        self.failure = (int(self._clock()), text)
