"""The backend's figures in Prometheus's text format, in base units: seconds, bytes, hertz, ratios."""

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from backend.protocol import SERVING, Status

MIB = 2**20
GPU = (  # field of Gpu, metric, what it is, its unit in base units
    ("temperature_c", "temperature_celsius", "Core temperature", 1),
    ("memory_temperature_c", "memory_temperature_celsius", "Memory temperature", 1),
    ("power_w", "power_watts", "Power drawn", 1),
    ("power_limit_w", "power_limit_watts", "Power limit", 1),
    ("utilization", "utilization_ratio", "Load", 0.01),
    ("memory_used_mib", "memory_used_bytes", "Memory in use", MIB),
    ("memory_total_mib", "memory_size_bytes", "Memory", MIB),
    ("sm_clock_mhz", "clock_hertz", "Clock of the processors", 1e6),
    ("tokens_per_joule", "tokens_per_joule", "Tokens written per joule", 1),
    ("ecc_uncorrected", "uncorrected_errors", "Memory errors since boot", 1),
)


def metrics_text(status: Status) -> str:
    registry, gauges = CollectorRegistry(), dict[str, Gauge]()
    server, speed, memory = status.backend, status.speed, status.memory_mib

    def gauge(name: str, what: str, value: float | None, unit: float = 1, **labels: str) -> None:
        """Set a gauge, to `value` times `unit`; an unknown value has none."""
        if value is None:
            return
        if name not in gauges:
            gauges[name] = Gauge(f"voltaire_{name}", what, tuple(labels), registry=registry)
        (gauges[name].labels(**labels) if labels else gauges[name]).set(value * unit)

    gauge("up", "1 while the model server serves", server.state in SERVING)
    gauge("backend_uptime_seconds", "Age of the backend", status.uptime_s)
    gauge("restarts", "Ends of the model server since the backend's start", server.restarts)
    gauge("window_tokens", "The model's window", server.n_ctx)
    gauge("gpu_queue_requests", "Requests that wait for the model", status.waiting)
    warm = server.warm.cached_tokens if server.warm else None
    gauge("warm_tokens", "Of the fixed prefix in the cache", warm)
    gauge("decode_tokens_per_second", "Writing speed, rolling", speed.decode_tok_s)
    gauge("prefill_tokens_per_second", "Reading speed, rolling", speed.prefill_tok_s)
    gauge("time_to_first_token_seconds", "Rolling", speed.ttft_ms, 1e-3)
    gauge("cache_hit_ratio", "Share of prompts from the cache, rolling", speed.cache_hit)
    gauge("draft_acceptance_ratio", "Share of drafted tokens, rolling", speed.draft_acceptance)
    for process, mib in (("backend", memory.backend), ("server", memory.server)):
        gauge("memory_bytes", "Resident memory", mib, MIB, process=process)
    for card in status.gpus:
        for field, name, what, unit in GPU:
            gauge(f"gpu_{name}", what, getattr(card, field), unit, gpu=str(card.index))
        gauge("gpu_throttled", "1 while it is slowed", bool(card.throttle), gpu=str(card.index))
    return generate_latest(registry).decode()
