"""The steps of a build, with a CMake that compiles nothing: progress, failures, going on, the result."""

import asyncio
import fcntl
import os
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from backend import proc
from backend.build.build import Progress, Sources, build, python_with_pip, unpack
from backend.build.recipe import CannotBuild, Recipe
from backend.config import BackendConfig
from backend.server.launch import find_binary
from fakes.patience import SECONDS, soon
from fakes.toolkits import program
from fakes.words import saying

SERVER = r"""#!/bin/sh
case "$1" in
--version) echo "version: 11434 (abc)" ;;
--list-devices) echo "Available devices:"; echo "  (none)" ;;
--help) echo "-m, --model FNAME   the model"; echo "--list-devices" ;;
esac
"""
# ik_llama.cpp's knows no such flag.
IK_SERVER = r"""#!/bin/sh
case "$1" in
--version) echo "version: 1 (abc)" ;;
--help) echo "-m, --model FNAME   the model"; exit 1 ;;
*) echo "error: unknown argument: $1"; exit 1 ;;
esac
"""
CMAKE = """echo "cmake $4" >> "{log}"; echo "$@" >> "{log}.arguments"; mkdir -p "$4"; echo "-- PATH is $PATH"; echo "CFLAGS=$CFLAGS"
{fault}
"""
NINJA = """echo "ninja $2" >> "{log}"
{fault}
mkdir -p "$2/bin"; cp "{server}" "$2/bin/llama-server"; cp "{server}" "$2/bin/llama-bench"
for n in 1 2 3 4; do echo "[$n/4] Building"; done
"""
# Like ninja, which gives each compiler a group of its own; `compiler` is where its pid goes.
COMPILING = """exec bash -c 'set -m; sleep 1000 & echo $! > "{compiler}"
{trap}; echo "[1/4] Building"; wait; exit 1'"""


@pytest.fixture
def checkout(tmp_path: Path) -> Sources:
    tree = tmp_path / "checkout"
    tree.mkdir()
    (tree / "CMakeLists.txt").write_text("")
    return Sources(tree, "ik")


def machine(tmp_path: Path, fault: str = "", configuring: str = "") -> Recipe:
    """A recipe whose PATH has the false CMake first; shell code for what goes wrong."""
    tools = tmp_path / "tools"
    server = tmp_path / "made"
    server.write_text(SERVER)
    server.chmod(0o755)
    program(tools / "cmake", CMAKE.format(log=tmp_path / "log", fault=configuring))
    program(tools / "ninja", NINJA.format(log=tmp_path / "log", server=server, fault=fault))
    return Recipe("cpu", "CPU, gcc 12", ("-DX=1",), os.pathsep.join([str(tools), os.environ["PATH"]]))  # fmt: skip


async def gone(pid: int) -> None:
    """A process has ended, whether or not somebody has asked how."""
    await soon(lambda: proc.state(pid) in (None, "Z"))


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
        saying("CPU", "gcc 12", "about 16 minutes of one core"),
        *(saying(f"{25 * n} %", f"{n} of 4", "1 min") for n in (1, 2, 3, 4)),
    ]
    assert (built.server.with_name("llama-bench")).is_file()
    other = replace(recipe, arguments=("-DX=2",))
    await build(other, checkout, state, said.append)
    assert len(list(built.server.parents[1].glob("build-*"))) == 1
    used = await find_binary(BackendConfig(state_dir=state))
    assert Path(used.command[0]).resolve() == built.server


async def test_ik_builds_its_server_as_an_example_and_need_not_name_its_cards(
    tmp_path: Path, checkout: Sources
) -> None:
    recipe = machine(tmp_path)
    (tmp_path / "made").write_text(IK_SERVER)
    recipe = replace(recipe, arguments=("-DLLAMA_BUILD_EXAMPLES=OFF",))
    built = await build(recipe, checkout, tmp_path / "state", lambda line: None)
    assert (built.version, built.devices) == ("version: 1 (abc)", "")
    given = (tmp_path / "log.arguments").read_text().split()
    switches = [one for one in given if one.startswith("-DLLAMA_BUILD_EXAMPLES")]
    assert switches[-1] == "-DLLAMA_BUILD_EXAMPLES=ON"  # the last one counts
    assert Sources(None, "llama.cpp").arguments == ()


async def test_a_build_that_was_cut_goes_on_in_its_folder(
    tmp_path: Path, checkout: Sources
) -> None:
    with pytest.raises(CannotBuild) as failed:
        cut = machine(
            tmp_path, 'touch "$2/.ninja_log"; echo "x.cpp:3: error: no such thing"; exit 1'
        )
        await build(cut, checkout, tmp_path / "state", lambda line: None)
    log = tmp_path / "state" / "servers" / "ik-checkout-cpu" / "build.log"
    assert str(failed.value) == saying("compiling", "x.cpp:3: error: no such thing", str(log))
    said: list[str] = []
    await build(machine(tmp_path), checkout, tmp_path / "state", said.append)
    assert said[1] == saying("kept")
    ran = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert [line[0] for line in ran] == ["cmake", "ninja", "cmake", "ninja"]
    assert ran[1][1] == ran[3][1]


