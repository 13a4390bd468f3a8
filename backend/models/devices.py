"""Which GPUs a server can use and what is free on them, as the binary itself lists them.

A build for the processor lists none, whatever the machine has; one for Vulkan
lists what NVML does not know. For servers without `--list-devices`
(ik_llama.cpp) NVML answers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from backend.gpu.nvml import look
from backend.programs import output_of

LIST_FLAG = "--list-devices"
LIST_SECONDS = 30.0  # a first CUDA context on a cold machine takes seconds
MIB = 1 << 20
# CUDA numbers by speed unless told, NVML by PCI address.
PCI_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
NO_GPU = ("CPU", "BLAS")
DEVICE = re.compile(r"^\s*([A-Za-z]+)(\d+): .*\(\d+ MiB, (\d+) MiB free\)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU by its number in the server's own order; `free` in bytes."""

    index: int
    free: int
    kind: str = "CUDA"


async def list_devices(
    command: tuple[str, ...], env: Mapping[str, str], help_text: str, nvml: str | None = None
) -> list[Device]:
    """The GPUs of a server; none where it has none or does not answer within LIST_SECONDS."""
    if LIST_FLAG in help_text:
        try:
            answer = await output_of(
                (*command, LIST_FLAG), env={**env, **PCI_ORDER}, seconds=LIST_SECONDS
            )
        except TimeoutError:
            return []
        return parse_devices(answer.text)
    sample = await look(nvml)
    return [
        Device(gpu.index, int((gpu.memory_total_mib - gpu.memory_used_mib) * MIB))
        for gpu in (sample.gpus if sample else ())
        if gpu.memory_total_mib is not None and gpu.memory_used_mib is not None
    ]


def parse_devices(text: str) -> list[Device]:
    """The answer to `--list-devices`: "  CUDA0: NAME (16144 MiB, 15800 MiB free)"."""
    return [
        Device(int(index), int(free) * MIB, kind)
        for kind, index, free in DEVICE.findall(text)
        if kind not in NO_GPU
    ]
