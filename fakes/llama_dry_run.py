"""What the embedded llama.cpp server would allocate, from its own log: it sizes everything and loads nothing.

    buffers = await dry_run(path, "-c", "32768", "-ub", "1024")

`python -m fakes.llama_dry_run FLAGS` is that server; without weights it crashes or
gives up once the sizes are logged, which does not matter.
"""

import asyncio
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from backend.embedded.__main__ import command_line, params_of
from backend.embedded.flags import library
from fakes.patience import SECONDS

TRIES = 40  # the library logs in a thread, whose last lines a crash loses now and then
KV = re.compile(rb"llama_kv_cache: size = +([\d.]+) MiB")
STATES = re.compile(rb"llama_memory_recurrent: size = +([\d.]+) MiB")
COMPUTE = re.compile(rb"compute buffer size = +([\d.]+) MiB")
OVERRIDDEN = re.compile(rb"tensor \S+ \((\d+) MiB \S+\) buffer type overridden to CPU")
UNUSED = re.compile(rb"model has unused tensor \S+ \(size = (\d+) bytes\)")


@dataclass(frozen=True)
class Buffers:
    """MiB. `kv` holds keys, values and recurrent states of both contexts; `mtp_compute` is the
    second one's, 0 without drafting; `unused` is the size of tensors that are not loaded, `on_host`
    of those that were told to stay in host memory, each in whole MiB."""

    kv: float
    compute: float
    mtp_compute: float
    unused: float
    on_host: float


async def dry_run(model: Path, *flags: str) -> Buffers:
    contexts = 2 if "draft-mtp" in flags else 1
    for _ in range(TRIES):
        log = await server_log(model, *flags)
        compute = [float(size) for size in COMPUTE.findall(log)]
        if len(compute) >= contexts:
            kv = sum(float(size) for pattern in (KV, STATES) for size in pattern.findall(log))
            unused = sum(int(size) for size in UNUSED.findall(log)) / 2**20
            on_host = sum(int(size) for size in OVERRIDDEN.findall(log))
            mtp = compute[-1] if contexts > 1 else 0
            return Buffers(kv, compute[0], mtp, unused, on_host)
    raise AssertionError(f"the server never told its sizes:\n{log[-2000:].decode()}")


async def server_log(model: Path, *flags: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fakes.llama_dry_run", "-m", str(model), *flags),
        cwd=Path(__file__).parents[1],
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SECONDS):
            _, log = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return log


def main() -> None:
    params = params_of(command_line().parse_args())
    params.port, params.hostnames = 0, ["127.0.0.1"]
    params.no_alloc, params.warmup, params.fit_params = True, False, False
    params.verbosity = 5 if params.tensor_buft_overrides else 4  # 5 names each that is overridden
    params.load_mode = library().llama_load_mode.LLAMA_LOAD_MODE_NONE
    library().Server(params)


if __name__ == "__main__":
    main()
