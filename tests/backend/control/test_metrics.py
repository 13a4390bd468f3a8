"""The status as Prometheus text."""

from prometheus_client.parser import text_string_to_metric_families

from backend.control.metrics import metrics_text
from backend.protocol import Gpu, MemoryUse, ServerStatus, Speed, Status, WarmPrefix


def test_prometheus_text() -> None:
    status = Status(
        version="1",
        uptime_s=2.5,
        backend=ServerStatus(
            state="ready",
            warm=WarmPrefix(tokens=5, cached_tokens=5, seconds=1, source="prefill"),
        ),
        speed=Speed(decode_tok_s=50, ttft_ms=420),
        memory_mib=MemoryUse(server=2),
        gpus=[Gpu(index=0, name="V", temperature_c=60, utilization=50, throttle=["thermal"])],
    )
    found = {
        (sample.name.removeprefix("voltaire_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics_text(status))
        for sample in family.samples
    }
    assert found == {
        ("up",): 1,
        ("backend_uptime_seconds",): 2.5,
        ("restarts",): 0,
        ("gpu_queue_requests",): 0,
        ("warm_tokens",): 5,
        ("decode_tokens_per_second",): 50,
        ("time_to_first_token_seconds",): 0.42,
        ("memory_bytes", "server"): 2 * 2**20,
        ("gpu_temperature_celsius", "0"): 60,
        ("gpu_utilization_ratio", "0"): 0.5,
        ("gpu_throttled", "0"): 1,
    }
