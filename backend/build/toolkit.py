"""The CUDA toolkits and host compilers of this machine, asked of the programs themselves.

A toolkit says which GPUs it compiles for (`nvcc --list-gpu-code`; CUDA 13 has
none before 7.5) and, in crt/host_config.h, the newest gcc that it takes.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ASK_SECONDS = 60.0
NEWEST_GCC = 30
# Where a toolkit without a readable host_config.h stands (NVIDIA's installation guides, table of
# supported compilers): the newest gcc from this version of CUDA on.
_GCC = {(11, 4): 11, (12, 0): 12, (12, 4): 13, (12, 8): 14, (13, 0): 15}
_LATEST = re.compile(r"gcc versions later than (\d+) are not supported")
_RELEASE = re.compile(r"release (\d+)\.(\d+)")
_CODE = re.compile(r"\bsm_(\d+)\b")
Capability = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Toolkit:
    """One CUDA: `codes` are the GPUs that it compiles for, 70 for compute capability 7.0."""

    nvcc: Path
    version: tuple[int, int]
    codes: frozenset[int]
    newest_gcc: int

    @property
    def name(self) -> str:
        return f"CUDA {self.version[0]}.{self.version[1]}"

    def compiles_for(self, capability: Capability) -> bool:
        return 10 * capability[0] + capability[1] in self.codes


@dataclass(frozen=True, slots=True)
class Compilers:
    """A C and a C++ compiler of one version."""

    c: Path
    cxx: Path
    version: int


def toolkits(path: str, roots: Iterable[Path]) -> list[Toolkit]:
    """Every toolkit on `path` and in `roots`, newest first; one that does not answer is left out."""
    found = {kit.version: kit for nvcc in _nvccs(path, roots) if (kit := _toolkit(nvcc))}
    return [found[version] for version in sorted(found, reverse=True)]


def usual_roots() -> list[Path]:
    """Where NVIDIA's installers and distributions put CUDA."""
    places = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    return [*places, *sorted(Path("/usr/local").glob("cuda*")), Path("/opt/cuda")]


def _nvccs(path: str, roots: Iterable[Path]) -> Iterator[Path]:
    # The last of one version wins: its own folder before a wrapper on PATH, /usr/bin before /bin.
    for folder in [*reversed(path.split(os.pathsep)), *(str(root / "bin") for root in roots)]:
        nvcc = Path(folder or ".") / "nvcc"
        if nvcc.is_file() and os.access(nvcc, os.X_OK):
            yield nvcc


def _toolkit(nvcc: Path) -> Toolkit | None:
    release = _RELEASE.search(_said(nvcc, "--version"))
    if not release:
        return None
    version = int(release[1]), int(release[2])
    codes = frozenset(int(code) for code in _CODE.findall(_said(nvcc, "--list-gpu-code")))
    return Toolkit(nvcc, version, codes, _newest_gcc(nvcc, version))


def _newest_gcc(nvcc: Path, version: tuple[int, int]) -> int:
    root = nvcc.parent.parent
    for header in (root / "include/crt/host_config.h", root / "targets/x86_64-linux/include/crt/host_config.h"):  # fmt: skip
        try:
            limit = _LATEST.search(header.read_text("utf-8", "replace"))
        except OSError:
            continue
        if limit:
            return int(limit[1])
    return max((gcc for since, gcc in _GCC.items() if since <= version), default=10)


def compilers(path: str, newest: int = NEWEST_GCC) -> Compilers | None:
    """The newest gcc and g++ on `path` that are not newer than `newest`; the plain names first."""
    names = [("gcc", "g++"), *((f"gcc-{n}", f"g++-{n}") for n in range(min(newest, 20), 7, -1))]
    for c, cxx in names:
        places = shutil.which(c, path=path), shutil.which(cxx, path=path)
        if places[0] and places[1]:
            version = _gcc_version(Path(places[1]))
            if version is not None and version <= newest:
                return Compilers(Path(places[0]), Path(places[1]), version)
    return None


def _gcc_version(compiler: Path) -> int | None:
    said = re.match(r"(\d+)", _said(compiler, "-dumpversion"))
    return int(said[1]) if said else None


def one_toolkit(path: str, kit: Toolkit) -> str:
    """`path` with this toolkit first and no other: another's ptxas fails with "Value 'sm_..' is not defined".

    /usr/bin stays, behind it, though Debian puts a toolkit there: the linker is there, too.
    """
    own = str(kit.nvcc.parent)
    others = [f for f in path.split(os.pathsep) if f and f != own and not _cuda_alone(Path(f))]
    return os.pathsep.join([own, *others])


def _cuda_alone(folder: Path) -> bool:
    has_cuda = any((folder / name).exists() for name in ("nvcc", "ptxas"))
    return has_cuda and not (folder / "ld").exists()


def _said(program: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_SECONDS,
            env=env,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
