"""The rows of a bench as a picture, drawn in a process of its own (matplotlib takes 60 MB).

python -m backend.measure.bench_picture < rows.json > picture.png
"""

import asyncio
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backend.gpu.plot import DRAW_SECONDS, THEMES, DrawFailed

__all__ = ["DrawFailed", "draw"]
PANELS = (("prefill_tok_s", "Prefill, tokens/s"), ("decode_tok_s", "Decode, tokens/s"))


async def draw(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A PNG; DrawFailed when there is nothing to draw."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "backend.measure.bench_picture",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(DRAW_SECONDS):
            picture, said = await process.communicate(json.dumps(list(rows)).encode())
    except TimeoutError:
        raise DrawFailed("The picture took too long to draw.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise DrawFailed(said.decode("utf-8", "replace").strip().rpartition("\n")[2])
    return picture


def render(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Bars for each speed; a throttled row is hatched."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    theme = THEMES["light"]
    names = [row["name"] for row in rows]
    rows = sorted(rows, key=lambda row: names.index(row["name"]))  # what is compared, side by side
    panels = [(key, title, [row for row in rows if row.get(key)]) for key, title in PANELS]
    panels = [panel for panel in panels if panel[2]]
    if not panels:
        raise DrawFailed("There is nothing to draw: no row has a speed.")
    figure, axes = plt.subplots(len(panels), 1, figsize=(7.2, 4.5 * len(panels)), dpi=150, squeeze=False)  # fmt: skip
    for axis, (key, title, found) in zip(axes[:, 0], panels, strict=True):
        places = range(len(found))
        bars = axis.barh(places, [row[key] for row in found], color=theme.lines[1])
        for bar, row in zip(bars, found, strict=True):
            bar.set_hatch("//" if row["conditions"]["throttle"] else "")
        axis.bar_label(bars, fmt="{:,.0f}", padding=3)
        axis.set_yticks(places, [_label(row, rows) for row in found])
        axis.set_title(title, loc="left", fontweight="bold")
        axis.invert_yaxis()
        axis.margins(x=0.15)
    figure.tight_layout()
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


def _label(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """The row's name, and its server where there are several."""
    several = len({each["setting"]["server"] for each in rows}) > 1
    server = "/".join(Path(row["setting"]["server"]).parts[-2:])
    return f"{row['name']}\n{server}" if several else str(row["name"])


def main() -> None:
    try:
        sys.stdout.buffer.write(render(json.load(sys.stdin)))
    except DrawFailed as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
