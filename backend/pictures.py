"""The pictures of the GPU's last hours and of a bench, as SVG (for the owner's page) or as PNG (for a chat).

The PNG is rendered in a separate process: resvg holds the GIL for the tenth of a second that it takes.
"""

import asyncio
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from backend.charts import THEMES, Bar, Curve, Panel, TimeSpan, bar_charts, line_charts
from backend.proc import output_of
from backend.protocol import GpuMinute

DRAW_SECONDS = 60.0
MINUTE = timedelta(minutes=1)
SHORTEST = timedelta(minutes=2)  # the least that a picture spans
NOTHING = "There is nothing to draw yet: no GPU and no answers in that time."
SPEEDS = (("prefill_tok_s", "Prefill, tokens/s"), ("decode_tok_s", "Decode, tokens/s"))
ENGLISH: Mapping[str, str] = {}
Rows = Sequence[Mapping[str, Any]]  # backend.measure.bench.BenchRow as JSON
# Font families and the file of their regular face, the preferred one first.
FONTS = {
    "DejaVu Sans": "DejaVuSans.ttf",
    "Noto Sans": "NotoSans-Regular.ttf",
    "Liberation Sans": "LiberationSans-Regular.ttf",
    "Roboto": "Roboto-Regular.ttf",
    "Open Sans": "OpenSans-Regular.ttf",
    "FreeSans": "FreeSans.ttf",
}
RASTERIZE = """
import sys, resvg_py
family, *files = sys.argv[1:]
sys.stdout.buffer.write(resvg_py.svg_to_bytes(
    sys.stdin.read(), skip_system_fonts=True, sans_serif_family=family, font_files=files))
"""


class DrawFailed(Exception):
    """There is no picture; `str` is one plain sentence."""


async def rasterize(svg: str) -> bytes:
    """A PNG of an SVG; DrawFailed when this machine has no known font, or the process fails."""
    family, files = await asyncio.to_thread(find_font, font_folders())
    command = (sys.executable, "-I", "-c", RASTERIZE, family, *map(str, files))
    try:
        output = await output_of(command, stdin=svg.encode(), seconds=DRAW_SECONDS)
    except TimeoutError:
        raise DrawFailed("The picture took too long to draw.") from None
    if output.code:
        errors = output.stderr.decode("utf-8", "replace").strip()
        raise DrawFailed(errors.rpartition("\n")[2] or "The picture failed.")
    return output.stdout


def font_folders() -> list[Path]:
    shared = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    own = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return [Path(place).expanduser() / "fonts" for place in (*shared.split(":"), own)]


def find_font(folders: Iterable[Path]) -> tuple[str, list[Path]]:
    """A family, and the files of its regular and bold faces; DrawFailed if none is known."""
    here = {path.name: path for folder in folders for path in folder.rglob("*.ttf")}
    for family, name in FONTS.items():
        if name in here:
            bold = f"{name.removesuffix('.ttf').removesuffix('-Regular')}-Bold.ttf"
            return family, [here[each] for each in (name, bold) if each in here]
    raise DrawFailed("There is no font to write with: apt-get install fonts-dejavu-core")


def gpu_svg(
    minutes: Sequence[GpuMinute],
    *,
    hours: float,
    theme: str = "light",
    zone: str = "UTC",
    words: Mapping[str, str] = ENGLISH,
) -> str:
    """The last `hours` of each GPU, or as many as are known; DrawFailed when there is nothing to draw.

    `words` maps the English labels to their translations.
    """
    if not (found := panels(minutes, ZoneInfo(zone), words)):
        raise DrawFailed(NOTHING)
    since, until = hours_of(minutes, hours, zone)
    return line_charts(found, since, until, THEMES[theme], slowed(minutes))


