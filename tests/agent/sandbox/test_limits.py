"""A workspace's share of the disk, measured and enforced."""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from agent.errors import ToolError
from agent.sandbox.bwrap_process import BwrapProcess
from agent.sandbox.files import changed_since, count_changed
from agent.sandbox.limits import (
    DEEPEST,
    DiskQuota,
    DiskUsage,
    HostRepo,
    SandboxLimits,
    disk_usage,
    watch_usage,
)
from agent.sandbox.sandbox import CommandResult, Sandbox
from fakes.patience import SECONDS
from fakes.sandbox_box import opened
from fakes.words import saying


def test_a_walk_counts_blocks_files_and_links_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(10_000))
    (tmp_path / "d").mkdir()
    (tmp_path / "d/b").hardlink_to(tmp_path / "a")
    (tmp_path / "l").symlink_to("/usr")
    blocks = sum((tmp_path / name).lstat().st_blocks * 512 for name in ("a", "d", "l"))
    assert disk_usage(tmp_path) == DiskUsage(blocks, 4)


async def test_a_command_that_ended_before_it_was_seen_is_not_watched(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    process = BwrapProcess()
    process.feed_status(b'{"child-pid": %d}\n' % dead.pid)
    async with asyncio.timeout(SECONDS):
        await watch_usage(process, DiskQuota(tmp_path, SandboxLimits()))


def test_unreadable_directories_hide_nothing(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "file").write_bytes(bytes(5000))
    closed.chmod(0o000)
    assert disk_usage(tmp_path).files == 2


def test_very_deep_directories_are_told(tmp_path: Path) -> None:
    here = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(DEEPEST + 20):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
    usage = disk_usage(tmp_path)
    assert (usage.files, usage.deeper) == (DEEPEST + 1, True)


def test_a_thousand_folders_in_each_other_fail_no_call(tmp_path: Path) -> None:
    """A command may end before its quota is looked at."""
    command = (
        "for _ in $(seq 12); do p=$(printf 'd/%.0s' $(seq 100)); mkdir -p $p && cd -P $p; done"
    )
    (tmp_path / "w").mkdir()
    subprocess.run(["bash", "-c", command], cwd=tmp_path / "w", check=True)
    try:
        assert changed_since(tmp_path / "w", time.time() + 999)
        assert count_changed(tmp_path / "w", 0.0) == 0
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "w"], check=True)


def test_more_than_the_limits_may_stay_but_not_grow(tmp_path: Path) -> None:
    quota = DiskQuota(tmp_path, SandboxLimits(disk_mib=10, files=100))
    quota.used = full = DiskUsage(12 << 20, 120)
    assert quota.excess() == saying("10 MiB", "delete")
    assert quota.excess(before=full) == ""
    quota.used = DiskUsage(14 << 20, 120)
    assert quota.excess(before=full) == saying("10 MiB", "delete")
    quota.used = DiskUsage(1, 140)
    assert quota.excess(before=full) == saying("100 files", "delete")


async def test_file_tools_write_no_more_than_there_is_room(tmp_path: Path) -> None:
    async with opened(tmp_path, limits=SandboxLimits(disk_mib=2, files=50)) as sandboxes:
        files = (await sandboxes.of("cli")).files
        await files.write("first", bytes(1500 << 10))
        with pytest.raises(ToolError, match="may hold 2 MiB"):
            await files.write("second", bytes(1500 << 10))
        await files.write("first", b"small")
        assert await files.write("second", bytes(1500 << 10)) is True


async def test_a_full_workspace_can_be_emptied(tmp_path: Path) -> None:
    limits = SandboxLimits(disk_mib=4)
    async with opened(tmp_path, limits=limits) as sandboxes:
        sandbox = await sandboxes.of("cli")
        filled = await sandbox.run(
            "for n in $(seq 99); do head -c 1M /dev/zero > $n; done; sleep 600"
        )
        assert filled.reason == saying("stopped", "4 MiB", "delete")
        assert await sandbox.run("rm -f *; ls") == CommandResult(0, "")


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", ".git", "x" * 65, "-x"])
def test_names_of_repositories(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name"):
        HostRepo(name, Path("/srv"))


async def test_memory_is_counted_over_all_processes(tmp_path: Path) -> None:
    command = "for n in 1 2 3 4; do python3 -c 'import time; x = bytearray(30 << 20); time.sleep(600)' & done; wait"
    async with opened(tmp_path, limits=SandboxLimits(memory_mib=90)) as sandboxes:
        ran = await (await sandboxes.of("cli")).run(command)
    assert ran == CommandResult(137, "", reason=saying("stopped", "90 MiB", "memory"))


async def test_one_process_is_told_when_memory_is_used_up(sandbox: Sandbox) -> None:
    ran = await sandbox.run("python3 -c 'bytearray(2 << 30)'")
    assert (ran.exit_code, ran.output.splitlines()[-1]) == (1, "MemoryError")
