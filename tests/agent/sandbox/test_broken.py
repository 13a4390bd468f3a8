"""Where the walls cannot be put up, nothing runs."""

import asyncio
import os
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agent.errors import ToolError
from agent.sandbox import privileges
from agent.sandbox.bubblewrap import Bubblewrap, find, remedy
from agent.sandbox.sandbox import ProbeResult, Sandbox, probe
from fakes.sandbox_box import program_file
from fakes.words import saying


def _with(sandbox: Sandbox, bwrap: Bubblewrap) -> Sandbox:
    return Sandbox(replace(sandbox.config, bwrap=bwrap), "cli", sandbox.workspace)


# Says that the command ended well, and shows what a sandbox without walls would.
_LEAKY = r"""
fd=$(tr '\0' '\n' <&$2 | grep -A1 json-status | tail -1)
echo '{"exit-code": 0}' >&$fd
echo uid=0
echo root=writable
"""


async def test_a_bubblewrap_that_fails_runs_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    said = "bwrap: setting up uid map: Permission denied"
    path = program_file(tmp_path / "bwrap", f"echo '{said}' >&2; exit 1")
    with pytest.raises(ToolError) as caught:
        await _with(sandbox, Bubblewrap(path)).run("touch /workspace/ran")
    remedy = ("AppArmor", "bwrap-userns-restrict", "apparmor-profiles", "`userns,`")
    assert str(caught.value) == saying("nothing was run", said, *remedy)
    assert not (sandbox.workspace / "ran").exists()


async def test_a_problem_found_at_the_start_is_told_at_each_call(sandbox: Sandbox) -> None:
    broken = _with(sandbox, Bubblewrap("", "bubblewrap is not installed."))
    with pytest.raises(ToolError, match="nothing was run: bubblewrap is not installed"):
        await broken.run("true")
    finding = await probe(broken)
    assert finding == ProbeResult("fail", saying("bubblewrap is not installed."))


async def test_an_answer_that_came_while_this_process_stood_still_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(privileges, "ANSWER_SECONDS", 0.05)
    mine, theirs = socket.socketpair()
    with mine, theirs:
        asking = asyncio.create_task(privileges.receive_answer(mine))
        await asyncio.sleep(0)  # it begins to wait
        theirs.send(b'{"value": 7}')
        time.sleep(0.1)  # the event loop stands still
        assert await asking == (7, None)


async def test_a_server_that_does_not_answer_fails_the_call_and_runs_nothing_later(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sandbox.run("true")
    server = sandbox.config.user.server
    assert server
    monkeypatch.setattr(privileges, "ANSWER_SECONDS", 0.05)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        finding = await probe(sandbox)
        with pytest.raises(ToolError, match="could not be started"):
            await sandbox.run("touch /workspace/ran")
    finally:
        os.kill(server.pid, signal.SIGCONT)
    late = "The command could not be started: there was no answer in 0.05 s."
    assert finding == ProbeResult("fail", late)
    monkeypatch.undo()
    assert (await sandbox.run("ls -A")).output == ""


async def test_the_probe_finds_the_walls_standing(sandbox: Sandbox) -> None:
    assert (await probe(sandbox)).status == "pass"


async def test_the_probe_finds_holes(sandbox: Sandbox, tmp_path: Path) -> None:
    path = program_file(tmp_path / "bwrap", _LEAKY, shell="/bin/bash")
    finding = await probe(_with(sandbox, Bubblewrap(path)))
    assert finding.detail == saying("holes", "user", "not 1000")
    assert "/ is writable" in finding.detail


async def test_the_real_one_is_found() -> None:
    assert await find() == Bubblewrap("/usr/bin/bwrap")


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        (
            "bubblewrap 0.6.1",
            "bubblewrap 0.6 is too old; it must be 0.8 or newer (Debian 12, Ubuntu 24.04).",
        ),
        (
            "nonsense",
            "bubblewrap of unknown version is too old; it must be 0.8 or newer (Debian 12, Ubuntu 24.04).",
        ),
        ("bubblewrap 0.8.0", ""),
        ("bubblewrap 1.0", ""),
    ],
)
async def test_versions(tmp_path: Path, version: str, problem: str) -> None:
    path = program_file(tmp_path / "bwrap", f"echo {version}")
    assert await find(str(tmp_path)) == Bubblewrap(path, problem)


async def test_none_at_all(tmp_path: Path) -> None:
    problem = "bubblewrap is not installed; install the package bubblewrap."
    assert await find(str(tmp_path)) == Bubblewrap("", problem)


async def test_a_setuid_one_is_refused(tmp_path: Path) -> None:
    path = program_file(tmp_path / "bwrap", "echo bubblewrap 0.9")
    Path(path).chmod(0o4755)
    assert (await find(str(tmp_path))).problem.startswith(f"{path} is setuid root")


def test_an_unknown_complaint_has_no_remedy() -> None:
    assert remedy("bwrap: something new") == ""