async def test_the_log_is_read_while_it_builds(tmp_path: Path, checkout: Sources) -> None:
    log = tmp_path / "state" / "servers" / "ik-checkout-cpu" / "build.log"
    seen: list[str] = []

    def look(line: str) -> None:
        if line.startswith("25 %"):
            seen.append(log.read_text())

    await build(machine(tmp_path), checkout, tmp_path / "state", look)
    assert seen == ["[1/4] Building\n"]


async def timeout_left(
    scope: asyncio.Timeout, kind: type[BaseException] | None, *_: object
) -> None:
    """`asyncio.timeout` ends as in Debian 12's Python 3.11.2: with CancelledError in a task that is cancelled."""
    if not scope.expired():
        scope.reschedule(None)
        return
    task = asyncio.current_task()
    assert task
    if task.uncancel() == 0 and kind is asyncio.CancelledError:
        raise TimeoutError


@pytest.mark.parametrize("old", [False, True], ids=["this Python", "Python 3.11.2"])
async def test_an_interrupted_build_ends_its_compilers(
    tmp_path: Path, checkout: Sources, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    if old:
        monkeypatch.setattr(asyncio.Timeout, "__aexit__", timeout_left)
    compiler, began = tmp_path / "compiler", asyncio.Event()
    recipe = machine(tmp_path, COMPILING.format(compiler=compiler, trap="true"))

    def hear(line: str) -> None:
        if line.startswith("25 %"):
            began.set()

    task = asyncio.create_task(build(recipe, checkout, tmp_path / "state", hear))
    async with asyncio.timeout(SECONDS):
        await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(int(compiler.read_text()))


ALONE = """
import asyncio, sys
from pathlib import Path
from backend.build.build import Sources, build
from backend.build.recipe import Recipe
recipe = Recipe("cpu", "CPU", (), sys.argv[3])
asyncio.run(build(recipe, Sources(Path(sys.argv[1]), "ik"), Path(sys.argv[2]), lambda line: print(line, flush=True)))
"""


async def test_compilers_end_when_the_build_is_killed(tmp_path: Path, checkout: Sources) -> None:
    compiler = tmp_path / "compiler"
    recipe = machine(tmp_path, COMPILING.format(compiler=compiler, trap='trap "kill $!; exit 1" TERM'))  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ALONE, str(checkout.checkout), str(tmp_path / "state")),
        recipe.path,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout
    async with asyncio.timeout(SECONDS):
        while not (await process.stdout.readline()).startswith(b"25 %"):
            assert process.returncode is None
    process.kill()
    await process.wait()
    await gone(int(compiler.read_text()))


async def test_a_second_build_is_refused(tmp_path: Path, checkout: Sources) -> None:
    servers = tmp_path / "state" / "servers"
    servers.mkdir(parents=True)
    with (servers / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CannotBuild) as refused:
            await build(machine(tmp_path), checkout, tmp_path / "state", lambda line: None)
    assert str(refused.value) == saying("another build", str(servers))
    await build(machine(tmp_path), checkout, tmp_path / "state", lambda line: None)


async def test_a_build_without_nccl_says_so(tmp_path: Path, checkout: Sources) -> None:
    said: list[str] = []
    recipe = machine(tmp_path, configuring='echo "-- Warning: NCCL not found, performance"')
    await build(recipe, checkout, tmp_path / "state", said.append)
    assert said[1] == saying("NCCL", "libnccl-dev")


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
        saying("10 %", "10 of 100", " 9 min"),
        saying("50 %", "50 of 100", " 5 min"),
        saying("100 %", "100 of 100", " 1 min"),
    ]


def test_sources_are_unpacked_by_a_python_without_filters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian 12's Python 3.11.2."""
    (tmp_path / "x").write_text("source")
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "x", "x")
    extract = tarfile.TarFile.extractall

    def without_filter(
        self: tarfile.TarFile, path: str = ".", members: None = None, *, numeric_owner: bool = False
    ) -> None:
        extract(self, path, members, numeric_owner=numeric_owner)

    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    monkeypatch.setattr(tarfile.TarFile, "extractall", without_filter)
    unpack(tmp_path / "x.tar.gz", tmp_path / "unpacked")
    assert (tmp_path / "unpacked" / "x").read_text() == "source"


@pytest.mark.slow
async def test_packages_are_fetched_by_a_pip_of_its_own(tmp_path: Path) -> None:
    """Where uv made the environment there is none."""
    python = await python_with_pip(tmp_path)
    assert python == await python_with_pip(tmp_path)
    argv = (python, "-m", "pip", "--version")
    pip = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.DEVNULL)
    assert await asyncio.wait_for(pip.wait(), SECONDS) == 0
