"""The status as Prometheus text."""

from backend.control.api import metrics_text
from backend.protocol import Gpu, ServerStatus, Speed, Status, WarmPrefix


def test_prometheus_text() -> None:
    status = Status(
        version="1",
        uptime_s=2.5,
        backend=ServerStatus(
            state="ready",
            profile='a"b',
            warm=WarmPrefix(tokens=5, cached_tokens=5, seconds=1, source="prefill"),
        ),
        speed=Speed(decode_tok_s=50),
        gpus=[Gpu(index=0, name="V", temperature_c=60, throttle=["thermal"])],
    )
    lines = metrics_text(status).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "voltaire_up 1",
        "voltaire_restarts_total 0",
        "voltaire_uptime_seconds 2.5",
        "voltaire_lane_waiting 0",
        "voltaire_warm_tokens 5",
        'voltaire_info{profile="a\\"b"} 1',
        "voltaire_decode_tokens_per_second 50.0",
        'voltaire_gpu_temperature_celsius{gpu="0"} 60.0',
        'voltaire_gpu_throttled{gpu="0",reason="thermal"} 1',
    ]
    assert lines[0].startswith("# HELP voltaire_up ")
    assert lines[1] == "# TYPE voltaire_up gauge"
