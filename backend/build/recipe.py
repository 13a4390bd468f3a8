"""How a llama-server is built on this machine, or what its owner must install first.

The CUDA form is the one that is known to work for a V100: `70-real` with
GGML_CUDA_FORCE_MMQ (github.com/andrewleech/v100-llm-kit), the compiler named by
its full path, and one toolkit on PATH.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from backend.build.toolkit import NEWEST_GCC, Capability, Compilers, Toolkit, compilers, one_toolkit

Kind = Literal["cpu", "cuda", "vulkan"]
VOLTA: Capability = (7, 0)
VULKAN = "libvulkan-dev glslc spirv-headers"
NEEDED = "VK_EXT_layer_settings"  # by ggml-vulkan.cpp of build 11434
TARGETS = ("llama-server", "llama-bench")
# Seconds of compiling on two cores: measured for CUDA 11.8 and one card type, and for the processor.
SECONDS = {"cpu": 480, "vulkan": 600, "cuda": 1200}
COMMON = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_SERVER=ON",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",  # it would be downloaded while building
    "-DLLAMA_OPENSSL=OFF",  # it listens on loopback, and models come by `model pull`
)


class CannotBuild(Exception):
    """A step is impossible; `str` says which, and what the owner must do."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """`arguments` for CMake and the PATH to build under; `title` is for people, and so is
    `packages`: what Debian calls that which only CMake can look for."""

    kind: Kind
    title: str
    arguments: tuple[str, ...]
    path: str
    packages: str = ""

    @property
    def seconds(self) -> int:
        """Rough time on two cores."""
        return SECONDS[self.kind]


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is to build with. `path` is the PATH of the owner's shell."""

    path: str
    cards: Sequence[Capability] = ()
    toolkits: Sequence[Toolkit] = ()
    vulkan: Path = Path("/usr/include/vulkan/vulkan_core.h")


def recipe(kind: Kind, machine: Machine) -> Recipe:
    """CannotBuild when something is missing that only the owner can install."""
    if kind == "cuda":
        return _cuda(machine)
    if kind == "vulkan":
        _check_vulkan(machine)
    found = _compilers(machine.path, NEWEST_GCC, "")
    own = ("-DGGML_VULKAN=ON",) if kind == "vulkan" else ()
    title = f"{kind.upper() if kind == 'cpu' else 'Vulkan'}, gcc {found.version}"
    packages = VULKAN if kind == "vulkan" else ""
    return Recipe(kind, title, (*COMMON, *own, *_named(found)), machine.path, packages)


def _check_vulkan(machine: Machine) -> None:
    """CannotBuild without the shader compiler, or with headers too old (Debian 12's are)."""
    if not shutil.which("glslc", path=machine.path):
        raise CannotBuild(f"glslc is missing for Vulkan: apt install {VULKAN}")
    headers = machine.vulkan
    if headers.is_file() and NEEDED not in headers.read_text("utf-8", "replace"):
        raise CannotBuild(
            f"The Vulkan headers ({headers}) are too old: they lack {NEEDED}. Install those of a"
            " newer distribution or of the Vulkan SDK."
        )


def _cuda(machine: Machine) -> Recipe:
    if not machine.cards:
        raise CannotBuild(
            "No NVIDIA card was found; install its driver, or name the card's compute capability:"
            " --capability 7.0 for a V100."
        )
    kit = _toolkit(machine)
    found = _compilers(machine.path, kit.newest_gcc, kit.name)
    codes = ";".join(f"{major}{minor}-real" for major, minor in sorted(set(machine.cards)))
    own = (
        "-DGGML_CUDA=ON",
        f"-DCMAKE_CUDA_ARCHITECTURES={codes}",
        f"-DCMAKE_CUDA_COMPILER={kit.nvcc}",
        f"-DCMAKE_CUDA_HOST_COMPILER={found.cxx}",
        *(("-DGGML_CUDA_FORCE_MMQ=ON",) if VOLTA in machine.cards else ()),
    )
    title = f"{kit.name} for {_numbers(machine.cards)}, gcc {found.version}"
    return Recipe("cuda", title, (*COMMON, *own, *_named(found)), one_toolkit(machine.path, kit))


def _toolkit(machine: Machine) -> Toolkit:
    """The newest toolkit that compiles for every card."""
    for kit in machine.toolkits:
        if all(kit.compiles_for(card) for card in machine.cards):
            return kit
    wanted = _numbers(machine.cards)
    if not machine.toolkits:
        raise CannotBuild(f"No CUDA toolkit was found. {_advice(wanted, machine.cards)}")
    there = " and ".join(f"{kit.name} ({kit.nvcc})" for kit in machine.toolkits)
    verb = "compiles" if len(machine.toolkits) == 1 else "compile"
    raise CannotBuild(f"{there} no longer {verb} for {wanted}. {_advice(wanted, machine.cards)}")


def _advice(wanted: str, cards: Sequence[Capability]) -> str:
    if min(cards) >= (7, 5):
        return f"For {wanted} install CUDA 12 or newer: apt install nvidia-cuda-toolkit, or NVIDIA's own packages."
    return (
        f"For {wanted} install CUDA 11.8 or 12 (13 dropped everything before 7.5) beside it: on"
        " Debian 12 `apt install --no-install-recommends nvidia-cuda-toolkit gcc-11 g++-11` from"
        " contrib and non-free (what it recommends is a driver of its own), on Ubuntu `apt install"
        " nvidia-cuda-toolkit`, or `cuda-toolkit-12-9` of NVIDIA's repository."
    )


def _compilers(path: str, newest: int, kit: str) -> Compilers:
    found = compilers(path, newest)
    if found:
        return found
    if kit and compilers(path):
        raise CannotBuild(
            f"{kit} takes gcc {newest} or older, and there is only a newer one:"
            f" apt install gcc-{newest} g++-{newest}"
        )
    raise CannotBuild("There is no C++ compiler: apt install build-essential")


def _named(found: Compilers) -> tuple[str, ...]:
    return f"-DCMAKE_C_COMPILER={found.c}", f"-DCMAKE_CXX_COMPILER={found.cxx}"


def _numbers(cards: Sequence[Capability]) -> str:
    return "compute capability " + ", ".join(f"{a}.{b}" for a, b in sorted(set(cards)))
