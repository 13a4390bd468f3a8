"""The real llama.cpp server for /v1/embeddings, a process of its own: any model gives vectors, the mean of its last layer's.

async with served(model) as url: ...
"""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from backend.embedded.flags import library
from backend.server.launch import free_port
from fakes.patience import SECONDS


@asynccontextmanager
async def served(model: Path) -> AsyncIterator[str]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fakes.llama_embedding", str(model), str(port)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        await asyncio.wait_for(_healthy(url), SECONDS)
        yield url
    finally:
        process.kill()
        await process.wait()


async def _healthy(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            with suppress(aiohttp.ClientError):
                async with session.get(f"{url}/health") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.05)


def main(model: str, port: int) -> None:
    llama = library()
    params = llama.CommonParams()
    params.model.path, params.port = model, port
    params.embedding, params.pooling_type = True, llama.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.n_ctx = params.n_batch = params.n_ubatch = 2048
    params.n_parallel, params.warmup = 1, False
    params.cpuparams.n_threads = 1
    server = llama.Server(params)  # the server ends when this is collected
    threading.Event().wait()
    del server


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
