"""Pictures, drawn by matplotlib in a process of its own: in this one it would stay with 60 MB."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from backend.programs import output_of

DRAW_SECONDS = 60.0


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


async def draw_in_process(module: str, *options: str, stdin: bytes) -> bytes:
    """The PNG that `python -m module` writes; DrawFailed with the last line of its errors."""
    try:
        output = await output_of(
            (sys.executable, "-m", module, *options), stdin=stdin, seconds=DRAW_SECONDS
        )
    except TimeoutError:
        raise DrawFailed("The picture took too long to draw.") from None
    if output.code:
        errors = output.stderr.decode("utf-8", "replace").strip()
        raise DrawFailed(errors.rpartition("\n")[2] or "The picture failed.")
    return output.stdout


def write_png(render: Callable[[], bytes]) -> None:
    """In that process: the picture to standard output, or the reason why there is none and exit code 1."""
    try:
        sys.stdout.buffer.write(render())
    except DrawFailed as error:
        sys.exit(str(error))


def panels(count: int, size: tuple[float, float], **options: Any) -> tuple[Any, list[Any]]:
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
