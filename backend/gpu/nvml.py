"""GPUs through NVML, sampled once a second: the only module that knows the binding.

Sampling runs in a daemon thread, because a call into a broken driver may never
return; the event loop only sees the last sample, or that it is stale.
A machine without NVML has no GPUs, which is no error.
"""

import asyncio
import ctypes
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from backend import proc
from backend.aio import set_within
from backend.protocol import Gpu, Phrase

STALE_SECONDS = 10.0
REOPEN_SECONDS = 10.0
MIB = 1 << 20
LIBRARY = "libnvidia-ml.so.1"
EMPTY_MIB = 600  # less than a CUDA context with any model takes
MOST_CELSIUS, MOST_MILLIWATTS = 150, 10_000_000  # a sensor that fails tells 255 or 511 °C
NO_LIBRARY = 12  # NVML_ERROR_LIBRARY_NOT_FOUND: no driver is installed
LINKS = 6  # NVLinks of a V100
NOT_AVAILABLE = (-1, (1 << 32) - 1, (1 << 64) - 1)  # NVML_VALUE_NOT_AVAILABLE of each size
# Bits of nvmlDeviceGetCurrentClocksThrottleReasons (nvml.h) without idle and clock settings, which are normal.
THROTTLE = {
    0x4: Phrase("power cap"),
    0x8: Phrase("hardware slowdown"),
    0x20: Phrase("thermal"),
    0x40: Phrase("thermal"),
    0x80: Phrase("power brake"),
    0x200: Phrase("board limit"),
    0x400: Phrase("reliability"),
}
HOT = frozenset({"thermal", "hardware slowdown"})


@dataclass(frozen=True, slots=True)
class Sample:
    """All GPUs at one moment. `lost` are indices that no longer answer, `silent` those of which the driver no
    longer tells anything though it did before; `xids` are new (GPU, number)."""

    at: float  # monotonic clock, seconds
    gpus: tuple[Gpu, ...] = ()
    lost: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    xids: tuple[tuple[int, int], ...] = ()
    pids: frozenset[int] = frozenset()  # processes with memory on a GPU
    joules: float | None = None  # drawn by all GPUs since the driver was loaded

    def holds(self, pid: int) -> bool | None:
        """Whether a process has memory on a GPU; None if that cannot be known."""
        if pid in self.pids:
            return True
        # In a container NVML reports the host's pids, or none.
        used = [gpu.memory_used_mib for gpu in self.gpus]
        empty = bool(used) and all(mib is not None and mib < EMPTY_MIB for mib in used)
        return False if empty else None

    def without(self, pid: int | None) -> bool:
        """Whether a process that has ended has no memory on a GPU any more; others may have."""
        return pid not in self.pids and (bool(self.pids) or self.holds(pid or 0) is False)

    @property
    def hottest(self) -> float | None:
        """The highest temperature of any GPU's core or memory, in °C."""
        both = [t for g in self.gpus for t in (g.temperature_c, g.memory_temperature_c)]
        return max((t for t in both if t is not None), default=None)

    @property
    def watts(self) -> float | None:
        known = [g.power_w for g in self.gpus if g.power_w is not None]
        return sum(known) if known else None

    @property
    def load(self) -> float | None:
        """The utilization of the busiest GPU, 0 to 1."""
        known = [g.utilization for g in self.gpus if g.utilization is not None]
        return max(known) / 100 if known else None


@dataclass(slots=True)
class Sampler:
    """Holds the last sample of all GPUs.

    `latest` is the last sample, `fresh` the last one unless it is older than STALE_SECONDS.

    `answered` is set after the first sample, or if NVML cannot be used.
    """

    listeners: list[Callable[[Sample], None]] = field(default_factory=list)
    latest: Sample | None = None
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def fresh(self) -> Sample | None:
        late = self.latest is None or monotonic() - self.latest.at > STALE_SECONDS
        return None if late else self.latest

    def take(self, sample: Sample) -> None:
        self.latest = sample
        self.answered.set()
        for listener in self.listeners:
            listener(sample)


