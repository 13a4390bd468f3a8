"""Pictures, drawn by matplotlib in a process of its own: in this one it would stay with 60 MB.

    python -m backend.pictures gpu [--hours 3] [--theme dark] [--zone Europe/Paris] < minutes.jsonl > picture.png
    python -m backend.pictures bench < rows.json > picture.png

`gpu` is the picture of the last hours, from one `GpuMinute` a line as
`GET /v1/gpu/history` gives them; `bench` that of the rows of `voltaire bench`.
"""

import argparse
import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from backend.programs import output_of
from backend.protocol import GpuMinute

DRAW_SECONDS = 60.0
PHONE = (7.2, 9.0)  # inches; 1080 x 1350 dots, upright as a phone is
GAP = timedelta(minutes=5)  # a longer one is no line
SPEEDS = (("prefill_tok_s", "Prefill, tokens/s"), ("decode_tok_s", "Decode, tokens/s"))
Rows = Sequence[Mapping[str, Any]]  # backend.measure.bench.BenchRow as JSON


class DrawFailed(Exception):
    """There is no picture; `str` is one plain sentence."""


@dataclass(frozen=True, slots=True)
class Theme:
    paper: str
    ink: str
    faint: str
    lines: tuple[str, ...]


# Lines keep a contrast of at least 4.5 to their paper.
THEMES = {
    "light": Theme("#ffffff", "#1b1f24", "#d5dae0", ("#c2410c", "#1d4ed8", "#15803d", "#86198f")),
    "dark": Theme("#17212b", "#f1f5f9", "#3b4754", ("#fb923c", "#60a5fa", "#4ade80", "#e879f9")),
}


async def draw_gpu(
    minutes: Sequence[GpuMinute], *, hours: float, theme: str = "light", zone: str = "UTC"
) -> bytes:
    """A PNG of the last `hours`; DrawFailed when there is nothing to draw or the process failed."""
    lines = "\n".join(minute.model_dump_json() for minute in minutes).encode()
    return await draw("gpu", "--hours", str(hours), "--theme", theme, "--zone", zone, stdin=lines)


async def draw_bench(rows: Rows) -> bytes:
    """A PNG; DrawFailed when no row has a speed, or the process failed."""
    return await draw("bench", stdin=json.dumps(list(rows)).encode())


async def draw(*arguments: str, stdin: bytes) -> bytes:
    """What this module prints as a program; DrawFailed with the last line of its errors."""
    command = (sys.executable, "-m", "backend.pictures", *arguments)
    try:
        output = await output_of(command, stdin=stdin, seconds=DRAW_SECONDS)
    except TimeoutError:
        raise DrawFailed("The picture took too long to draw.") from None
    if output.code:
        errors = output.stderr.decode("utf-8", "replace").strip()
        raise DrawFailed(errors.rpartition("\n")[2] or "The picture failed.")
    return output.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("gpu", "bench"))
    parser.add_argument("--hours", type=float, default=3)
    parser.add_argument("--theme", choices=sorted(THEMES), default="light")
    parser.add_argument("--zone", type=ZoneInfo, default=ZoneInfo("UTC"))
    chosen = parser.parse_args()
    try:
        if chosen.what == "bench":
            picture = render_bench(json.load(sys.stdin))
        else:
            minutes = [GpuMinute.model_validate_json(line) for line in sys.stdin if line.strip()]
            picture = render_gpu(minutes, chosen.hours, chosen.zone, THEMES[chosen.theme])
    except DrawFailed as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(picture)


def new_figure(count: int, size: tuple[float, float], **options: Any) -> tuple[Any, list[Any]]:
    """A matplotlib figure of `size` inches at 150 dots, and its panels from top to bottom."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(count, 1, figsize=size, dpi=150, squeeze=False, **options)
    return figure, list(axes[:, 0])


def png(figure: Any) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", facecolor=figure.get_facecolor())
    return out.getvalue()


# -- the last hours of the GPUs -------------------------------------------------


@dataclass(frozen=True, slots=True)
class Curve:
    label: str
    times: list[datetime]
    values: list[float]


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    curves: list[Curve]


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
    found = [
        Panel("Temperature, °C", [curve(label, name, g) for g in gpus for label, name in sensors]),
        Panel("Power, W", [curve("" if several else "power", "power_w", gpu) for gpu in gpus]),
        Panel("Speed, tokens/s", [curve("written", "decode_tok_s", None)]),
    ]
    full = [Panel(panel.title, [c for c in panel.curves if c.values]) for panel in found]
    return [panel for panel in full if panel.curves]


def render_gpu(minutes: Sequence[GpuMinute], hours: float, zone: ZoneInfo, theme: Theme) -> bytes:
    import matplotlib.dates
    from matplotlib import pyplot as plt

    dates: Any = matplotlib.dates  # its classes have no types
    if not (found := panels(minutes, zone)):
        raise DrawFailed("There is nothing to draw yet: no GPU and no answers in that time.")
    until = max(minute.at for minute in minutes).astimezone(zone)
    plt.rcParams.update({"font.size": 15, "font.family": "DejaVu Sans", "text.color": theme.ink})
    figure, axes = new_figure(len(found), PHONE, sharex=True)
    figure.set_facecolor(theme.paper)
    for axis, panel in zip(axes, found, strict=True):
        draw_panel(axis, panel, theme)
        axis.set_xlim(until - timedelta(hours=hours), until)
    axes[-1].xaxis.set_major_locator(dates.AutoDateLocator(tz=zone, minticks=3, maxticks=6))
    axes[-1].xaxis.set_major_formatter(dates.DateFormatter("%H:%M", tz=zone))
    figure.tight_layout(h_pad=1.2)
    return png(figure)


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


# -- the rows of a bench --------------------------------------------------------


def render_bench(rows: Rows) -> bytes:
    """Bars for each speed; a throttled row is hatched."""
    names = [row["name"] for row in rows]
    rows = sorted(rows, key=lambda row: names.index(row["name"]))  # what is compared, side by side
    several = len({row["setting"]["server"] for row in rows}) > 1
    shown = [(key, title, [row for row in rows if row.get(key)]) for key, title in SPEEDS]
    shown = [panel for panel in shown if panel[2]]
    if not shown:
        raise DrawFailed("There is nothing to draw: no row has a speed.")

    def label(row: Mapping[str, Any]) -> str:
        server = "/".join(Path(row["setting"]["server"]).parts[-2:])
        return f"{row['name']}\n{server}" if several else str(row["name"])

    figure, axes = new_figure(len(shown), (7.2, 4.5 * len(shown)))
    for axis, (key, title, found) in zip(axes, shown, strict=True):
        bars = axis.barh(range(len(found)), [row[key] for row in found], color=THEMES["light"].lines[1])  # fmt: skip
        for bar, row in zip(bars, found, strict=True):
            bar.set_hatch("//" if row["conditions"]["throttle"] else "")
        axis.bar_label(bars, fmt="{:,.0f}", padding=3)
        axis.set_yticks(range(len(found)), [label(row) for row in found])
        axis.set_title(title, loc="left", fontweight="bold")
        axis.invert_yaxis()
        axis.margins(x=0.15)
    figure.tight_layout()
    return png(figure)


if __name__ == "__main__":
    main()
