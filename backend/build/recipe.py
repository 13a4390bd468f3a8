"""How a llama-server is built on this machine, or what its owner must install first.

Toolkits and compilers are queried: `nvcc --list-gpu-code` says which GPUs a CUDA
toolkit compiles for (13 has none before compute capability 7.5), its
crt/host_config.h which gcc is the newest that it accepts. The CUDA settings are
known to work for a V100: `70-real` with GGML_CUDA_FORCE_MMQ
(github.com/andrewleech/v100-llm-kit), the compiler's full path, and only one
toolkit on PATH.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["cpu", "cuda"]
Capability = tuple[int, int]
VOLTA: Capability = (7, 0)
TARGETS = ("llama-server", "llama-bench")
# Of one core, measured for the CPU and, with CUDA 13.0 and one type of GPU, on 2 and on 16 cores.
CORE_MINUTES = {"cpu": 16, "cuda": 84}
COMMON = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_SERVER=ON",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",  # it would be downloaded during the build
    "-DLLAMA_OPENSSL=OFF",  # the server listens on loopback, and `model pull` downloads models
)
ANSWER_SECONDS = 60.0
ANY_GCC = 30
# For toolkits without a readable host_config.h: the newest supported gcc since this version of CUDA
# (NVIDIA's installation guides, table of supported compilers).
NEWEST_GCC = {(11, 4): 11, (12, 0): 12, (12, 4): 13, (12, 8): 14, (13, 0): 15}
GCC_LIMIT = re.compile(r"gcc versions later than (\d+) are not supported")
RELEASE = re.compile(r"release (\d+)\.(\d+)")
GPU_CODE = re.compile(r"\bsm_(\d+)\b")


class CannotBuild(Exception):
    """The build is impossible; `str` says why, and what the owner must do."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """A CUDA toolkit. `codes` are the GPUs that it compiles for: 70 is compute capability 7.0."""

    nvcc: Path
    version: tuple[int, int]
    codes: frozenset[int]
    newest_gcc: int

    @property
    def name(self) -> str:
        return f"CUDA {self.version[0]}.{self.version[1]}"


@dataclass(frozen=True, slots=True)
class Compilers:
    """A C and a C++ compiler of the same version."""

    c: Path
    cxx: Path
    version: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """`arguments` for CMake, and the PATH to build with. `title` is shown to people."""

    kind: Kind
    title: str
    arguments: tuple[str, ...]
    path: str

    @property
    def estimate(self) -> str:
        """Rough time of compiling on the cores of this machine."""
        one, here = CORE_MINUTES[self.kind], len(os.sched_getaffinity(0))
        return f"about {one} minutes of one core, {-(-one // here)} on the {here} here"


@dataclass(frozen=True, slots=True)
class BuildHost:
    """What is available for a build. `path` is the PATH of the owner's shell."""

    path: str
    cards: Sequence[Capability] = ()
    toolkits: Sequence[Toolkit] = ()


def recipe(kind: Kind, host: BuildHost) -> Recipe:
    """The recipe for this machine; CannotBuild if something is missing that the owner must install."""
    if kind == "cuda":
        return cuda_recipe(host)
    found = choose_compilers(host.path, ANY_GCC, "")
    arguments = (*COMMON, *compiler_arguments(found))
    return Recipe(kind, f"CPU, gcc {found.version}", arguments, host.path)


def cuda_recipe(host: BuildHost) -> Recipe:
    if not host.cards:
        raise CannotBuild(
            "No NVIDIA card was found; install its driver, or name the card's compute capability:"
            " --capability 7.0 for a V100."
        )
    kit = choose_toolkit(host)
    found = choose_compilers(host.path, kit.newest_gcc, kit.name)
    codes = ";".join(f"{major}{minor}-real" for major, minor in sorted(set(host.cards)))
    own = (
        "-DGGML_CUDA=ON",
        f"-DCMAKE_CUDA_ARCHITECTURES={codes}",
        f"-DCMAKE_CUDA_COMPILER={kit.nvcc}",
        f"-DCMAKE_CUDA_HOST_COMPILER={found.cxx}",
        *(("-DGGML_CUDA_FORCE_MMQ=ON",) if VOLTA in host.cards else ()),
    )
    title = f"{kit.name} for {capabilities_text(host.cards)}, gcc {found.version}"
    return Recipe(
        "cuda", title, (*COMMON, *own, *compiler_arguments(found)), one_toolkit(host.path, kit)
    )


def choose_toolkit(host: BuildHost) -> Toolkit:
    """The newest toolkit that compiles for all GPUs."""
    for kit in host.toolkits:
        if all(10 * major + minor in kit.codes for major, minor in host.cards):
            return kit
    wanted = capabilities_text(host.cards)
    if not host.toolkits:
        raise CannotBuild(f"No CUDA toolkit was found. {cuda_advice(wanted, host.cards)}")
    there = " and ".join(f"{kit.name} ({kit.nvcc})" for kit in host.toolkits)
    verb = "compiles" if len(host.toolkits) == 1 else "compile"
    raise CannotBuild(f"{there} no longer {verb} for {wanted}. {cuda_advice(wanted, host.cards)}")


