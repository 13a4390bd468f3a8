"""Whether the mounts inside of a repository are those of its own paths, before a command starts.

bubblewrap resolves paths in a tree that another call may be changing: a directory
that becomes a link in that moment would show, or close, another place.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.errors import ToolError
from agent.sandbox.layout import REPOS

_SECONDS = 10.0  # bubblewrap takes milliseconds
_PAUSE = 0.002


@dataclass(frozen=True, slots=True)
class Mount:
    """`device` and `root` say what is there; a line of /proc/PID/mountinfo."""

    device: str
    root: str
    options: tuple[str, ...]


async def verified(pid: int, ended: "asyncio.Future[str]", points: Sequence[str]) -> None:
    """Wait until all is mounted (or the call `ended`); ToolError where one of `points` is astray."""
    try:
        async with asyncio.timeout(_SECONDS):
            while not ended.done():
                mounts = mounted(pid)
                if REPOS in mounts and "ro" in mounts[REPOS].options:
                    return _compare(mounts, points)
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        raise ToolError("The sandbox was not ready in time, so nothing was run.") from None


def mounted(pid: int) -> dict[str, Mount]:
    """By mount point, the topmost; empty when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return {}
    lines = (line.split(" ") for line in text.splitlines())
    return {_plain(m[4]): Mount(m[2], _plain(m[3]), tuple(m[5].split(","))) for m in lines}


def _compare(mounts: dict[str, Mount], points: Sequence[str]) -> None:
    for point in points:
        name, _, path = point.removeprefix(f"{REPOS}/").partition("/")
        top, inner = mounts.get(f"{REPOS}/{name}"), mounts.get(point)
        if (
            not top
            or not inner
            or (inner.device, inner.root)
            != (
                top.device,
                f"{top.root.rstrip('/')}/{path}",
            )
        ):
            raise ToolError(f"{point} was changed in this moment, so nothing was run. Try again.")


def _plain(path: str) -> str:
    """Blanks and the like are written in octal."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), path)
