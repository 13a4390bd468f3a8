"""Parses /proc/PID/mountinfo, and verifies by it that the mounts inside a repository show its own paths.

bubblewrap resolves paths in a tree that another call may be changing: if a directory became a link at
that moment, another place would be shown, or closed.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.errors import ToolError
from agent.sandbox.bubblewrap import REPOS

READY_SECONDS = 10.0  # bubblewrap takes milliseconds
POLL_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo; `device` and `root` identify what is mounted."""

    device: str
    root: str
    options: Sequence[str]
    filesystem: str


def mounts_of(pid: int | str) -> dict[str, Mount]:
    """The topmost mount at each mount point; none when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return {}
    found = {}
    for line in text.splitlines():
        fields, _, source = line.partition(" - ")
        _, _, device, root, point, options = fields.split(" ")[:6]
        filesystem = source.partition(" ")[0]
        found[unescape(point)] = Mount(device, unescape(root), options.split(","), filesystem)
    return found


def unescape(path: str) -> str:
    """Decode the octal escapes of blanks and the like."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), path)


async def verify_mounts(pid: int, ended: "asyncio.Future[str]", points: Sequence[str]) -> None:
    """Wait until everything is mounted or the call `ended`; ToolError where one of `points` shows another path."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            while not ended.done():
                mounts = mounts_of(pid)
                if REPOS in mounts and "ro" in mounts[REPOS].options:
                    break
                await asyncio.sleep(POLL_SECONDS)
            else:
                return
    except TimeoutError:
        raise ToolError("The sandbox was not ready in time, so nothing was run.") from None
    for point in points:
        name, _, path = point.removeprefix(f"{REPOS}/").partition("/")
        top, inner = mounts.get(f"{REPOS}/{name}"), mounts.get(point)
        expected = top and (top.device, f"{top.root.rstrip('/')}/{path}")
        if not inner or (inner.device, inner.root) != expected:
            raise ToolError(f"{point} was changed in this moment, so nothing was run. Try again.")
