"""The health digest adds up what the minutes say."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.schedule.times.rule import Once, dump
from agent.store import open_store
from agent.store.jobs import JobSpec
from backend.client import BackendUnavailable
from backend.protocol import Gpu, GpuMinute, Restart, ServerStatus, Speed, Status
from bot.job_actions import HealthDigest
from fakes.stored import fall_due
from fakes.words import saying

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)


class Backend:
    """The two answers that a digest asks for."""

    def __init__(self, gone: bool = False) -> None:
        self.gone = gone

    async def status(self) -> Status:
        if self.gone:
            raise BackendUnavailable("No model backend is running.")
        server = ServerStatus(
            state="ready",
            model="gemma",
            restarts=2,
            last_restart=Restart(at=NOW, cause="It was killed."),
        )
        return Status(
            version="1",
            uptime_s=1,
            backend=server,
            speed=Speed(decode_tok_s=98.6),
            gpus=[Gpu(index=0, name="V100", ecc_uncorrected=3)],
        )

    async def gpu_history(self, minutes: int) -> list[GpuMinute]:
        assert minutes == 1440
        at = [NOW - timedelta(minutes=n) for n in range(120)]
        return [
            GpuMinute(
                at=t, gpu=0, temperature_c=60 + (t.minute == 0) * 21, power_w=150.0, throttled=0.5
            )
            for t in at
        ]


async def test_a_day_in_six_lines(tmp_path: Path) -> None:
    async with open_store(tmp_path / "s.db") as store:
        await store.outbox.add("tg:1", ['{"text": "hi"}'])
        job = await store.jobs.add(
            JobSpec("tg:1", "task", "", dump(Once(datetime.now(UTC))), "UTC", "x", {})
        )
        due = await fall_due(store, job.id, 1)
        assert due
        await store.occurrences.end(due.id, "failed", "x")
        text = await HealthDigest(store, Backend(), tmp_path, 0.3)(None, None)  # type: ignore[arg-type]
    lines = text.splitlines()
    assert lines[:6] == [
        saying("**", "24 hours"),
        saying("gemma: ready", "restarts 2", "It was killed."),
        saying("speed", " 99 tokens/s"),
        saying(
            "V100", " 81 °C", " 150 W", " 0.30 kWh", " 0.09 ", "throttled 60 min", "ECC errors: 3"
        ),
        saying("errors", "turns 0", "jobs 1"),
        saying("to send", "1 waiting", "0 uncertain", "0 refused"),
    ]
    assert lines[6].startswith("- disk: ") and len(lines) == 7


async def test_without_a_backend_it_says_so(tmp_path: Path) -> None:
    async with open_store(tmp_path / "s.db") as store:
        text = await HealthDigest(store, Backend(gone=True), tmp_path, 0)(None, None)  # type: ignore[arg-type]
    assert text == saying("away", "No model backend is running.")
