"""The picture of the last hours."""

import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import pytest

from backend.charts import scale
from backend.client import BackendRefused
from backend.config import BackendConfig
from backend.gpu.history import History
from backend.pictures import (
    DrawFailed,
    bench_svg,
    find_font,
    gpu_drawings,
    gpu_svg,
    panels,
    rasterize,
    slowed,
)
from backend.protocol import GpuMinute
from fakes.words import saying
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


async def test_a_picture_for_a_phone() -> None:
    picture = await rasterize(gpu_svg(hours(), hours=3, theme="dark", zone="Europe/Paris"))
    assert picture.startswith(b"\x89PNG")
    width, height = (int.from_bytes(picture[i : i + 4], "big") for i in (16, 20))
    assert (width, height) == (1080, 1350)


def test_nothing_to_draw_is_one_sentence() -> None:
    with pytest.raises(DrawFailed, match=r"^There is nothing to draw yet"):
        gpu_svg([], hours=3)


async def test_the_picture_comes_over_the_control_api(config: BackendConfig) -> None:
    history = History(config.state_dir / "history.db")
    async with running(config) as it:
        with pytest.raises(BackendRefused, match=r"^There is nothing to draw yet"):
            await it.client.gpu_picture()
        now = datetime.now(UTC)
        history.write(
            [GpuMinute(at=now - timedelta(minutes=n), gpu=0, power_w=100 + n) for n in range(30)]
        )
        picture = await it.client.gpu_picture(
            1, theme="dark", zone="Europe/Paris", words={"power": "a & b"}
        )
        found = await it.client.gpu_history(60)
        drawn = await it.client.gpu_drawings(60, 2, zone="Asia/Kathmandu")
    assert picture.startswith(b"\x89PNG")
    # A minute of this very machine may have ended meanwhile.
    powers = [minute.power_w for minute in found if minute.power_w is not None]
    assert powers == [129.0 - n for n in range(30)]
    assert "Power, W" in words(drawn[0])


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


def words(svg: str) -> list[str]:
    return [e.text for e in ElementTree.fromstring(svg).iter() if e.text and e.tag.endswith("text")]


def test_what_stands_in_it() -> None:
    found = words(gpu_svg(hours(), hours=3, zone="Europe/Paris"))
    assert {"Temperature, °C", "core: 64", "memory: 70", "power: 167", "written: 50"} <= set(found)
    assert found[-6:] == ["13:00", "13:30", "14:00", "14:30", "15:00", "15:30"], "the zone's hours"
    german = {"Power, W": "Leistung, W", "core": "Kern"}
    found = words(gpu_svg(hours(), hours=3, words=german))
    assert {"Leistung, W", "Kern: 64", "memory: 70"} <= set(found)
    new = [GpuMinute(at=START + timedelta(minutes=n), decode_tok_s=40.0) for n in range(4)]
    assert words(gpu_svg(new, hours=3))[-3:] == ["12:00", "12:01", "12:02"]
    week = [GpuMinute(at=START + timedelta(hours=n), gpu=0, power_w=n) for n in range(168)]
    assert words(gpu_svg(week, hours=168))[-3:] == ["04 Jan", "06 Jan", "08 Jan"]


def test_the_page_shows_the_same_drawing_in_its_own_colours() -> None:
    chat, *_ = gpu_drawings([m for m in hours() if m.gpu is None], hours=3, zone="Europe/Paris")
    picture = gpu_svg([m for m in hours() if m.gpu is None], hours=3, zone="Europe/Paris")
    coloured = re.sub(r"<style>.*?</style><rect class=\"paper\"[^>]*>", "", picture)
    assert coloured == chat
    assert not re.search(r"#[0-9a-f]{6}", chat)


def test_a_page_has_room_for_clock_and_memory() -> None:
    at = [START + timedelta(minutes=n) for n in range(9)]
    cards = [
        GpuMinute(at=each, gpu=gpu, sm_clock_mhz=1200 + gpu, memory_used_mib=14 * 1024 + 512)
        for gpu in range(2)
        for each in at
    ]
    clock, memory = gpu_drawings(cards, hours=1)
    assert {"Clock, MHz", "GPU 0: 1,200", "GPU 1: 1,201"} <= set(words(clock))
    assert {"Memory, GiB", "GPU 0: 14.5"} <= set(words(memory))
    told = ElementTree.fromstring(memory).attrib["aria-label"]
    assert told == saying("Memory, GiB", "GPU 0: 14.5", "from 14.5 to 14.5")
    with pytest.raises(DrawFailed, match=r"^There is nothing to draw yet"):
        gpu_drawings([], hours=1)


def test_hours_in_which_a_card_was_slowed_are_marked() -> None:
    minutes = [
        GpuMinute(at=START + timedelta(minutes=n), gpu=0, power_w=200, throttled=float(4 < n < 8))
        for n in range(20)
    ]
    assert slowed(minutes) == [(START + timedelta(minutes=5), START + timedelta(minutes=8))]
    for drawn in (gpu_svg(minutes, hours=1), *gpu_drawings(minutes, hours=1)):
        marked = [e for e in ElementTree.fromstring(drawn).iter() if e.get("class") == "marked"]
        assert len(marked) == 1


@pytest.mark.parametrize(
    ("values", "from_zero", "ticks"),
    [
        ([52.0, 75.0], False, [55, 60, 65, 70, 75]),
        ([80.0, 200.0], True, [0, 50, 100, 150, 200]),
        ([0.0, 0.0], True, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([60.0], False, [54, 56, 58, 60, 62, 64, 66]),
        ([1234.0, 1235.0], True, [0, 200, 400, 600, 800, 1000, 1200]),
    ],
    ids=["heat", "power", "nothing", "one", "large"],
)
def test_marks_are_round_numbers(values: list[float], from_zero: bool, ticks: list[float]) -> None:
    low, high, found = scale(values, from_zero)
    assert found == pytest.approx(ticks)
    assert low <= min(values) and high > max(values)


def bench_row(name: str, throttle: tuple[str, ...] = ()) -> dict[str, object]:
    return {
        "name": name,
        "setting": {"server": "/opt/llama-server"},
        "conditions": {"throttle": throttle},
        "prefill_tok_s": 1234.5,
        "decode_tok_s": 48.53,
    }


def test_a_bar_for_each_speed_and_a_doubt_said() -> None:
    svg = bench_svg([bench_row("<a> & b"), bench_row("c", ("thermal",))])
    assert words(svg) == [
        "Prefill, tokens/s", "<a> & b", "1,234", "c", "1,234, throttled",
        "Decode, tokens/s", "<a> & b", "48.5", "c", "48.5, throttled",
    ]  # fmt: skip
    assert svg.count("url(#hatch)") == 2


def test_a_machine_without_fonts_is_told_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(
        DrawFailed, match=r"^There is no font .*: apt-get install fonts-dejavu-core$"
    ):
        find_font([tmp_path])
    for name in ("LiberationSans-Bold.ttf", "LiberationSans-Regular.ttf", "Odd.ttf"):
        (tmp_path / "truetype").mkdir(exist_ok=True)
        (tmp_path / "truetype" / name).touch()
    family, files = find_font([tmp_path / "absent", tmp_path])
    assert (family, [file.name for file in files]) == (
        "Liberation Sans",
        ["LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf"],
    )
