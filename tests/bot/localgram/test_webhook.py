"""Updates carried to a webhook."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from bot.localgram import Localgram, Person
from fakes.patience import SECONDS

from .conftest import Raw


class Receiver:
    def __init__(self) -> None:
        self.heard: asyncio.Queue[tuple[str | None, Any]] = asyncio.Queue()
        self.answers = [200]
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.heard.put_nowait((request.headers.get("X-Telegram-Bot-Api-Secret-Token"), body))
        return web.Response(
            status=self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        )


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver, app = Receiver(), web.Application()
    app.router.add_post("/hook", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield receiver
    await runner.cleanup()


async def test_updates_come_in_order_with_the_secret(
    raw: Raw, alice: Person, receiver: Receiver
) -> None:
    await alice.send("before")
    await raw.ok("setWebhook", url=receiver.url, secret_token="s-1")
    await alice.send("after")
    async with asyncio.timeout(SECONDS):
        heard = [await receiver.heard.get() for _ in range(2)]
    assert [(secret, body["message"]["text"]) for secret, body in heard] == [
        ("s-1", "before"),
        ("s-1", "after"),
    ]


async def test_what_was_refused_comes_again(
    raw: Raw, gram: Localgram, alice: Person, receiver: Receiver
) -> None:
    receiver.answers = [500, 200]
    await raw.ok("setWebhook", url=receiver.url)
    await alice.send("hello")
    async with asyncio.timeout(SECONDS):
        heard = [await receiver.heard.get() for _ in range(2)]
    assert heard[0] == heard[1]
    info: Any = await raw.ok("getWebhookInfo")
    assert info["last_error_message"] == (
        "Wrong response from the webhook: 500 Internal Server Error"
    )
