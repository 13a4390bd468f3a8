"""A server of our own to measure, for as long as a block lasts; no supervisor, no warm-up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from backend.config import BackendConfig
from backend.gpu.nvml import Sampler
from backend.measure.bench import Bench, setting
from backend.measure.probe import CannotMeasure, gauge
from backend.models.profile import Profile
from backend.server.binary import CannotStart
from backend.server.diagnosis import diagnose
from backend.server.launch import Launch, prepare
from backend.server.llama import llama_server
from backend.server.process import ServerProcess, server_process

LOAD_SECONDS, LOOK_SECONDS = 1800.0, 0.2


@asynccontextmanager
async def measured(
    config: BackendConfig, profile: Profile, sampler: Sampler, driver: str | None = None
) -> AsyncIterator[Bench]:
    """A server with this profile, ready to be measured; CannotMeasure says why it is not."""
    try:
        launch = await prepare(config, profile)
    except CannotStart as error:
        raise CannotMeasure(str(error)) from None
    record = config.state_dir / "run" / "bench.json"
    async with server_process(launch.argv, launch.env, record) as process:
        await _up(launch, process)
        async with gauge(launch.url, launch.api_key) as found:
            told = setting(profile.name, await found.build(), launch.argv, driver)
            yield Bench(found, told, sampler)


async def _up(launch: Launch, process: ServerProcess) -> None:
    began = monotonic()
    async with llama_server(launch.url, launch.api_key) as server:
        while not await server.healthy():
            if process.exited:
                cause = diagnose(await process.wait(), await process.final_log())
                raise CannotMeasure(cause.sentence)
            if monotonic() - began > LOAD_SECONDS:
                raise CannotMeasure("The server did not load within half an hour.")
            await asyncio.sleep(LOOK_SECONDS)  # the server has no way to tell that it is ready
