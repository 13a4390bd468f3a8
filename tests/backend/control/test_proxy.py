"""Other local programs on the same server."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp

from backend.config import BackendConfig
from backend.server.launch import free_port
from fakes.patience import SECONDS, soon
from tests.backend.conftest import running


async def test_other_programs_use_the_server_by_a_port_and_key_of_their_own(
    config: BackendConfig,
) -> None:
    port = free_port()
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "stream": True}
    async with (
        running(replace(config, proxy_port=port, proxy_key="sesame")) as it,
        aiohttp.ClientSession() as session,
    ):
        await it.ready()
        url = f"http://127.0.0.1:{port}"
        async with session.get(f"{url}/v1/models") as answer:
            assert answer.status == 401
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v1/models HTTP/1.0\r\nAuthorization: Bearer \xff\r\n\r\n")  # no text
        assert b" 401 " in await reader.readline()
        writer.close()
        key = {"Authorization": "Bearer sesame"}
        async with session.get(f"{url}/v1/models", headers=key) as answer:
            assert (await answer.json())["data"][0]["id"] == "pocket"
        async with session.post(f"{url}/slots/0?action=erase", headers=key) as answer:
            assert answer.status == 404
        async with it.client.acquire_gpu("a"):
            asking = asyncio.create_task(read(session, f"{url}/v1/chat/completions", body, key))
            await soon(lambda: it.backend.state.gpu_queue.waiters)
        assert "[DONE]" in await asyncio.wait_for(asking, SECONDS)


async def read(session: aiohttp.ClientSession, url: str, body: Any, headers: dict[str, str]) -> str:
    async with session.post(url, json=body, headers=headers) as answer:
        assert answer.content_type == "text/event-stream"
        return await answer.text()


async def test_hundreds_of_unfinished_requests_lock_no_program_out(state: Path) -> None:
    port = free_port()
    config = BackendConfig(state_dir=state, kind="external", proxy_port=port, proxy_key="sesame")
    async with running(config), aiohttp.ClientSession() as session:
        crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
        for _, writer in crowd:
            writer.write(b"GET /v1/models HTTP/1.1\r\nX: ")
        for key, status in (("sesame", 404), ("wrong", 401)):
            headers = {"Authorization": f"Bearer {key}"}
            async with session.get(f"http://127.0.0.1:{port}/slots", headers=headers) as answer:
                assert answer.status == status
        async with asyncio.timeout(SECONDS):
            with suppress(ConnectionError):
                assert await crowd[0][0].read() == b""
        for _, writer in crowd:
            writer.close()
