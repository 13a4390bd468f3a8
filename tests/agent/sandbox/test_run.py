"""A command in a real sandbox: what it sees, how it ends, what it leaves."""

import asyncio
import os
import signal
import socket
import tempfile
from pathlib import Path

import pytest

from agent.errors import ToolError
from agent.sandbox.limits import SandboxLimits
from agent.sandbox.privileges import UnprivilegedUser
from agent.sandbox.sandbox import CommandResult, Sandbox
from fakes.patience import limits, soon, within
from fakes.sandbox_box import opened, processes_with
from fakes.words import saying


async def test_it_prints_and_ends(sandbox: Sandbox) -> None:
    ran = await sandbox.run("echo one; echo two >&2; echo three; exit 3")
    assert ran == CommandResult(3, "one\ntwo\nthree\n")


async def test_a_pipe_without_a_reader_ends_its_writer_without_a_word(sandbox: Sandbox) -> None:
    ran = await sandbox.run("yes | head -n 1; echo ${PIPESTATUS[0]}")
    assert ran == CommandResult(0, f"y\n{128 + signal.SIGPIPE}\n")


async def test_an_argument_list_is_not_read_by_a_shell(sandbox: Sandbox) -> None:
    assert await sandbox.run(["echo", "$HOME;", "a b"]) == CommandResult(0, "$HOME; a b\n")


async def test_only_the_workspace_lasts(sandbox: Sandbox) -> None:
    await sandbox.run("echo kept > kept; echo gone > ~/gone")
    assert (await sandbox.run("cat kept; pwd; ls ~ | wc -l")).output == "kept\n/workspace\n0\n"
    assert (sandbox.workspace / "kept").read_text() == "kept\n"


async def test_the_machine_is_told_truly(sandbox: Sandbox) -> None:
    ran = await sandbox.run("hostname; date +%Z; df --output=size -B1 / /workspace | tail -n +2")
    host, zone, *sizes = ran.output.split()
    disks = [
        os.statvfs(path) for path in (tempfile.gettempdir(), sandbox.workspace)
    ]  # of its root, too
    assert (host, sizes) == (socket.gethostname(), [str(d.f_blocks * d.f_frsize) for d in disks])
    assert zone in ("CET", "CEST")


async def test_the_report_is_fresh_at_each_call(tmp_path: Path) -> None:
    words = iter(["first\n", "second\n", "third\n"])
    async with opened(tmp_path, report=lambda: next(words)) as sandboxes:
        sandbox = await sandboxes.of("cli")
        seen = [(await sandbox.run("cat /host.txt")).output for _ in range(2)]
        with await sandbox.files.open("/host.txt") as file:
            seen.append(file.read().decode())
    assert seen == ["first\n", "second\n", "third\n"]


