"""Groups of calls in a real cgroup of our own, where root can make one."""

import asyncio
import os
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.sandbox.cgroup import Cgroups, delegated, prepare
from agent.sandbox.limits import SandboxLimits
from agent.sandbox.sandbox import CommandResult, Sandbox
from fakes.patience import soon


@pytest.fixture
def subtree() -> Iterator[Path]:
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    roots = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    path = (roots or [Path("/none")])[0] / f"voltaire-test-{secrets.token_hex(4)}"
    try:
        path.mkdir()
    except OSError:
        pytest.skip("no cgroup can be made here")
    yield path
    for group in [*path.iterdir(), path]:
        if group.is_dir():
            group.rmdir()


def test_a_subtree_needs_its_controllers(subtree: Path) -> None:
    assert prepare(subtree, ["nothing-of-the-kind"]) is None


def test_without_systemds_mark_nothing_is_touched() -> None:
    assert delegated() is None


async def test_a_command_joins_its_group_and_goes_with_it(subtree: Path) -> None:
    cgroups = prepare(subtree, [])
    assert isinstance(cgroups, Cgroups)
    group = cgroups.make(SandboxLimits())
    process = await asyncio.create_subprocess_exec(*group.launcher("/usr/bin/sleep"), "60")
    await soon(lambda: (group.path / "cgroup.procs").read_text() == f"{process.pid}\n")
    assert group.out_of_memory() is False
    await group.remove()
    assert (await process.wait(), group.path.exists()) == (-9, False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root acts as another user, outside of groups")
async def test_a_sandbox_in_its_group(subtree: Path, sandbox: Sandbox) -> None:
    config = replace(sandbox.config, cgroups=prepare(subtree, []))
    grouped = Sandbox(config, "cli", sandbox.workspace)
    assert await grouped.run("echo in") == CommandResult(0, "in\n")
    assert [path.name for path in subtree.iterdir() if path.is_dir()] == ["main"]
