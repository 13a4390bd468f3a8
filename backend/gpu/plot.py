"""The picture of the last hours: temperature, power and speed.

    python -m backend.gpu.plot --hours 3 [--theme dark] [--zone Europe/Paris] < minutes.jsonl > picture.png

Standard input holds one `GpuMinute` a line as `GET /v1/gpu/history` gives them.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from backend import pictures
from backend.pictures import THEMES, DrawFailed, Theme
from backend.protocol import GpuMinute

PHONE = (7.2, 9.0)  # inches; 1080 x 1350 dots, upright as a phone is
GAP = timedelta(minutes=5)  # a longer one is no line


@dataclass(frozen=True, slots=True)
class Curve:
    label: str
    times: list[datetime]
    values: list[float]


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    curves: list[Curve]


async def draw(
    minutes: Sequence[GpuMinute], *, hours: float, theme: str = "light", zone: str = "UTC"
) -> bytes:
    """A PNG of the last `hours`; DrawFailed when there is nothing to draw or the process failed."""
    lines = "\n".join(minute.model_dump_json() for minute in minutes).encode()
    options = ("--hours", str(hours), "--theme", theme, "--zone", zone)
    return await pictures.draw_in_process("backend.gpu.plot", *options, stdin=lines)


def panels(minutes: Iterable[GpuMinute], zone: ZoneInfo) -> list[Panel]:
    """What is drawn, each GPU by itself; nothing that has no values."""
    kept = list(minutes)
    gpus = sorted({minute.gpu for minute in kept if minute.gpu is not None})
    several = len(gpus) > 1

    def curve(label: str, field: str, gpu: int | None) -> Curve:
        rows = [m for m in kept if m.gpu == gpu and getattr(m, field) is not None]
        name = f"GPU {gpu} {label}".strip() if several and gpu is not None else label
        return Curve(name, [m.at.astimezone(zone) for m in rows], [getattr(m, field) for m in rows])

    sensors = (("core", "temperature_c"), ("memory", "memory_temperature_c"))
    heat = [curve(label, field, gpu) for gpu in gpus for label, field in sensors]
    power = [curve("" if several else "power", "power_w", gpu) for gpu in gpus]
    found = [
        Panel("Temperature, °C", heat),
        Panel("Power, W", power),
        Panel("Speed, tokens/s", [curve("written", "decode_tok_s", None)]),
    ]
    full = [Panel(panel.title, [c for c in panel.curves if c.values]) for panel in found]
    return [panel for panel in full if panel.curves]


def render(found: Sequence[Panel], *, since: datetime, until: datetime, theme: Theme) -> bytes:
    import matplotlib.dates
    from matplotlib import pyplot as plt

    dates: Any = matplotlib.dates  # its classes have no types
    plt.rcParams.update({"font.size": 15, "font.family": "DejaVu Sans", "text.color": theme.ink})
    figure, axes = pictures.panels(len(found), PHONE, sharex=True)
    figure.set_facecolor(theme.paper)
    for axis, panel in zip(axes, found, strict=True):
        draw_panel(axis, panel, theme)
        axis.set_xlim(since, until)
    ticks = dates.AutoDateLocator(tz=until.tzinfo, minticks=3, maxticks=6)
    axes[-1].xaxis.set_major_locator(ticks)
    axes[-1].xaxis.set_major_formatter(dates.DateFormatter("%H:%M", tz=until.tzinfo))
    figure.tight_layout(h_pad=1.2)
    return pictures.png(figure)


def draw_panel(axis: Any, panel: Panel, theme: Theme) -> None:
    axis.set_facecolor(theme.paper)
    axis.set_title(panel.title, loc="left", fontsize=17, fontweight="bold", color=theme.ink)
    for number, curve in enumerate(panel.curves):
        colour = theme.lines[number % len(theme.lines)]
        style = ("-", "--", "-.", ":")[number % 4]  # readable without colour, too
        label = f"{curve.label}: {curve.values[-1]:.0f}"
        times, values = with_gaps(curve)
        axis.plot(times, values, style, color=colour, linewidth=2.5, label=label)
    axis.grid(color=theme.faint, linewidth=0.8)
    axis.tick_params(colors=theme.ink, labelsize=14)
    axis.margins(y=0.08)
    low, high = axis.get_ylim()
    low = low if "°C" in panel.title else 0.0
    legend_rows = (len(panel.curves) + 1) // 2
    axis.set_ylim(low, high + 0.18 * legend_rows * (high - low))
    for side in axis.spines.values():
        side.set_color(theme.faint)
    axis.legend(loc="upper left", frameon=False, labelcolor=theme.ink, fontsize=14, ncols=2)


def with_gaps(curve: Curve) -> tuple[list[datetime], list[float]]:
    """The curve with a point without a value in each gap, where the line breaks."""
    times, values = list[datetime](), list[float]()
    for at, value in zip(curve.times, curve.values, strict=True):
        if times and at - times[-1] > GAP:
            times.append(times[-1] + GAP / 2)
            values.append(float("nan"))
        times.append(at)
        values.append(value)
    return times, values


def picture() -> bytes:
    """From the command line and standard input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=3)
    parser.add_argument("--theme", choices=sorted(THEMES), default="light")
    parser.add_argument("--zone", type=ZoneInfo, default=ZoneInfo("UTC"))
    chosen = parser.parse_args()
    minutes = [GpuMinute.model_validate_json(line) for line in sys.stdin if line.strip()]
    found = panels(minutes, chosen.zone)
    if not found:
        raise DrawFailed("There is nothing to draw yet: no GPU and no answers in that time.")
    until = max(minute.at for minute in minutes).astimezone(chosen.zone)
    since = until - timedelta(hours=chosen.hours)
    return render(found, since=since, until=until, theme=THEMES[chosen.theme])


if __name__ == "__main__":
    pictures.write_png(picture)
