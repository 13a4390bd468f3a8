"""The health digest: a daily card of GPU, energy and its price, errors, disk, and what was not delivered."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.store import Store
from agent.store.jobs import Job
from agent.store.occurrences import Occurrence
from backend.client import BackendClient, BackendUnavailable
from backend.protocol import GpuMinute, Status

GIB = 2**30
DAY_MINUTES = 24 * 60


@dataclass(frozen=True)
class Digest:
    """A kind of job (agent.schedule.occurrences.Kind). `price` is that of a kilowatt-hour."""

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
            lines = [*_server(status), *_cards(status, minutes, self.price)]
        more = [await self._errors(), await self._undelivered(), self._disk()]
        return "\n".join(["**The last 24 hours**", *lines, *more])

    async def _errors(self) -> str:
        turns, jobs = await self.store.occurrences.failures(self.store.clock() - DAY_MINUTES * 60)
        return f"- errors: {turns} turns, {jobs} jobs"

    async def _undelivered(self) -> str:
        counts = await self.store.outbox.counts()
        waiting = counts.get("waiting", 0) + counts.get("sending", 0)
        return (
            f"- to send: {waiting} waiting, {counts.get('uncertain', 0)} uncertain,"
            f" {counts.get('failed', 0)} refused"
        )

    def _disk(self) -> str:
        return f"- disk: {shutil.disk_usage(self.state).free / GIB:.1f} GiB free"


def _server(status: Status) -> list[str]:
    server = status.backend
    last = f", last: {server.last_restart.cause}" if server.last_restart else ""
    speed = status.speed.decode_tok_s
    lines = [f"- {server.model or 'model'}: {server.state}, {server.restarts} restarts{last}"]
    return lines + ([f"- speed: {speed:.0f} tokens/s"] if speed else [])


def _cards(status: Status, minutes: Sequence[GpuMinute], price: float) -> list[str]:
    """One line a card: hottest minute, mean watts, energy, throttled time, ECC."""
    return [_card(gpu.index, gpu.name, gpu.ecc_uncorrected, minutes, price) for gpu in status.gpus]


def _card(
    index: int, name: str, ecc: int | None, minutes: Sequence[GpuMinute], price: float
) -> str:
    own = [minute for minute in minutes if minute.gpu == index]
    watts = [minute.power_w for minute in own if minute.power_w is not None]
    heat = [minute.temperature_c for minute in own if minute.temperature_c is not None]
    throttled = sum(minute.throttled or 0 for minute in own)
    said = [f"at most {max(heat):.0f} °C"] if heat else []
    said += [_energy(watts, price)] if watts else []
    said += [f"throttled {throttled:.0f} min"] if throttled >= 1 else []
    said += [f"{ecc} ECC errors"] if ecc else []
    return f"- {name}: {', '.join(said) or 'no measurements'}"


def _energy(watts: Sequence[float], price: float) -> str:
    kwh = sum(watts) / 60 / 1000  # one value a minute
    cost = f", {kwh * price:.2f} at {price:g} a kWh" if price else ""
    return f"{sum(watts) / len(watts):.0f} W on average, {kwh:.2f} kWh{cost}"
