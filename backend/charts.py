"""Line charts and bar charts as SVG, in portrait format and large enough to be read on a phone.

Lengths are in the drawing's own units; a phone 390 points wide shows 2.8 of them to a point.
Elements have classes, which get their colours from a theme or from the page's style sheet.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 1080, 1350  # at most
PANEL_HEIGHT = 500
LEFT, RIGHT, TOP = 108, 1040, 30  # of the plot area; the scale is left of it
TITLE, TEXT, LINE = 40, 32, 46  # font sizes, and the height of a line of text
# A curve is interrupted where nothing was measured for longer than this, or than
# one GAPS-th of the time span that is drawn.
GAP = timedelta(minutes=5)
GAPS = 200
DASHES = ("", "18 9", "18 8 4 8", "4 8")  # curves can be told apart without colour
TICK_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080)
MOST_TICKS = 6
BAR, BAR_GAP, BAR_WIDTH = 48, 34, 620
NAME_CHARACTERS = 52


@dataclass(frozen=True, slots=True)
class Theme:
    paper: str
    ink: str
    faint: str
    lines: tuple[str, ...]


# Lines have a contrast of at least 4.5 to the background.
THEMES = {
    "light": Theme("#ffffff", "#1b1f24", "#d5dae0", ("#c2410c", "#1d4ed8", "#15803d", "#86198f")),
    "dark": Theme("#17212b", "#f1f5f9", "#3b4754", ("#fb923c", "#60a5fa", "#4ade80", "#e879f9")),
}


TimeSpan = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Curve:
    label: str
    times: list[datetime]
    values: list[float]


@dataclass(frozen=True, slots=True)
class Panel:
    """One line chart. `from_zero`: its scale begins at 0. Values are written with `digits` decimals."""

    title: str
    curves: list[Curve]
    from_zero: bool = True
    digits: int = 0

    def legend(self, curve: Curve) -> str:
        return f"{curve.label}: {curve.values[-1]:,.{self.digits}f}".removeprefix(": ")

    def in_words(self) -> str:
        """A text alternative for screen readers."""
        curves = (
            f"{self.legend(curve)} (from {min(curve.values):,.{self.digits}f}"
            f" to {max(curve.values):,.{self.digits}f})"
            for curve in self.curves
        )
        return f"{self.title}; {', '.join(curves)}"


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a bar chart. `doubt` says why the value may be wrong; such a bar is hatched."""

    name: str
    value: float
    under: str = ""
    doubt: str = ""


def line_charts(
    panels: Sequence[Panel],
    since: datetime,
    until: datetime,
    theme: Theme | None,
    marked: Sequence[TimeSpan] = (),
) -> str:
    """Panels below each other, over the same hours, with `marked` time spans in each.

    Times are written in the zone of `until`.
    """
    height = min(HEIGHT, TOP + LINE + PANEL_HEIGHT * len(panels))
    each = (height - TOP - LINE) / len(panels)
    parts = [
        part
        for number, panel in enumerate(panels)
        for part in line_chart(panel, TOP + number * each, each, since, until, marked)
    ]
    step, at = time_ticks(since, until)
    form = "%H:%M" if step < 1440 else "%d %b"
    parts += [
        text(x, height - 18, moment.strftime(form), anchor="middle")
        for moment in at
        if LEFT <= (x := x_position(moment, since, until)) <= RIGHT - 20
    ]
    return document(parts, height, theme, ". ".join(panel.in_words() for panel in panels))


