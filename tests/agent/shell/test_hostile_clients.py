"""What sits in the sandbox may do with the socket what it likes."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.sandbox import bwrap_process
from agent.shell import broker
from agent.tools.bash import bash
from agent.tools.files import write_file
from fakes.patience import soon
from fakes.sandbox_box import Box
from fakes.words import saying

SOCKET = "/run/commands/socket"
CONNECT = f"""
import socket, sys
def connected():
    s = socket.socket(socket.AF_UNIX)
    s.connect("{SOCKET}")
    return s
def frame(kind, content):
    return kind + len(content).to_bytes(4, "big") + content
def rest(s):
    got = b""
    while piece := s.recv(65536):
        got += piece
    return got
"""


async def run(box: Box, program: str, **arguments: Any) -> str:
    await box.use(write_file, path="p.py", content=CONNECT + program)
    return await box.text(bash, command="python3 -I -S p.py", **arguments)


async def test_a_thousand_calls_at_once(box: Box) -> None:
    program = """
clients = [connected() for _ in range(1000)]
for s in clients:
    s.sendall(frame(b"C", b"alone\\0/"))
print(len({rest(s) for s in clients}), len(clients))
print(rest(clients[0]) or "closed")
"""
    assert (await run(box, program)).splitlines() == ["1 1000", "closed"]


async def test_calls_of_one_shell_are_counted(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "MOST_CALLS", 2)
    text = await box.text(bash, command="alone; alone; alone")
    assert text.splitlines()[-2] == saying("alone: ", "2 commands")


async def test_clients_that_never_read_hold_up_nobody_else(box: Box) -> None:
    """All but one of the connections that are answered at once."""
    program = f"""
silent = [connected() for _ in range({bwrap_process.AT_ONCE - 1})]
for s in silent:
    s.sendall(frame(b"C", b"say\\0/\\0endless"))
last = connected()
last.sendall(frame(b"C", b"alone\\0/"))
print(rest(last)[5:])
"""
    assert await run(box, program) == saying("/ /x /y cli")
    ended = sys.modules["agent.shell.programs.say"].ended
    await soon(lambda: len(ended) == bwrap_process.AT_ONCE - 1)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 100_000,
        b"",
        b"C\0\0",
        b"C\0\0\0\0",
        b"C\xff\xff\xff\xff",
        b"I\0\0\0\1x",
        b"C\0\0\0\5alone" + b"I\0\0\0\1x" * 9,  # input that nobody asked for
        b"C\0\0\0\10say\0/\0copy"[:-1] + b"I\xff\xff\xff\xff",
        b"C\0\0\0\x09../../bin",
        b"C\0\0\0\4\xff\0\xfe\0",
    ],
    ids=["http", "noise", "nothing", "half", "empty", "huge", "early", "unasked", "huge-input", "path", "bytes"],
)  # fmt: skip
async def test_garbage_on_the_socket(
    box: Box, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    program = f"""
import select
s = connected()
try:
    s.sendall({sent!r})
    s.shutdown(socket.SHUT_WR)
    rest(s)
except OSError:
    pass
s = connected()
s.sendall(frame(b"C", b"alone\\0/"))
print(rest(s)[5:].decode(errors="replace"))
"""
    assert await run(box, program) == saying("/ /x /y cli")
    assert "Traceback" not in caplog.text


async def test_a_gigabyte_is_not_taken(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "MOST_BYTES", 8 << 20)
    text = await box.text(bash, command="head -c 1G /dev/zero | say swallow; echo $?")
    assert text.splitlines()[-1] == "1" and text == saying("say: ", "8 MiB")
    program = """
for begin, piece in (b"", bytes(65536)), (frame(b"C", b"say\\0/\\0hang"), frame(b"I", bytes(65000))):
    s = connected()
    s.sendall(begin)
    sent = 0
    try:
        for _ in range(16384):
            sent += s.send(piece)
    except OSError:
        print("cut off", sent < 64 << 20)
"""
    assert (await run(box, program)).splitlines() == ["cut off True"] * 2


async def test_nothing_of_the_host_is_seen_or_changed_by_the_socket(box: Box) -> None:
    look = (
        f"find /run; touch /run/commands/x; rm {SOCKET}; ln -s / /commands/x;"
        "ls -l /proc/self/fd | grep -c socket:; ip -br link 2> /dev/null | grep -v '^lo'"
    )
    text = await box.text(bash, command=look)
    assert text.splitlines()[:3] == ["/run", "/run/commands", SOCKET]
    assert text.count("Read-only file system") == 3 and "\n0\n" in text
    assert list(box.sandbox.config.sockets.iterdir()) == []


async def test_what_a_killed_program_left_is_removed(tmp_path: Path) -> None:
    folder = bwrap_process.prepare_sockets(tmp_path / "calls")
    for name in ("dead", "young"):
        (folder / name).mkdir()
    os.utime(folder / "dead", (0, 0))
    async with bwrap_process.serve_commands(folder, Silent()) as living:
        os.utime(living, (0, 0))
        bwrap_process.prepare_sockets(folder)
        assert {path.name for path in folder.iterdir()} == {"young", Path(living).name}


class Silent(broker.Broker):
    def __init__(self) -> None:
        pass
