"""The lines of /status: state, speed, card, queues; what is not known is left out. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.store.outbox import OutboxState
from backend.protocol import Gpu, Speed, Status
from bot.texts import Texts


@dataclass(frozen=True, slots=True)
class Queues:
    """Turns that run, messages that wait for theirs, and the outbox's rows by state."""

    running: int
    waiting: int
    outbox: Mapping[OutboxState, int]


def backend_lines(texts: Texts, report: Status) -> list[str]:
    server = report.backend
    figures = joined(
        texts.window.format(tokens=server.n_ctx) if server.n_ctx else "",
        texts.restarts.format(count=server.restarts) if server.restarts else "",
    )
    lines = [
        f"**{server.state}**" + (f": {server.reason}" if server.reason else ""),
        joined(server.profile or "", server.model or ""),
        figures,
        server.held or "",
        _speed(texts, report.speed),
        *(gpu_line(texts, gpu) for gpu in report.gpus),
    ]
    return [line for line in lines if line]


def _speed(texts: Texts, speed: Speed) -> str:
    return joined(
        texts.prefill.format(speed=speed.prefill_tok_s) if speed.prefill_tok_s else "",
        texts.decode.format(speed=speed.decode_tok_s) if speed.decode_tok_s else "",
        texts.cache.format(hit=speed.cache_hit) if speed.cache_hit is not None else "",
    )


def gpu_line(texts: Texts, gpu: Gpu) -> str:
    used, total = gpu.memory_used_mib, gpu.memory_total_mib
    return joined(
        gpu.name,
        f"{gpu.temperature_c:.0f} °C" if gpu.temperature_c is not None else "",
        f"{gpu.power_w:.0f} W" if gpu.power_w is not None else "",
        texts.gpu_memory.format(used=used / 1024, total=total / 1024) if used and total else "",
        texts.gpu_slowed.format(why=", ".join(gpu.throttle)) if gpu.throttle else "",
    )


def queue_line(texts: Texts, queues: Queues) -> str:
    outbox = queues.outbox
    to_send = outbox.get("waiting", 0) + outbox.get("sending", 0)
    doubtful, failed = outbox.get("uncertain", 0), outbox.get("failed", 0)
    return joined(
        texts.running.format(count=queues.running) if queues.running else "",
        texts.waiting.format(count=queues.waiting),
        texts.to_send.format(count=to_send),
        texts.doubtful.format(count=doubtful) if doubtful else "",
        texts.failed.format(count=failed) if failed else "",
    )


def up_line(texts: Texts, seconds: float, at: str) -> str:
    """For how long, and what time it is, the same wherever the reader is."""
    return texts.up.format(span=_span(texts, seconds), at=at)


def _span(texts: Texts, seconds: float) -> str:
    minutes, hours = int(seconds) // 60, int(seconds) // 3600
    if hours >= 48:
        return texts.days.format(days=hours // 24)
    if hours:
        return texts.hours.format(hours=hours, minutes=minutes % 60)
    return texts.minutes.format(minutes=minutes)


def joined(*parts: str) -> str:
    return " · ".join(filter(None, parts))
