"""The real llama.cpp server, embedded, for tests that need nothing of its supervisor."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from backend.protocol import Endpoint
from backend.server.launch import free_port
from fakes.patience import SECONDS


@asynccontextmanager
async def serve(
    model: Path,
    context: int = 8192,
    mmproj: Path | None = None,
    port: int = 0,
    template: Path | None = None,
    more: Sequence[str] = (),
    key: str = "secret",
) -> AsyncIterator[Endpoint]:
    """The server on a model file, until the block ends; `context` is its window in tokens, `mmproj` its
    projector of pictures, `template` a chat template in place of the model's, `more` further flags."""
    port = port or free_port()
    flags = ["-m", str(model), "-c", str(context), "-np", "1", "-sps", "0.95", "--port", str(port)]
    flags += ["-t", "1", "-tb", "1"]  # threads that wait for each other cost a busy machine most
    flags += ["--mmproj", str(mmproj)] if mmproj else []
    flags += ["--chat-template-file", str(template)] if template else []
    flags += more
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "backend.embedded", *flags),
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "LLAMA_API_KEY": key},
    )
    endpoint = Endpoint(
        url=f"http://127.0.0.1:{port}",
        api_key=key,
        n_ctx=context,
        keeps_prompts=True,
        vision=mmproj is not None,
    )
    try:
        await asyncio.wait_for(_healthy(endpoint.url), SECONDS)
        yield endpoint
    finally:
        process.terminate()
        await process.wait()


async def _healthy(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            with suppress(aiohttp.ClientError):
                async with session.get(f"{url}/health") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.05)
