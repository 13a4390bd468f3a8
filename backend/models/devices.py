"""Which GPUs a server can use, and what is free on them, asked of the very binary.

A build for the processor lists none, whatever the machine has; one for Vulkan
lists what NVML does not know. Servers without `--list-devices` (ik_llama.cpp)
leave the question to NVML.
"""

import asyncio
import os
import re
import signal
from collections.abc import Mapping
from contextlib import suppress

from backend.gpu.nvml import look
from backend.models.placement import Card

LIST = "--list-devices"
LIST_SECONDS = 30.0  # a first CUDA context on a cold machine takes seconds
MIB = 1 << 20
# CUDA numbers by speed unless told, NVML by PCI address.
ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
NO_GPU = ("CPU", "BLAS")
_DEVICE = re.compile(r"^\s*([A-Za-z]+)(\d+): .*\(\d+ MiB, (\d+) MiB free\)", re.MULTILINE)


async def cards(
    command: tuple[str, ...], env: Mapping[str, str], help_text: str, nvml: str | None = None
) -> list[Card]:
    """The devices of a server; none where it has none, or does not say so in time."""
    if LIST in help_text:
        return listed(await _answer((*command, LIST), {**env, **ORDER}))
    sample = await look(nvml)
    return [
        Card(gpu.index, int((gpu.memory_total_mib - gpu.memory_used_mib) * MIB))
        for gpu in (sample.gpus if sample else ())
        if gpu.memory_total_mib is not None and gpu.memory_used_mib is not None
    ]


def listed(text: str) -> list[Card]:
    """The devices in the answer to `--list-devices`: "  CUDA0: NAME (16144 MiB, 15800 MiB free)"."""
    return [
        Card(int(index), int(free) * MIB, kind)
        for kind, index, free in _DEVICE.findall(text)
        if kind not in NO_GPU
    ]


async def _answer(command: tuple[str, ...], env: Mapping[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(LIST_SECONDS):
            said, _ = await process.communicate()
    except TimeoutError:
        return ""
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return said.decode("utf-8", "replace")