def gpu_drawings(minutes: Sequence[GpuMinute], *, hours: float, zone: str = "UTC") -> list[str]:
    """An SVG for each panel, clock and memory included, for a page whose style sheet has the colours."""
    if not (found := panels(minutes, ZoneInfo(zone), more=True)):
        raise DrawFailed(NOTHING)
    since, until = hours_of(minutes, hours, zone)
    return [line_charts([panel], since, until, None, slowed(minutes)) for panel in found]


def hours_of(minutes: Sequence[GpuMinute], hours: float, zone: str) -> TimeSpan:
    """The last `hours` up to the newest minute, or as many as are known."""
    times = [minute.at.astimezone(ZoneInfo(zone)) for minute in minutes]
    until = max(times)
    return max(until - timedelta(hours=hours), min(*times, until - SHORTEST)), until


def slowed(minutes: Iterable[GpuMinute]) -> list[TimeSpan]:
    """The time spans in which some GPU was throttled by heat or power."""
    found: list[TimeSpan] = []
    for at in sorted({minute.at for minute in minutes if minute.throttled}):
        if found and at - found[-1][1] <= MINUTE:
            found[-1] = (found[-1][0], at + MINUTE)
        else:
            found.append((at, at + MINUTE))
    return found


def panels(
    minutes: Iterable[GpuMinute],
    zone: ZoneInfo,
    words: Mapping[str, str] = ENGLISH,
    *,
    more: bool = False,
) -> list[Panel]:
    """The panels that have values, with a curve for each GPU; `more` adds clock and memory."""
    kept = list(minutes)
    gpus = sorted({minute.gpu for minute in kept if minute.gpu is not None})
    several = len(gpus) > 1

    def curve(label: str, field: str, gpu: int | None, unit: float = 1.0) -> Curve:
        rows = [m for m in kept if m.gpu == gpu and getattr(m, field) is not None]
        label = words.get(label, label)
        name = f"GPU {gpu} {label}".strip() if several and gpu is not None else label
        values = [getattr(m, field) / unit for m in rows]
        return Curve(name, [m.at.astimezone(zone) for m in rows], values)

    sensors = (("core", "temperature_c"), ("memory", "memory_temperature_c"))
    heat = [curve(label, name, gpu) for gpu in gpus for label, name in sensors]
    found = [
        Panel("Temperature, °C", heat, from_zero=False),
        Panel("Power, W", [curve("" if several else "power", "power_w", gpu) for gpu in gpus]),
        Panel("Speed, tokens/s", [curve("written", "decode_tok_s", None)]),
    ]
    if more:
        clocks = [curve("" if several else "clock", "sm_clock_mhz", gpu) for gpu in gpus]
        used = [curve("" if several else "in use", "memory_used_mib", gpu, 1024) for gpu in gpus]
        found += [Panel("Clock, MHz", clocks), Panel("Memory, GiB", used, digits=1)]
    full = [
        replace(
            panel,
            title=words.get(panel.title, panel.title),
            curves=[c for c in panel.curves if c.values],
        )
        for panel in found
    ]
    return [panel for panel in full if panel.curves]


def bench_svg(rows: Rows) -> str:
    """Bars for each speed, rows of the same name side by side; a throttled row is hatched.

    Raises DrawFailed when no row has a speed.
    """
    names = [row["name"] for row in rows]
    rows = sorted(rows, key=lambda row: names.index(row["name"]))
    several = len({row["setting"]["server"] for row in rows}) > 1

    def bars(key: str) -> Iterator[Bar]:
        for row in rows:
            if row.get(key):
                server = "/".join(Path(row["setting"]["server"]).parts[-2:]) if several else ""
                doubt = "throttled" if row["conditions"]["throttle"] else ""
                yield Bar(str(row["name"]), row[key], server, doubt)

    charts = [(title, found) for key, title in SPEEDS if (found := list(bars(key)))]
    if not charts:
        raise DrawFailed("There is nothing to draw: no row has a speed.")
    return bar_charts(charts, THEMES["light"])
