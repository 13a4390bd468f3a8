"""Prometheus text (exposition format 0.0.4), by hand. Pure."""

from collections.abc import Iterable, Iterator

from backend.protocol import SERVING, Gpu, Status

_GPU = (
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
_SPEED = (
    ("decode_tok_s", "decode_tokens_per_second", "decode speed, rolling"),
    ("prefill_tok_s", "prefill_tokens_per_second", "prefill speed, rolling"),
    ("ttft_ms", "time_to_first_token_milliseconds", "time to the first token, rolling"),
    ("cache_hit", "cache_hit_ratio", "share of prompt tokens that were cached"),
    ("draft_acceptance", "draft_acceptance_ratio", "share of drafted tokens that were accepted"),
)


def text(status: Status) -> str:
    return "\n".join([*_server(status), *_speed(status), *_gpus(status.gpus)]) + "\n"


def _server(status: Status) -> Iterator[str]:
    server = status.backend
    yield from _metric(
        "up", "whether the model server serves", [("", int(server.state in SERVING))]
    )
    yield from _metric(
        "restarts_total", "ends of the model server", [("", server.restarts)], "counter"
    )
    yield from _metric("uptime_seconds", "age of the backend", [("", status.uptime_s)])
    yield from _metric("lane_waiting", "turns that wait for the GPU", [("", status.waiting)])
    warm = server.warm
    yield from _metric(
        "warm_tokens", "fixed prefix in the cache", [("", warm.cached_tokens if warm else None)]
    )
    memory = [
        ('{process="backend"}', status.memory_mib.backend),
        ('{process="server"}', status.memory_mib.server),
    ]
    yield from _metric("memory_mebibytes", "resident memory", memory)
    yield from _metric(
        "info", "what runs", [(_labels(profile=server.profile, model=server.model), 1)]
    )


def _speed(status: Status) -> Iterator[str]:
    for field, name, words in _SPEED:
        yield from _metric(name, words, [("", getattr(status.speed, field))])


def _gpus(gpus: Iterable[Gpu]) -> Iterator[str]:
    cards = list(gpus)
    for field, name, words in _GPU:
        rows = [(_labels(gpu=str(card.index)), getattr(card, field)) for card in cards]
        yield from _metric(f"gpu_{name}", words, rows)
    rows = [
        (_labels(gpu=str(card.index), reason=why), 1) for card in cards for why in card.throttle
    ]
    yield from _metric("gpu_throttled", "1 while a card is slowed, by reason", rows)


def _metric(
    name: str, words: str, rows: Iterable[tuple[str, float | None]], kind: str = "gauge"
) -> Iterator[str]:
    known = [(labels, value) for labels, value in rows if value is not None]
    if known:
        yield f"# HELP voltaire_{name} {words}"
        yield f"# TYPE voltaire_{name} {kind}"
        yield from (f"voltaire_{name}{labels} {value}" for labels, value in known)


def _labels(**labels: str | None) -> str:
    pairs = [f'{name}="{_escape(value)}"' for name, value in labels.items() if value is not None]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
