"""systemd's notifications (sd_notify): nothing happens where there is no NOTIFY_SOCKET."""

import os
import socket
from contextlib import suppress


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


def watchdog_seconds() -> float | None:
    """Half of what systemd allows between two signs of life; None where it asks for none."""
    text = os.environ.get("WATCHDOG_USEC", "")
    return int(text) / 2e6 if text.isdigit() and int(text) else None
