"""Notifications to systemd (sd_notify); a no-op without NOTIFY_SOCKET."""

import asyncio
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the bot imports only notify() and must not load the backend
    from backend.state import StatusBoard


def notify(*lines: str) -> None:
    """Send READY=1, STATUS=..., WATCHDOG=1 and the like."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with (
        suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender,
    ):
        sender.sendto("\n".join(lines).encode(), address)


async def report_to_systemd(board: "StatusBoard") -> None:
    """Send READY at once, STATUS at each change, and WATCHDOG as long as the event loop runs."""
    notify("READY=1")
    async with asyncio.TaskGroup() as group:
        group.create_task(feed_watchdog())
        async for status in board.changes():
            text: str = status.state
            if status.total and status.done is not None:
                text += f" {status.done:,} of {status.total:,}"
            notify(f"STATUS={text}: {status.reason}" if status.reason else f"STATUS={text}")


async def feed_watchdog() -> None:
    """Notify the watchdog at half the interval that systemd allows; return if it has none."""
    allowed = os.environ.get("WATCHDOG_USEC", "")
    while allowed.isdigit() and int(allowed):
        notify("WATCHDOG=1")
        await asyncio.sleep(int(allowed) / 2e6)
