"""The proxy that stands before a homeserver in tests and benchmarks ends without a traceback."""

import asyncio
import logging

import aiohttp
import pytest
from aiohttp import web

from fakes.homeserver_proxy import homeserver_proxy


async def test_a_request_that_is_on_its_way_at_the_end_has_somebody_to_ask(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def synced(_: web.Request) -> web.Response:
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/sync", synced)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    caplog.set_level(logging.ERROR, "aiohttp.server")
    async with aiohttp.ClientSession() as bot:
        async with homeserver_proxy(f"http://127.0.0.1:{runner.addresses[0][1]}") as proxy:
            held = proxy.rule("GET /sync", "hold")
            asking = asyncio.create_task(bot.get(f"{proxy.url}/sync"))
            await held.reached.wait()
            held.released.set()
        answer = await asking
        status = answer.status
        answer.release()
    await runner.cleanup()
    assert status == 200 and caplog.records == []