@asynccontextmanager
async def sampling(
    sampler: Sampler,
    library: str | None = None,
    every: float = 1.0,
    reopen_after: float = REOPEN_SECONDS,
) -> AsyncIterator[None]:
    """Feed `sampler` for the block; without a usable NVML it gets no sample. An NVML that fell silent, lost
    a GPU, or could not be used yet, is initialized anew after `reopen_after` seconds."""
    stop = threading.Event()
    loop = asyncio.get_running_loop()

    def in_loop(call: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(call, *arguments)

    def sample_until_stopped() -> None:
        nvml, opened_at = Nvml.opened(), monotonic()
        if nvml is None:
            in_loop(sampler.answered.set)
        while not stop.is_set():
            sample = nvml.sample() if nvml else Sample(monotonic())
            if nvml:
                in_loop(sampler.take, sample)
            missing = sample.silent or sample.lost or not sample.gpus
            if missing and monotonic() - opened_at >= reopen_after:
                nvml, opened_at = Nvml.opened(nvml), monotonic()
            stop.wait(every)

    if load_library(library):
        threading.Thread(target=sample_until_stopped, name="nvml", daemon=True).start()
    else:
        sampler.answered.set()
    try:
        yield
    finally:
        stop.set()


def load_library(path: str | None) -> bool:
    """Load NVML; return whether it exists. The binding then uses a library loaded from `path`."""
    try:
        ctypes.CDLL(path or LIBRARY, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True


async def sample_once(library: str | None = None) -> Sample | None:
    """A current sample; None without a usable NVML, or if it does not answer within STALE_SECONDS."""
    sampler = Sampler()
    async with sampling(sampler, library):
        await set_within(sampler.answered, STALE_SECONDS)
    return sampler.latest


class NvmlUnusable(Exception):
    """NVML is not installed, or does not work (no driver loaded, or another version); `code` is its own."""

    def __init__(self, error: Any) -> None:
        super().__init__(str(error).rstrip("."))
        self.code = int(error.value)


@dataclass(frozen=True, slots=True)
class InstalledGpu:
    """A GPU of this machine.

    `capability` is CUDA's compute capability (major, minor), `memory` in bytes; None: unknown.

    A `unified` one has no memory of its own: `memory` is what is free of the machine's.
    """

    name: str
    capability: tuple[int, int] | None
    memory: int | None
    unified: bool = False


@dataclass(frozen=True, slots=True)
class InstalledGpus:
    """The GPUs of this machine; `problem` says why NVML cannot be used, empty if it can, and `code` is NVML's own."""

    driver: str | None = None
    gpus: tuple[InstalledGpu, ...] = ()
    problem: str = ""
    code: int = 0


def installed_gpus() -> InstalledGpus:
    """Ask NVML once. Blocks."""
    try:
        nvml = Nvml()
        return InstalledGpus(nvml.ask("nvmlSystemGetDriverVersion"), nvml.installed())
    except NvmlUnusable as error:
        return InstalledGpus(problem=str(error), code=error.code)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes."""

    total: int
    used: int


class Nvml:
    """The binding, initialized. All methods block; a lost GPU is raised as NVMLError_GpuIsLost."""

    def __init__(self) -> None:
        import pynvml

        self._nvml: Any = pynvml
        try:
            self._nvml.nvmlInit()
            count = self._nvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise NvmlUnusable(error) from None
        self._handles: dict[int, Any] = {}
        for index in range(count):
            with suppress(self._nvml.NVMLError_NoPermission):  # it is another user's or container's
                self._handles[index] = self._handle(index)
        if count and not self._handles:
            raise NvmlUnusable(self._nvml.NVMLError_NoPermission())
        self._names = dict.fromkeys(self._handles, "GPU")
        for index, handle in self._handles.items():
            with suppress(pynvml.NVMLError):
                self._names[index] = self.ask("nvmlDeviceGetName", handle) or "GPU"
        self._events = self._register()
        self._told: set[int] = set()  # of which a figure was told before

    @classmethod
    def opened(cls, before: "Nvml | None" = None) -> "Nvml | None":
        """NVML initialized, in place of `before`; `before` where that fails, or where it then knows fewer GPUs."""
        if before:
            with suppress(before._nvml.NVMLError):
                before._nvml.nvmlShutdown()
        try:
            fresh = cls()
        except NvmlUnusable:
            return before
        if before and len(fresh._handles) < len(before._handles):
            return before
        fresh._told = before._told if before else set()
        return fresh

    def sample(self) -> Sample:
        gpus, lost, pids, energy = [], [], set[int](), list[int | None]()
        silent: list[int] = []
        for index, handle in self._handles.items():
            if handle is None:
                lost.append(index)
                continue
            try:
                gpu = self._gpu(index, handle)
                gpus.append(gpu)
                if any(figure is not None for figure in figures(gpu)):
                    self._told.add(index)
                elif index in self._told:
                    silent.append(index)
                running = self.ask("nvmlDeviceGetComputeRunningProcesses", handle)
                pids |= {process.pid for process in running or ()}
                energy.append(self.ask("nvmlDeviceGetTotalEnergyConsumption", handle))
            except self._nvml.NVMLError_GpuIsLost:
                lost.append(index)
        known = [millijoules for millijoules in energy if millijoules is not None]
        joules = sum(known) / 1000 if known and len(known) == len(self._handles) else None
        xids, holders = tuple(self._xids()), frozenset(pids)
        return Sample(monotonic(), tuple(gpus), tuple(lost), tuple(silent), xids, holders, joules)

    def installed(self) -> tuple[InstalledGpu, ...]:
        found = []
        for index, handle in self._handles.items():
            if handle is None:
                continue
            with suppress(self._nvml.NVMLError_GpuIsLost):
                capability = self.ask("nvmlDeviceGetCudaComputeCapability", handle)
                memory, unified = self._memory(handle)
                size = memory.total - (memory.used if unified else 0) if memory else None
                found.append(InstalledGpu(self._names[index], capability, size, unified))
        return tuple(found)

    def _handle(self, index: int) -> Any:
        """The handle of a GPU, None where it is lost. Raises NVMLError_NoPermission."""
        try:
            return self._nvml.nvmlDeviceGetHandleByIndex(index)
        except self._nvml.NVMLError_NoPermission:
            raise
        except self._nvml.NVMLError:
            return None

    def _gpu(self, index: int, handle: Any) -> Gpu:
        nvml = self._nvml
        uncorrected = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        memory, unified = self._memory(handle)
        load = self.ask("nvmlDeviceGetUtilizationRates", handle)
        return Gpu(
            index=index,
            name=self._names[index],
            temperature_c=up_to(
                MOST_CELSIUS,
                self.ask("nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU),
            ),
            memory_temperature_c=self._memory_temperature(handle),
            power_w=watts(self.ask("nvmlDeviceGetPowerUsage", handle)),
            power_limit_w=watts(self.ask("nvmlDeviceGetEnforcedPowerLimit", handle)),
            utilization=up_to(100, load.gpu) if load else None,
            memory_used_mib=mib(memory.used) if memory else None,
            memory_total_mib=mib(memory.total) if memory else None,
            unified=unified,
            sm_clock_mhz=self.ask("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM),
            memory_clock_mhz=self.ask("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_MEM),
            throttle=self._throttle(handle),
            ecc_uncorrected=self.ask("nvmlDeviceGetTotalEccErrors", handle, *uncorrected),
            pcie=self._pcie(handle),
            nvlinks_up=self._nvlinks(handle),
        )

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call an NVML function; None if this GPU or driver does not support it, has no value (NOT_AVAILABLE), or gives
        bytes that are no text, as the drivers 555.85 to 555.99 do in WSL."""
        nvml = self._nvml
        try:
            found = getattr(nvml, name)(*arguments)
            return None if found in NOT_AVAILABLE else found
        except nvml.NVMLError_GpuIsLost:
            raise
        except (nvml.NVMLError, UnicodeDecodeError):
            return None

    def _memory(self, handle: Any) -> tuple["Memory | None", bool]:
        """The memory of a GPU, and whether it is the machine's own: GB10 and Jetson have no other, of which
        NVML says "not supported", or none."""
        nvml = self._nvml
        try:
            found = nvml.nvmlDeviceGetMemoryInfo(handle)
            if found.total:
                return Memory(int(found.total), int(min(found.used, found.total))), False
        except nvml.NVMLError_GpuIsLost:
            raise
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
            pass
        except nvml.NVMLError:
            return None, False
        total = proc.total_mib()
        return Memory(int(total * MIB), int((total - proc.available_mib()) * MIB)), True

    def _memory_temperature(self, handle: Any) -> float | None:
        values = self.ask("nvmlDeviceGetFieldValues", handle, [self._nvml.NVML_FI_DEV_MEMORY_TEMP])
        if not values or values[0].nvmlReturn != self._nvml.NVML_SUCCESS:
            return None
        celsius = values[0].value.uiVal
        return up_to(MOST_CELSIUS, celsius or None)

    def _throttle(self, handle: Any) -> list[str]:
        bits = self.ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle) or 0
        return list(dict.fromkeys(name for bit, name in THROTTLE.items() if bits & bit))

    def _pcie(self, handle: Any) -> str | None:
        generation = self.ask("nvmlDeviceGetCurrPcieLinkGeneration", handle)
        width = self.ask("nvmlDeviceGetCurrPcieLinkWidth", handle)
        return f"gen{generation} x{width}" if generation and width else None

    def _nvlinks(self, handle: Any) -> int | None:
        links = [self.ask("nvmlDeviceGetNvLinkState", handle, link) for link in range(LINKS)]
        known = [link for link in links if link is not None]
        return sum(known) if known else None

    def _register(self) -> Any:
        events = self.ask("nvmlEventSetCreate")
        for handle in self._handles.values() if events is not None else ():
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlDeviceRegisterEvents(
                    handle, self._nvml.nvmlEventTypeXidCriticalError, events
                )
        return events

    def _xids(self) -> Iterator[tuple[int, int]]:
        """The Xid events since the last sample, without waiting."""
        with suppress(self._nvml.NVMLError):  # a time-out: there is no further event
            while self._events is not None:
                event = self._nvml.nvmlEventSetWait_v2(self._events, 0)
                yield self._index(event.device), int(event.eventData)

    def _index(self, device: Any) -> int:
        addresses = {
            ctypes.cast(h, ctypes.c_void_p).value: index for index, h in self._handles.items()
        }
        return addresses.get(ctypes.cast(device, ctypes.c_void_p).value, 0)


def figures(gpu: Gpu) -> tuple[float | None, ...]:
    """Read the figures of a GPU that answers at least one query."""
    memory = None if gpu.unified else gpu.memory_total_mib
    return gpu.temperature_c, gpu.power_w, gpu.utilization, gpu.sm_clock_mhz, memory


def up_to(most: float, value: float | None) -> float | None:
    """The value, None where it is absurd."""
    return value if value is not None and value <= most else None


def watts(milliwatts: Any) -> float | None:
    known = up_to(MOST_MILLIWATTS, milliwatts)
    return None if known is None else round(known / 1000, 1)


def mib(value: int) -> float:
    return round(value / MIB, 1)


def throttled(gpus: Sequence[Gpu]) -> bool:
    """Whether a GPU is throttled because of heat."""
    return any(HOT & set(gpu.throttle) for gpu in gpus)
