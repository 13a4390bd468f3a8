"""The steps of a build, with a CMake that compiles nothing: progress, failures, going on, the result."""

import os
from pathlib import Path

import pytest

from backend.binary import find
from backend.build import Progress, Sources, build
from backend.config import BackendConfig
from backend.recipe import CannotBuild, Recipe
from tests.fakes.toolkits import program

SERVER = r"""#!/bin/sh
case "$1" in
--version) echo "version: 11434 (abc)" ;;
--list-devices) echo "Available devices:"; echo "  (none)" ;;
--help) echo "-m, --model FNAME   the model" ;;
esac
"""
CMAKE = """echo "$@" >> "{log}"
case "$1" in
-S) mkdir -p "$4"; echo "-- PATH is $PATH"; echo "CFLAGS=$CFLAGS" ;;
--build)
  {fault}
  mkdir -p "$2/bin"; cp "{server}" "$2/bin/llama-server"; cp "{server}" "$2/bin/llama-bench"
  for n in 1 2 3 4; do echo "[$n/4] Building"; done ;;
esac"""


@pytest.fixture
def checkout(tmp_path: Path) -> Sources:
    tree = tmp_path / "checkout"
    tree.mkdir()
    (tree / "CMakeLists.txt").write_text("")
    return Sources(tree, "ik")


def machine(tmp_path: Path, fault: str = "") -> Recipe:
    """A recipe whose PATH has the false CMake first."""
    tools = tmp_path / "tools"
    server = tmp_path / "made"
    server.write_text(SERVER)
    server.chmod(0o755)
    program(tools / "cmake", CMAKE.format(log=tmp_path / "log", server=server, fault=fault))
    program(tools / "ninja", "exit 0")
    return Recipe("cpu", "CPU, gcc 12", ("-DX=1",), os.pathsep.join([str(tools), os.environ["PATH"]]))  # fmt: skip


async def test_a_build_ends_in_a_server_that_is_used(tmp_path: Path, checkout: Sources) -> None:
    said: list[str] = []
    recipe, state = machine(tmp_path), tmp_path / "state"
    built = await build(recipe, checkout, state, said.append)
    assert built.server == state / "servers" / "ik-checkout-cpu" / "bin" / "llama-server"
    assert (built.version, built.devices) == (
        "version: 11434 (abc)",
        "Available devices:\n  (none)",
    )
    assert said == [
        "CPU, gcc 12: about 8 minutes on two cores, less on more.",
        *(f"{25 * n} %, {n} of 4 files; about 1 min left" for n in (1, 2, 3, 4)),
    ]
    assert (built.server.with_name("llama-bench")).is_file()
    used = await find(BackendConfig(state_dir=state))
    assert Path(used.command[0]).resolve() == built.server


async def test_a_build_that_was_cut_goes_on_in_its_folder(
    tmp_path: Path, checkout: Sources
) -> None:
    with pytest.raises(CannotBuild) as failed:
        cut = machine(tmp_path, 'echo "x.cpp:3: error: no such thing"; exit 1')
        await build(cut, checkout, tmp_path / "state", lambda line: None)
    log = tmp_path / "state" / "servers" / "ik-checkout-cpu" / "build.log"
    assert str(failed.value) == (
        f"It stopped while compiling: x.cpp:3: error: no such thing (the whole log: {log})"
    )
    await build(machine(tmp_path), checkout, tmp_path / "state", lambda line: None)
    ran = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert [line[0] for line in ran] == ["-S", "--build", "-S", "--build"]
    assert ran[1][1] == ran[3][1]


async def test_flags_of_the_shell_stay_outside(
    tmp_path: Path, checkout: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CFLAGS", "-O0")
    await build(machine(tmp_path), checkout, tmp_path / "state", lambda line: None)
    log = tmp_path / "state" / "servers" / "ik-checkout-cpu" / "configure.log"
    assert log.read_text().splitlines()[-1] == "CFLAGS="


async def test_a_folder_that_is_no_checkout_is_told(tmp_path: Path) -> None:
    empty = Sources(tmp_path, "ik")
    with pytest.raises(CannotBuild, match="is no checkout: it has no CMakeLists.txt"):
        await build(machine(tmp_path), empty, tmp_path / "state", lambda line: None)


def test_progress_tells_every_few_per_cent_and_what_is_left() -> None:
    said: list[str] = []
    progress = Progress(0.0, said.append)
    for done in (1, 2, 10, 12, 50, 100):
        progress.step(done, 100, now=done * 6.0)
    assert said == [
        "10 %, 10 of 100 files; about 9 min left",
        "50 %, 50 of 100 files; about 5 min left",
        "100 %, 100 of 100 files; about 1 min left",
    ]
