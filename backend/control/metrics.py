"""Prometheus text (exposition format 0.0.4) of one Status. Pure.

Written by hand, which takes a dozen lines. prometheus_client, which the bot uses, would cost every
backend 45 ms of its start and 1 MiB even if nobody reads the metrics, and would write each 1 as 1.0.
"""

from collections.abc import Iterator, Mapping

from backend.protocol import SERVING, Status

GPU = (  # field, metric, help
    ("temperature_c", "temperature_celsius", "core temperature"),
    ("memory_temperature_c", "memory_temperature_celsius", "memory temperature"),
    ("power_w", "power_watts", "power drawn"),
    ("power_limit_w", "power_limit_watts", "power limit"),
    ("utilization", "utilization_percent", "load"),
    ("memory_used_mib", "memory_used_mebibytes", "memory in use"),
    ("memory_total_mib", "memory_total_mebibytes", "memory"),
    ("sm_clock_mhz", "sm_clock_megahertz", "clock of the processors"),
    ("ecc_uncorrected", "ecc_uncorrected_errors", "uncorrected memory errors since boot"),
    ("tokens_per_joule", "tokens_per_joule", "tokens written per joule"),
)
SPEED = (
    ("decode_tok_s", "decode_tokens_per_second", "decode speed, rolling"),
    ("prefill_tok_s", "prefill_tokens_per_second", "prefill speed, rolling"),
    ("ttft_ms", "time_to_first_token_milliseconds", "time to the first token, rolling"),
    ("cache_hit", "cache_hit_ratio", "share of prompt tokens that were cached"),
    ("draft_acceptance", "draft_acceptance_ratio", "share of drafted tokens that were accepted"),
)


def text(status: Status) -> str:
    return "".join(f"{line}\n" for line in lines(status))


def lines(status: Status) -> Iterator[str]:
    server, gpus = status.backend, status.gpus
    serves = int(server.state in SERVING)
    yield from metric("up", "whether the model server serves", {"": serves})
    restarts = {"": server.restarts}
    yield from metric("restarts_total", "ends of the model server", restarts, "counter")
    yield from metric("uptime_seconds", "age of the backend", {"": status.uptime_s})
    yield from metric("lane_waiting", "requests that wait for the GPU", {"": status.waiting})
    warm = {"": server.warm.cached_tokens if server.warm else None}
    yield from metric("warm_tokens", "fixed prefix in the cache", warm)
    used = status.memory_mib
    memory = {labels(process="backend"): used.backend, labels(process="server"): used.server}
    yield from metric("memory_mebibytes", "resident memory", memory)
    yield from metric("info", "what runs", {labels(profile=server.profile, model=server.model): 1})
    for field, name, what in SPEED:
        yield from metric(name, what, {"": getattr(status.speed, field)})
    for field, name, what in GPU:
        values = {labels(gpu=str(gpu.index)): getattr(gpu, field) for gpu in gpus}
        yield from metric(f"gpu_{name}", what, values)
    slowed = {labels(gpu=str(gpu.index), reason=why): 1 for gpu in gpus for why in gpu.throttle}
    yield from metric("gpu_throttled", "1 while a card is slowed, by reason", slowed)


def metric(
    name: str, what: str, values: Mapping[str, float | None], kind: str = "gauge"
) -> Iterator[str]:
    """The lines of one metric, a line for each set of labels; none if no value is known."""
    known = [(labels, value) for labels, value in values.items() if value is not None]
    if known:
        yield f"# HELP voltaire_{name} {what}"
        yield f"# TYPE voltaire_{name} {kind}"
        yield from (f"voltaire_{name}{labels} {value}" for labels, value in known)


def labels(**given: str | None) -> str:
    pairs = [f'{name}="{escape(value)}"' for name, value in given.items() if value is not None]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