async def test_the_environment_is_ours_alone(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_BOT", "x")
    names = {line.split("=")[0] for line in (await sandbox.run("env")).output.splitlines()}
    assert {n for n in names if not n.startswith("GIT_")} == {
        *("PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "PWD", "TZ"),
        *("NO_COLOR", "PAGER", "PYTHONDONTWRITEBYTECODE", "SHLVL", "_"),
    }


async def test_the_time_limit_ends_it(sandbox: Sandbox) -> None:
    for seconds in limits():
        ran = await sandbox.run("echo begun; sleep 600", seconds=seconds)
        if ran.output:
            break
    told = f"Stopped: the time limit of {seconds} s was reached."
    assert ran == CommandResult(137, "begun\n", reason=told)


async def test_nobody_gets_more_than_five_times_the_owners_limit(tmp_path: Path) -> None:
    async with opened(tmp_path, limits=SandboxLimits(command_seconds=0)) as sandboxes:
        ran = await (await sandboxes.of("cli")).run("sleep 60", seconds=1000)
    assert ran.reason == saying("stopped", "limit of 0 s")


@pytest.mark.parametrize("after", [0, 0.001, 0.003, 0.006, 0.01, 0.02, 0.3])
async def test_cancellation_ends_all_within_a_second(sandbox: Sandbox, after: float) -> None:
    marker = f"37{os.getpid()}{int(after * 1000)}"
    running = asyncio.create_task(
        sandbox.run(f"setsid sleep {marker} & (sleep {marker} &) ; sleep {marker}")
    )
    await asyncio.sleep(after)
    with within(1):
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert processes_with(marker) == []


async def test_nothing_outlives_a_call(sandbox: Sandbox) -> None:
    marker = f"38{os.getpid()}"
    ran = await sandbox.run(f"setsid sleep {marker} > /dev/null 2>&1 & (sleep {marker} &); echo on")
    assert (ran, processes_with(marker)) == (CommandResult(0, "on\n"), [])


async def test_long_output_is_cut_and_saved_whole(sandbox: Sandbox) -> None:
    ran = await sandbox.run("seq 100000", output_bytes=2000)
    assert (ran.exit_code, ran.saved_path) == (0, "/workspace/.voltaire/out/1.txt")
    assert ran.output.startswith("1\n2\n3\n")
    assert ran.output.endswith("99999\n100000\n")
    assert 1800 < len(ran.output) < 2100
    whole = (sandbox.workspace / ".voltaire/out/1.txt").read_text()
    assert whole.split() == [str(n) for n in range(1, 100001)]
    again = await sandbox.run(["tail", "-n1", ran.saved_path])
    assert again.output == "100000\n"
    assert (
        await sandbox.run("seq 100000", output_bytes=2000)
    ).saved_path == "/workspace/.voltaire/out/2.txt"


async def test_a_flood_ends_it(sandbox: Sandbox) -> None:
    ran = await sandbox.run("yes", output_bytes=100)
    assert (ran.exit_code, ran.reason) == (137, saying("stopped", "printed", "16 MiB"))


async def test_news_come_while_it_runs(sandbox: Sandbox) -> None:
    told: list[str] = []
    running = asyncio.create_task(
        sandbox.run("echo first; until [ -e go ]; do sleep 0.05; done", progress=told.append)
    )
    await soon(lambda: told)
    (sandbox.workspace / "go").touch()
    assert (await running, told) == (CommandResult(0, "first\n"), ["first"])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo \0", "A command cannot hold a NUL character."),
        (
            "x" * 200_000,
            "The command is too long. Put it into a file with write_file and run that.",
        ),
    ],
)
async def test_what_cannot_be_started_is_said(sandbox: Sandbox, command: str, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        await sandbox.run(command)
    assert str(caught.value) == said


async def test_calls_beside_each_other(sandbox: Sandbox) -> None:
    ran = await asyncio.gather(*(sandbox.run(f"sleep 0.1; echo {n}") for n in range(8)))
    assert ran == [CommandResult(0, f"{n}\n") for n in range(8)]


async def test_no_descriptor_is_left_behind(sandbox: Sandbox) -> None:
    await sandbox.run("true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await sandbox.run("true")
        await sandbox.run("sleep 9", seconds=0.05)
    await soon(lambda: len(os.listdir("/proc/self/fd")) <= before)


async def test_chats_have_places_of_their_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as sandboxes:
        one, other = await sandboxes.of("telegram:7"), await sandboxes.of("telegram/7")
        await one.run("echo mine > file")
        assert (await other.run("ls -A")).output == ""
        assert await sandboxes.of("telegram:7") is one
    assert one.workspace.parent != other.workspace.parent
    assert one.workspace.is_relative_to(tmp_path / "chats")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user")
async def test_root_acts_as_an_unprivileged_user(sandbox: Sandbox) -> None:
    user = sandbox.config.user
    assert isinstance(user, UnprivilegedUser)
    await sandbox.run("touch made")
    await sandbox.files.write("written", b"x")
    owners = {(sandbox.workspace / name).stat().st_uid for name in (".", "made", "written")}
    assert owners == {user.uid}


async def test_a_server_that_died_is_replaced(sandbox: Sandbox) -> None:
    await sandbox.run("true")
    user = sandbox.config.user
    assert user.server is not None
    user.server.kill()
    user.server.wait()
    assert await sandbox.run("echo again") == CommandResult(0, "again\n")
