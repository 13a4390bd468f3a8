"""The rows of `voltaire bench` as a picture.

python -m backend.measure.bench_picture < rows.json > picture.png
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backend.pictures import THEMES, DrawFailed, draw_in_process, panels, png, write_png

SPEEDS = (("prefill_tok_s", "Prefill, tokens/s"), ("decode_tok_s", "Decode, tokens/s"))
Rows = Sequence[Mapping[str, Any]]  # bench.BenchRow as JSON


async def draw(rows: Rows) -> bytes:
    """A PNG; DrawFailed when there is nothing to draw."""
    return await draw_in_process(
        "backend.measure.bench_picture", stdin=json.dumps(list(rows)).encode()
    )


def render(rows: Rows) -> bytes:
    """Bars for each speed; a throttled row is hatched."""
    names = [row["name"] for row in rows]
    rows = sorted(rows, key=lambda row: names.index(row["name"]))  # what is compared, side by side
    shown = [(key, title, [row for row in rows if row.get(key)]) for key, title in SPEEDS]
    shown = [panel for panel in shown if panel[2]]
    if not shown:
        raise DrawFailed("There is nothing to draw: no row has a speed.")
    figure, axes = panels(len(shown), (7.2, 4.5 * len(shown)))
    for axis, (key, title, found) in zip(axes, shown, strict=True):
        places = range(len(found))
        bars = axis.barh(places, [row[key] for row in found], color=THEMES["light"].lines[1])
        for bar, row in zip(bars, found, strict=True):
            bar.set_hatch("//" if row["conditions"]["throttle"] else "")
        axis.bar_label(bars, fmt="{:,.0f}", padding=3)
        axis.set_yticks(places, [label(row, rows) for row in found])
        axis.set_title(title, loc="left", fontweight="bold")
        axis.invert_yaxis()
        axis.margins(x=0.15)
    figure.tight_layout()
    return png(figure)


def label(row: Mapping[str, Any], rows: Rows) -> str:
    """The row's name, and its server where there are several."""
    several = len({each["setting"]["server"] for each in rows}) > 1
    server = "/".join(Path(row["setting"]["server"]).parts[-2:])
    return f"{row['name']}\n{server}" if several else str(row["name"])


if __name__ == "__main__":
    write_png(lambda: render(json.load(sys.stdin)))
