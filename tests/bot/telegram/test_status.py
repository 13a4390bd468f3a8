"""The lines of /status, in whatever language."""

from typing import Any

from agent.language import speaking
from agent.store.outbox import OutboxState
from backend.protocol import Gpu, ServerStatus, Speed, Status
from bot.commands.status import backend_lines, queue_line, uptime_line
from fakes.words import saying


def report(**known: Any) -> Status:
    server = ServerStatus(state="ready", **known)
    return Status(version="1", uptime_s=1, backend=server, speed=Speed())


def test_nothing_known_is_one_line() -> None:
    assert backend_lines(report()) == ["**ready**"]
    assert queue_line(0, 0, {}) == "0 waiting · 0 to send"
    assert uptime_line(59, "12:00") == "up 0 min, at 12:00"


def test_all_that_is_known() -> None:
    known = report(
        profile="qwen", model="q.gguf", n_ctx=32768, restarts=2, held="It is hot.", reason="loaded"
    ).model_copy(
        update={
            "speed": Speed(prefill_tok_s=1234.4, decode_tok_s=56.78, cache_hit=0.987),
            "gpus": [card()],
        }
    )
    assert backend_lines(known) == [
        "**ready**: loaded",
        "qwen · q.gguf",
        "window 32,768 tokens · restarts 2",
        "It is hot.",
        "prefill 1,234 tok/s · decode 56.8 tok/s · cache 99%",
        "Tesla V100 · 61 °C · 240 W · 20.0 of 32.0 GiB · slowed: heat, power",
    ]
    with speaking("fr"):
        assert backend_lines(known)[2].startswith("fenêtre ")


def test_queues_and_times() -> None:
    outbox: dict[OutboxState, int] = {"waiting": 1, "sending": 1, "uncertain": 3, "failed": 4}
    wanted = "2 running · 5 waiting · 2 to send · 3 in doubt · 4 failed"
    assert queue_line(2, 5, outbox) == wanted
    assert uptime_line(3_661, "12:00") == saying("up 1 h 1 min", "12:00")


def card() -> Gpu:
    return Gpu(
        index=0,
        name="Tesla V100",
        temperature_c=61.2,
        power_w=240,
        memory_used_mib=20_480,
        memory_total_mib=32_768,
        throttle=["heat", "power"],
    )
