"""What systemd is sent."""

import asyncio
import socket

import pytest

from backend.config import BackendConfig
from fakes.patience import SECONDS
from tests.backend.conftest import running


async def test_systemd_is_told(config: BackendConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        path = str(config.state_dir / "notify")
        listener.bind(path)
        listener.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        loop, sent = asyncio.get_running_loop(), list[str]()
        async with running(config), asyncio.timeout(SECONDS):
            while not {"READY=1", "WATCHDOG=1", "STATUS=ready"} <= set(sent):
                sent.append((await loop.sock_recv(listener, 4096)).decode())
    assert "STATUS=starting" in sent