def line_chart(
    panel: Panel,
    top: float,
    height: float,
    since: datetime,
    until: datetime,
    marked: Sequence[TimeSpan],
) -> Iterable[str]:
    yield text(LEFT, top + TITLE, panel.title, size=TITLE, bold=True)
    rows = (len(panel.curves) + 1) // 2
    above, below = top + TITLE + 26 + rows * LINE, top + height - 26
    low, high, ticks = scale([v for c in panel.curves for v in c.values], panel.from_zero)

    def y(value: float) -> float:
        return below - (value - low) / (high - low) * (below - above)

    for start, end in marked:
        left, right = (min(max(LEFT, x_position(at, since, until)), RIGHT) for at in (start, end))
        place = f'x="{left:.1f}" y="{above:.1f}" width="{max(2.0, right - left):.1f}"'
        yield f'<rect class="marked" {place} height="{below - above:.1f}"/>'
    for tick in ticks:
        yield line(LEFT, y(tick), RIGHT, y(tick))
        yield text(LEFT - 14, y(tick) + TEXT * 0.36, f"{tick:,g}", anchor="end")
    for moment in time_ticks(since, until)[1]:
        x = x_position(moment, since, until)
        yield line(x, above, x, below)
    for number, curve in enumerate(panel.curves):
        style = f'class="line{number % len(DASHES)}" fill="none" stroke-width="5"'
        if dash := DASHES[number % len(DASHES)]:
            style += f' stroke-dasharray="{dash}"'
        style += ' stroke-linejoin="round"'
        x, row = LEFT + number % 2 * (RIGHT - LEFT) / 2, top + TITLE + (number // 2 + 1) * LINE
        yield f'<path d="M{x} {row - 10}h64" {style}/>'
        yield text(x + 80, row, panel.legend(curve))
        for piece in pieces(curve, max(GAP, (until - since) / GAPS)):
            points = [f"{x_position(at, since, until):.1f} {y(value):.1f}" for at, value in piece]
            dot = "h.1" if len(points) == 1 else ""  # a line without length is not drawn
            yield f'<path d="M{" ".join(points)}{dot}" {style} stroke-linecap="round"/>'


def pieces(curve: Curve, gap: timedelta = GAP) -> list[list[tuple[datetime, float]]]:
    """The curve's points, split where nothing was measured for longer than `gap`."""
    found: list[list[tuple[datetime, float]]] = []
    for point in zip(curve.times, curve.values, strict=True):
        if not found or point[0] - found[-1][-1][0] > gap:
            found.append([])
        found[-1].append(point)
    return found


def x_position(moment: datetime, since: datetime, until: datetime) -> float:
    return LEFT + (moment - since) / (until - since) * (RIGHT - LEFT)


def scale(values: Sequence[float], from_zero: bool) -> tuple[float, float, list[float]]:
    """The scale's lower and upper end, and three to seven round numbers between them."""
    low, high = min(values), max(values)
    low = min(0.0, low) if from_zero else low
    spare = (high - low) * 0.08 or max(1.0, abs(high) * 0.1)
    low, high = (low if from_zero else low - spare), high + spare
    power = 10.0 ** floor(log10((high - low) / 3))
    step = max(m * power for m in (1, 2, 5) if m * power <= (high - low) / 3)
    return low, high, [n * step for n in range(ceil(low / step), floor(high / step) + 1)]


def time_ticks(since: datetime, until: datetime) -> tuple[int, list[datetime]]:
    """The minutes between two ticks, and the ticks, at round times in the zone of `until`."""
    minutes = (until - since) / timedelta(minutes=1)
    step = next((m for m in TICK_MINUTES if minutes / m <= MOST_TICKS), TICK_MINUTES[-1])
    first = since.astimezone(until.tzinfo).replace(second=0, microsecond=0)
    first += timedelta(minutes=-(first.hour * 60 + first.minute) % min(step, 1440))
    count = floor((until - first) / timedelta(minutes=step)) + 1
    marks = [first + n * timedelta(minutes=step) for n in range(count)]
    return step, [mark for mark in marks if mark >= since]


def bar_charts(charts: Sequence[tuple[str, Sequence[Bar]]], theme: Theme) -> str:
    """Draw charts below each other, each with a title and a bar for each value."""
    parts, at = [], float(TOP)
    pattern = '<path d="M-4 4 4-4M0 16 16 0M12 20 20 12" class="hatch" stroke-width="5"/>'
    parts.append(
        f'<pattern id="hatch" width="16" height="16" patternUnits="userSpaceOnUse">{pattern}</pattern>'
    )
    left = 40
    for title, bars in charts:
        at += TITLE
        parts.append(text(left, at, title, size=TITLE, bold=True))
        most = max(bar.value for bar in bars)
        for bar in bars:
            at += LINE + 6
            parts.append(text(left, at, shortened(bar.name)))
            if bar.under:
                at += LINE - 6
                parts.append(text(left, at, shortened(bar.under), size=TEXT - 4))
            width = max(2.0, bar.value / most * BAR_WIDTH)
            place = f'x="{left}" y="{at + 14:.0f}" width="{width:.1f}" height="{BAR}" rx="6"'
            parts.append(f'<rect class="bar" {place}/>')
            if bar.doubt:
                parts.append(f'<rect {place} fill="url(#hatch)"/>')
            at += 14 + BAR
            value = f"{bar.value:,.0f}" if bar.value >= 100 else f"{bar.value:.1f}"
            said = f"{value}, {bar.doubt}" if bar.doubt else value
            parts.append(text(left + width + 16, at - 13, said, bold=True))
        at += BAR_GAP + 20
    return document(parts, ceil(at), theme, "; ".join(title for title, _ in charts))


def shortened(name: str) -> str:
    return name if len(name) <= NAME_CHARACTERS else f"{name[: NAME_CHARACTERS - 1]}…"


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = TEXT,
    bold: bool = False,
    anchor: str = "start",
) -> str:
    weight = ' font-weight="700"' if bold else ""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{weight}'
    return f'<text class="ink" {place}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="faint" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke-width="2"/>'


def document(parts: Iterable[str], height: int, theme: Theme | None, words: str) -> str:
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    label = f'role="img" aria-label="{escape(words)}"'
    ground = f'<rect class="paper" width="{WIDTH}" height="{height}"/>' if theme else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {label} font-family="sans-serif">'
        f"{style(theme) if theme else ''}{ground}{''.join(parts)}</svg>"
    )


def style(theme: Theme) -> str:
    lines = "".join(f".line{n}{{stroke:{colour}}}" for n, colour in enumerate(theme.lines))
    return (
        f"<style>.paper{{fill:{theme.paper}}}.ink{{fill:{theme.ink}}}.faint{{stroke:{theme.faint}}}"
        f".marked{{fill:{theme.lines[0]};opacity:.22}}.bar{{fill:{theme.lines[1]}}}"
        f".hatch{{stroke:{theme.paper}}}{lines}</style>"
    )
