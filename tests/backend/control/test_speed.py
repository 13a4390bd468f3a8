"""Speed, cache use and energy of the last completions."""

import pytest

from backend.control.speed import Speedometer
from backend.protocol import CompletionReport, Speed


def test_speed_is_known_or_none() -> None:
    meter = Speedometer()
    assert meter.speed() == Speed()
    meter.add(
        CompletionReport(
            prompt_tokens=100, cached_tokens=90, completion_tokens=20, decode_tok_s=50, ttft_ms=10
        ),
        watts=100,
    )
    meter.add(
        CompletionReport(
            prompt_tokens=100,
            cached_tokens=100,
            completion_tokens=20,
            decode_tok_s=40,
            draft_tokens=10,
            draft_accepted=6,
        )
    )
    assert meter.speed() == Speed(decode_tok_s=45, ttft_ms=10, cache_hit=0.95, draft_acceptance=0.6)
    assert meter.tokens_per_joule == 0.5


def test_errors_in_a_row_end_with_an_answer() -> None:
    meter = Speedometer()
    for status in (500, 503, 502, 400, 0):
        meter.add(CompletionReport(status=status))
    assert (meter.errors, meter.served) == (2, 0)
    meter.add(CompletionReport(completion_tokens=1))
    assert (meter.errors, meter.served) == (0, 1)


def test_the_speed_of_now_is_a_share_of_the_median_of_its_own_profile() -> None:
    meter = Speedometer()
    meter.begin("quick")
    for speed in [100] * 30 + [70] * 5:
        meter.add(CompletionReport(completion_tokens=50, decode_tok_s=speed))
    assert meter.share == pytest.approx(0.7)
    meter.begin("slow")
    for _ in range(20):
        assert meter.share is None
        meter.add(CompletionReport(completion_tokens=50, decode_tok_s=30))
    assert (meter.share, meter.median, meter.speed().decode_tok_s) == (1, 30, 30)
    meter.begin("quick")
    assert meter.share == pytest.approx(0.7)
    assert meter.median == 100
