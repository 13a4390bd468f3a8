"""The picture of the last hours."""

import math
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from backend.client import BackendRefused
from backend.config import BackendConfig
from backend.gpu.history import History
from backend.pictures import THEMES, DrawFailed, draw_gpu, panels
from backend.protocol import GpuMinute
from tests.backend.conftest import running

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


def hours(cards: int = 1) -> list[GpuMinute]:
    found = []
    for n in range(180):
        at = START + timedelta(minutes=n)
        wave = math.sin(n / 20)
        for card in range(cards):
            found.append(
                GpuMinute(
                    at=at,
                    gpu=card,
                    temperature_c=60 + 8 * wave + card,
                    memory_temperature_c=66 + 9 * wave,
                    power_w=140 + 60 * wave,
                )
            )
        if n % 3 and not 60 < n < 90:
            found.append(GpuMinute(at=at, decode_tok_s=48 + 4 * wave))
    return found


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_lines_stand_out_from_their_paper(theme: str) -> None:
    chosen = THEMES[theme]
    assert contrast(chosen.ink, chosen.paper) > 12
    assert min(contrast(line, chosen.paper) for line in chosen.lines) >= 4.5


async def test_a_picture_for_a_phone() -> None:
    picture = await draw_gpu(hours(), hours=3, theme="dark", zone="Europe/Paris")
    assert picture.startswith(b"\x89PNG")
    width, height = (int.from_bytes(picture[i : i + 4], "big") for i in (16, 20))
    assert (width, height) == (1080, 1350)


async def test_nothing_to_draw_is_one_sentence() -> None:
    with pytest.raises(DrawFailed, match=r"^There is nothing to draw yet"):
        await draw_gpu([], hours=3)


async def test_the_picture_comes_over_the_control_api(config: BackendConfig) -> None:
    history = History(config.state_dir / "history.db")
    async with running(config) as it:
        with pytest.raises(BackendRefused, match=r"^There is nothing to draw yet"):
            await it.client.gpu_picture()
        now = datetime.now(UTC)
        history.write(
            [GpuMinute(at=now - timedelta(minutes=n), gpu=0, power_w=100 + n) for n in range(30)]
        )
        picture = await it.client.gpu_picture(1, theme="dark", zone="Europe/Paris")
        found = await it.client.gpu_history(60)
    assert picture.startswith(b"\x89PNG")
    # A minute of this very machine may have ended meanwhile.
    powers = [minute.power_w for minute in found if minute.power_w is not None]
    assert powers == [129.0 - n for n in range(30)]


def test_what_is_drawn() -> None:
    zone = ZoneInfo("UTC")
    one = [
        (panel.title, [curve.label for curve in panel.curves]) for panel in panels(hours(), zone)
    ]
    assert one == [
        ("Temperature, °C", ["core", "memory"]),
        ("Power, W", ["power"]),
        ("Speed, tokens/s", ["written"]),
    ]
    two = panels(hours(2), zone)
    assert [curve.label for curve in two[1].curves] == ["GPU 0", "GPU 1"]
    speed_only = [minute for minute in hours() if minute.gpu is None]
    assert [panel.title for panel in panels(speed_only, zone)] == ["Speed, tokens/s"]
