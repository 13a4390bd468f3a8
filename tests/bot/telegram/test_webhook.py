"""Updates by webhook."""

import asyncio
from contextlib import suppress

import aiohttp

from backend.server.launch import free_port
from fakes.bot_running import TelegramScenario
from fakes.patience import soon, within


async def test_updates_come_by_webhook_and_only_from_telegram(scenario: TelegramScenario) -> None:
    here = f"127.0.0.1:{free_port()}"
    scenario.config = {"webhook_url": f"http://{here}", "webhook_listen": here}
    async with scenario.open() as run:
        await soon(lambda: scenario.gram.called("setWebhook"))
        answer = await scenario.owner.ask("hi")
        forged = {"update_id": 1, "message": {"message_id": 1}}
        async with aiohttp.ClientSession() as session:
            for headers in ({}, {"X-Telegram-Bot-Api-Secret-Token": "guess"}):
                async with session.post(
                    f"http://{here}/telegram", json=forged, headers=headers
                ) as said:
                    assert said.status == 403
        reader, writer = await asyncio.open_connection("127.0.0.1", int(here.rpartition(":")[2]))
        token = b"X-Telegram-Bot-Api-Secret-Token: \xff"  # no text at all
        writer.write(b"POST /telegram HTTP/1.0\r\nContent-Length: 0\r\n" + token + b"\r\n\r\n")
        assert b" 403 " in await reader.readline()
        writer.close()
        assert run.bot.poll.problem() is None
    assert answer.text == "Hello."
    assert scenario.gram.world.updates.polls == 0


async def test_unfinished_requests_do_not_pile_up(scenario: TelegramScenario) -> None:
    here = f"127.0.0.1:{free_port()}"
    scenario.config = {"webhook_url": f"http://{here}", "webhook_listen": here}
    async with scenario.open():
        await soon(lambda: scenario.gram.called("setWebhook"))
        port = int(here.rpartition(":")[2])
        crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
        for _, writer in crowd:
            writer.write(b"POST /telegram HTTP/1.1\r\nHost: ")
        with within(10), suppress(ConnectionError):
            assert await crowd[0][0].read() == b""  # ended to make room, sooner than by itself
        answer = await scenario.owner.ask("hi")
        for _, writer in crowd:
            writer.close()
    assert answer.text == "Hello."
