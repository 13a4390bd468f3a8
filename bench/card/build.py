"""Compiling llama-server for the card that is here, from the kit's sources, by `voltaire server build`'s own code."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from backend.build.build import BuiltServer, Sources, build
from backend.build.recipe import BuildHost, Kind, Recipe, Toolkit, recipe, toolkits, usual_roots
from backend.gpu.nvml import installed_gpus

LIBRARIES = {"cublas": "libcublas.so", "cublasLt": "libcublasLt.so"}
DRIVER = "libcuda.so"
DRIVERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
)


async def compile_for(kind: Kind, sources: Path | None, state: Path) -> BuiltServer:
    """CannotBuild says which step failed, and where its log lies. Without sources the package's are fetched."""
    how = await asyncio.to_thread(recipe_here, kind)
    return await build(how, Sources(sources), state, print)


def recipe_here(kind: Kind) -> Recipe:
    """The product's recipe, and where a toolkit of packages lacks a library, where that lies. Blocks."""
    path = os.environ.get("PATH", os.defpath)
    cards = [gpu.capability for gpu in installed_gpus().gpus if gpu.capability]
    found = toolkits(path, usual_roots()) if kind == "cuda" else ()
    how = recipe(kind, BuildHost(path, cards, found))
    if kind != "cuda":
        return how
    own = next(kit for kit in found if f"-DCMAKE_CUDA_COMPILER={kit.nvcc}" in how.arguments)
    return replace(how, arguments=(*how.arguments, *missing_libraries(own, site_folders())))


def missing_libraries(kit: Toolkit, sites: list[Path]) -> Iterator[str]:
    """Arguments for CMake that name cuBLAS in NVIDIA's Python packages, and the driver's library.

    A CUDA made of such packages has them beside it, not in it, and without the plain names that
    CMake looks for.
    """
    root = kit.nvcc.resolve().parent.parent
    places = [root / "lib64", root / "targets/x86_64-linux/lib", Path("/usr/lib/x86_64-linux-gnu")]
    if not any((place / LIBRARIES["cublas"]).exists() for place in places):
        for site in sites:
            for library in sorted(site.glob(f"nvidia/*/lib/{LIBRARIES['cublas']}.*")):
                folder, version = library.parent, library.name.removeprefix(LIBRARIES["cublas"])
                for name, file in LIBRARIES.items():
                    yield f"-DCUDA_{name}_LIBRARY={folder / (file + version)}"
                yield f"-DCMAKE_CUDA_FLAGS=-I{folder.parent / 'include'}"
                break
            else:
                continue
            break
    if not any((place / "stubs" / DRIVER).exists() for place in places):
        drivers = [Path(place) / f"{DRIVER}.1" for place in DRIVERS]
        driver = next((path for path in drivers if path.exists()), None)
        # Without virtual memory management the driver's library is loaded when it is needed.
        yield f"-DCUDA_cuda_driver_LIBRARY={driver}" if driver else "-DGGML_CUDA_NO_VMM=ON"


def site_folders() -> list[Path]:
    """Where the Pythons on PATH have their packages."""
    code = "import sys; print('\\n'.join(p for p in sys.path if p.endswith('-packages')))"
    folders = dict[str, None]()
    for program in ("python3", sys.executable):
        answer = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False)
        folders |= dict.fromkeys(answer.stdout.split())
    return [Path(folder) for folder in folders]
