"""The picture of the last hours, drawn in a process of its own.

    python -m backend.gpu.plot --hours 3 [--theme dark] [--zone Europe/Paris] < minutes.jsonl > picture.png

Standard input holds one `GpuMinute` a line as `GET /v1/gpu/history` gives them.
`draw` runs that process: matplotlib would cost the backend or the bot 60 MB.
"""

import argparse
import asyncio
import io
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from backend.protocol import GpuMinute

DRAW_SECONDS = 60.0
PHONE = (7.2, 9.0)  # inches at 150 dots: 1080 x 1350, upright as a phone is
GAP = timedelta(minutes=5)  # a longer one is no line


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


@dataclass(frozen=True, slots=True)
class Curve:
    label: str
    times: list[datetime]
    values: list[float]


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    curves: list[Curve]


class DrawFailed(Exception):
    """No picture came; `str` is one plain sentence."""


async def draw(
    minutes: Sequence[GpuMinute], *, hours: float, theme: str = "light", zone: str = "UTC"
) -> bytes:
    """A PNG of the last `hours`; DrawFailed when there is nothing to draw or the process failed."""
    lines = "\n".join(minute.model_dump_json() for minute in minutes).encode()
    options = ("--hours", str(hours), "--theme", theme, "--zone", zone)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "backend.gpu.plot", *options,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(DRAW_SECONDS):
            picture, said = await process.communicate(lines)
    except TimeoutError:
        raise DrawFailed("The picture took too long to draw.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise DrawFailed(
            said.decode("utf-8", "replace").strip().rpartition("\n")[2] or "The picture failed."
        )
    return picture


def panels(minutes: Iterable[GpuMinute], zone: ZoneInfo) -> list[Panel]:
    """What is drawn: temperature, power and speed, each card by itself; nothing that has no values."""
    kept = list(minutes)
    cards = sorted({minute.gpu for minute in kept if minute.gpu is not None})
    several = len(cards) > 1

    def curve(label: str, field: str, gpu: int | None) -> Curve:
        rows = [m for m in kept if m.gpu == gpu and getattr(m, field) is not None]
        name = f"GPU {gpu} {label}".strip() if several and gpu is not None else label
        return Curve(name, [m.at.astimezone(zone) for m in rows], [getattr(m, field) for m in rows])

    heat = [
        c
        for g in cards
        for c in (curve("core", "temperature_c", g), curve("memory", "memory_temperature_c", g))
    ]
    power = [curve("" if several else "power", "power_w", gpu) for gpu in cards]
    found = [
        Panel("Temperature, °C", heat),
        Panel("Power, W", power),
        Panel("Speed, tokens/s", [curve("written", "decode_tok_s", None)]),
    ]
    full = [Panel(panel.title, [c for c in panel.curves if c.values]) for panel in found]
    return [panel for panel in full if panel.curves]


def render(found: Sequence[Panel], *, since: datetime, until: datetime, theme: Theme) -> bytes:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"font.size": 15, "font.family": "DejaVu Sans", "text.color": theme.ink})
    figure, axes = plt.subplots(len(found), 1, sharex=True, figsize=PHONE, dpi=150, squeeze=False)
    figure.set_facecolor(theme.paper)
    for axis, panel in zip(axes[:, 0], found, strict=True):
        _panel(axis, panel, theme)
        axis.set_xlim(since, until)
    _hours(axes[-1, 0], until)
    figure.tight_layout(h_pad=1.2)
    out = io.BytesIO()
    figure.savefig(out, format="png", facecolor=theme.paper)
    return out.getvalue()


def _panel(axis: Any, panel: Panel, theme: Theme) -> None:
    axis.set_facecolor(theme.paper)
    axis.set_title(panel.title, loc="left", fontsize=17, fontweight="bold", color=theme.ink)
    for number, curve in enumerate(panel.curves):
        colour = theme.lines[number % len(theme.lines)]
        style = ("-", "--", "-.", ":")[number % 4]  # readable without colour, too
        label = f"{curve.label}: {curve.values[-1]:.0f}"
        times, values = _with_gaps(curve)
        axis.plot(times, values, style, color=colour, linewidth=2.5, label=label)
    axis.grid(color=theme.faint, linewidth=0.8)
    axis.tick_params(colors=theme.ink, labelsize=14)
    axis.margins(y=0.08)
    _room_for_legend(axis, rows=(len(panel.curves) + 1) // 2, from_zero="°C" not in panel.title)
    for side in axis.spines.values():
        side.set_color(theme.faint)
    axis.legend(loc="upper left", frameon=False, labelcolor=theme.ink, fontsize=14, ncols=2)


def _room_for_legend(axis: Any, rows: int, from_zero: bool) -> None:
    low, high = axis.get_ylim()
    low = 0.0 if from_zero else low
    axis.set_ylim(low, high + 0.18 * rows * (high - low))


def _with_gaps(curve: Curve) -> tuple[list[datetime], list[float]]:
    times, values = list[datetime](), list[float]()
    for at, value in zip(curve.times, curve.values, strict=True):
        if times and at - times[-1] > GAP:
            times.append(times[-1] + GAP / 2)
            values.append(float("nan"))
        times.append(at)
        values.append(value)
    return times, values


def _hours(axis: Any, until: datetime) -> None:
    import matplotlib.dates

    dates: Any = matplotlib.dates

    zone = until.tzinfo
    locator = dates.AutoDateLocator(tz=zone, minticks=3, maxticks=6)
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(dates.DateFormatter("%H:%M", tz=zone))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=3)
    parser.add_argument("--theme", choices=sorted(THEMES), default="light")
    parser.add_argument("--zone", type=ZoneInfo, default=ZoneInfo("UTC"))
    chosen = parser.parse_args()
    minutes = [GpuMinute.model_validate_json(line) for line in sys.stdin if line.strip()]
    found = panels(minutes, chosen.zone)
    if not found:
        sys.exit("There is nothing to draw yet: no GPU and no answers in that time.")
    until = max(
        datetime.now(UTC) if not minutes else minutes[-1].at, *(m.at for m in minutes)
    ).astimezone(chosen.zone)
    since = until - timedelta(hours=chosen.hours)
    sys.stdout.buffer.write(render(found, since=since, until=until, theme=THEMES[chosen.theme]))


if __name__ == "__main__":
    main()