def cuda_advice(wanted: str, cards: Sequence[Capability]) -> str:
    if min(cards) >= (7, 5):
        return f"For {wanted} install CUDA 12 or newer: apt install nvidia-cuda-toolkit, or NVIDIA's own packages."
    return (
        f"For {wanted} install CUDA 11.8 or 12 (13 dropped everything before 7.5) beside it: on"
        " Debian 12 `apt install --no-install-recommends nvidia-cuda-toolkit gcc-11 g++-11` from"
        " contrib and non-free (what it recommends is a driver of its own), on Ubuntu `apt install"
        " nvidia-cuda-toolkit`, or `cuda-toolkit-12-9` of NVIDIA's repository."
    )


def choose_compilers(path: str, newest: int, kit: str) -> Compilers:
    if found := compilers(path, newest):
        return found
    if kit and compilers(path):
        raise CannotBuild(
            f"{kit} takes gcc {newest} or older, and there is only a newer one:"
            f" apt install gcc-{newest} g++-{newest}"
        )
    raise CannotBuild("There is no C++ compiler: apt install build-essential")


def compiler_arguments(found: Compilers) -> tuple[str, ...]:
    return f"-DCMAKE_C_COMPILER={found.c}", f"-DCMAKE_CXX_COMPILER={found.cxx}"


def capabilities_text(cards: Sequence[Capability]) -> str:
    return "compute capability " + ", ".join(f"{a}.{b}" for a, b in sorted(set(cards)))


# -- toolkits and compilers ----------------------------------------------------


def toolkits(path: str, roots: Iterable[Path]) -> list[Toolkit]:
    """All toolkits on `path` and in `roots`, newest first, without those that do not answer."""
    found: dict[tuple[int, int], Toolkit] = {}
    # The last one of each version wins: its own folder over a wrapper on PATH, /usr/bin over /bin.
    for folder in [*reversed(path.split(os.pathsep)), *(str(root / "bin") for root in roots)]:
        nvcc = Path(folder or ".") / "nvcc"
        release = os.access(nvcc, os.X_OK) and RELEASE.search(answer_of(nvcc, "--version"))
        if release:
            version = int(release[1]), int(release[2])
            codes = map(int, GPU_CODE.findall(answer_of(nvcc, "--list-gpu-code")))
            newest = newest_gcc_for(nvcc, version)
            found[version] = Toolkit(nvcc, version, frozenset(codes), newest)
    return [found[version] for version in sorted(found, reverse=True)]


def usual_roots() -> list[Path]:
    """The folders where NVIDIA's installers and distributions install CUDA."""
    places = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    return [*places, *sorted(Path("/usr/local").glob("cuda*")), Path("/opt/cuda")]


def newest_gcc_for(nvcc: Path, version: tuple[int, int]) -> int:
    root = nvcc.parent.parent
    for header in (root / "include/crt/host_config.h", root / "targets/x86_64-linux/include/crt/host_config.h"):  # fmt: skip
        try:
            limit = GCC_LIMIT.search(header.read_text("utf-8", "replace"))
        except OSError:
            continue
        if limit:
            return int(limit[1])
    return max((gcc for since, gcc in NEWEST_GCC.items() if since <= version), default=10)


def compilers(path: str, newest: int = ANY_GCC) -> Compilers | None:
    """The gcc and g++ on `path` if not newer than `newest`, else the newest versioned pair that fits."""
    names = [("gcc", "g++"), *((f"gcc-{n}", f"g++-{n}") for n in range(min(newest, 20), 7, -1))]
    for c, cxx in names:
        places = shutil.which(c, path=path), shutil.which(cxx, path=path)
        if places[0] and places[1]:
            version = re.match(r"(\d+)", answer_of(Path(places[1]), "-dumpversion"))
            if version and int(version[1]) <= newest:
                return Compilers(Path(places[0]), Path(places[1]), int(version[1]))
    return None


def one_toolkit(path: str, kit: Toolkit) -> str:
    """`path` with this toolkit first and without others, whose ptxas fails: "Value 'sm_..' is not defined".

    /usr/bin stays after it, although Debian installs a toolkit there, because it has the linker.
    """
    own = kit.nvcc.parent

    def stays(folder: Path) -> bool:
        has_cuda = any((folder / name).exists() for name in ("nvcc", "ptxas"))
        return folder != own and (not has_cuda or (folder / "ld").exists())

    others = [folder for folder in path.split(os.pathsep) if folder and stays(Path(folder))]
    return os.pathsep.join([str(own), *others])


def answer_of(program: Path, *arguments: str) -> str:
    """A program's output; empty if it cannot be run or takes too long. Blocks."""
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
