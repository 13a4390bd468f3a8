"""The health digest: a daily card of GPU, energy and its price, errors, disk, and what was not delivered."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.store import Store
from agent.store.jobs import Job
from agent.store.occurrences import Occurrence
from backend.client import BackendClient, BackendUnavailable
from backend.protocol import Gpu, GpuMinute, Status

GIB = 2**30
DAY_MINUTES = 24 * 60


@dataclass(frozen=True)
class HealthDigest:
    """A JobAction. `price` is that of a kilowatt-hour."""

    store: Store
    backend: BackendClient
    state: Path
    price: float

    async def __call__(self, _job: Job, _occurrence: Occurrence) -> str:
        try:
            status = await self.backend.status()
            minutes = await self.backend.gpu_history(DAY_MINUTES)
        except BackendUnavailable as error:
            lines = [f"The backend is away: {error}"]
        else:
            gpus = [gpu_line(gpu, minutes, self.price) for gpu in status.gpus]
            lines = [*server_lines(status), *gpus]
        turns, jobs = await self.store.occurrences.failures(self.store.clock() - DAY_MINUTES * 60)
        counts = await self.store.outbox.counts()
        waiting = counts.get("waiting", 0) + counts.get("sending", 0)
        uncertain, failed = counts.get("uncertain", 0), counts.get("failed", 0)
        free = shutil.disk_usage(self.state).free / GIB
        return "\n".join(
            [
                "**The last 24 hours**",
                *lines,
                f"- errors: {turns} turns, {jobs} jobs",
                f"- to send: {waiting} waiting, {uncertain} uncertain, {failed} refused",
                f"- disk: {free:.1f} GiB free",
            ]
        )


def server_lines(status: Status) -> list[str]:
    server = status.backend
    last = f", last: {server.last_restart.cause}" if server.last_restart else ""
    speed = status.speed.decode_tok_s
    lines = [f"- {server.model or 'model'}: {server.state}, {server.restarts} restarts{last}"]
    return lines + ([f"- speed: {speed:.0f} tokens/s"] if speed else [])


def gpu_line(gpu: Gpu, minutes: Sequence[GpuMinute], price: float) -> str:
    """Hottest minute, mean watts, energy, throttled time, ECC errors."""
    own = [minute for minute in minutes if minute.gpu == gpu.index]
    watts = [minute.power_w for minute in own if minute.power_w is not None]
    heat = [minute.temperature_c for minute in own if minute.temperature_c is not None]
    throttled = sum(minute.throttled or 0 for minute in own)
    parts = [f"at most {max(heat):.0f} °C"] if heat else []
    parts += [energy(watts, price)] if watts else []
    parts += [f"throttled {throttled:.0f} min"] if throttled >= 1 else []
    parts += [f"{gpu.ecc_uncorrected} ECC errors"] if gpu.ecc_uncorrected else []
    return f"- {gpu.name}: {', '.join(parts) or 'no measurements'}"


def energy(watts: Sequence[float], price: float) -> str:
    kwh = sum(watts) / 60 / 1000  # one value a minute
    cost = f", {kwh * price:.2f} at {price:g} a kWh" if price else ""
    return f"{sum(watts) / len(watts):.0f} W on average, {kwh:.2f} kWh{cost}"
