"""How a server would be built, decided from what is installed; nothing is compiled here."""

import os
from pathlib import Path

import pytest

from backend.build.recipe import (
    COMMON,
    BuildHost,
    CannotBuild,
    Compilers,
    Recipe,
    compilers,
    one_toolkit,
    recipe,
    toolkits,
)
from fakes.toolkits import cuda, gcc, program
from fakes.words import saying

V100 = (7, 0)
OLD = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_90"
NEW = "sm_75 sm_80 sm_90 sm_120"


def path_of(*folders: Path) -> str:
    return os.pathsep.join(map(str, folders))


@pytest.fixture
def usr(tmp_path: Path) -> Path:
    """A /usr/bin with gcc 12, as Debian 12 has it."""
    gcc(tmp_path / "usr", 12)
    return tmp_path / "usr"


def test_a_v100_gets_cuda_11_with_its_own_compiler(tmp_path: Path, usr: Path) -> None:
    gcc(usr, 11, "-11")
    nvcc = cuda(tmp_path / "cuda-11.8", "11.8", OLD, newest_gcc=11)
    newer = cuda(tmp_path / "cuda-13", "13.0", NEW, newest_gcc=15)
    path = path_of(newer.parent, usr)
    found = toolkits(path, [tmp_path / "cuda-11.8"])
    assert recipe("cuda", BuildHost(path, [V100], found)) == Recipe(
        "cuda",
        saying("CUDA 11.8", "7.0", "gcc 11"),
        (
            *COMMON,
            "-DGGML_CUDA=ON",
            "-DCMAKE_CUDA_ARCHITECTURES=70-real",
            f"-DCMAKE_CUDA_COMPILER={nvcc}",
            f"-DCMAKE_CUDA_HOST_COMPILER={usr / 'g++-11'}",
            "-DGGML_CUDA_FORCE_MMQ=ON",
            f"-DCMAKE_C_COMPILER={usr / 'gcc-11'}",
            f"-DCMAKE_CXX_COMPILER={usr / 'g++-11'}",
        ),
        path_of(nvcc.parent, usr),
    )


def test_a_newer_card_gets_the_newest_toolkit(tmp_path: Path, usr: Path) -> None:
    cuda(tmp_path / "a", "12.4", OLD)
    cuda(tmp_path / "b", "13.0", NEW)
    found = toolkits(str(usr), [tmp_path / "a", tmp_path / "b"])
    made = recipe("cuda", BuildHost(str(usr), [(9, 0)], found))
    assert made.title == saying("CUDA 13.0", "9.0", "gcc 12")
    assert "-DGGML_CUDA_FORCE_MMQ=ON" not in made.arguments
    both = recipe("cuda", BuildHost(str(usr), [(9, 0), V100], found))
    assert "-DCMAKE_CUDA_ARCHITECTURES=70-real;90-real" in both.arguments
    assert both.title.startswith("CUDA 12.4")


@pytest.mark.parametrize(("cores", "here"), [(1, 84), (2, 42), (16, 6)])
def test_the_estimate_is_for_the_cores_of_this_machine(
    cores: int, here: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    estimate = Recipe("cuda", "", (), "").estimate
    assert estimate == saying("about 84 minutes", f"{here} on the {cores} here")


@pytest.mark.parametrize(
    ("version", "codes", "sentence"),
    [
        (
            "13.0",
            NEW,
            r"CUDA 13\.0 \(.*/nvcc\) no longer compiles for compute capability 7\.0\. For .* install"
            r" CUDA 11\.8 or 12 \(13 dropped .*apt install --no-install-recommends nvidia-cuda-toolkit"
            r" gcc-11 g\+\+-11` from contrib and non-free",
        ),
        (
            "11.8",
            OLD,
            r"CUDA 11\.8 takes gcc 11 or older, and .*: apt install gcc-11 g\+\+-11",
        ),
    ],
)
def test_what_the_owner_must_install_is_said(
    tmp_path: Path, usr: Path, version: str, codes: str, sentence: str
) -> None:
    cuda(tmp_path / "cuda", version, codes)
    with pytest.raises(CannotBuild, match=sentence):
        recipe("cuda", BuildHost(str(usr), [V100], toolkits(str(usr), [tmp_path / "cuda"])))


def test_what_is_missing_altogether_is_said(tmp_path: Path, usr: Path) -> None:
    with pytest.raises(CannotBuild, match="No NVIDIA card was found; .*--capability 7.0"):
        recipe("cuda", BuildHost(str(usr)))
    with pytest.raises(CannotBuild, match="No CUDA toolkit was found. For compute capability 7.0"):
        recipe("cuda", BuildHost(str(usr), [V100]))
    with pytest.raises(CannotBuild, match="no C.. compiler: apt install build-essential"):
        recipe("cpu", BuildHost(str(tmp_path)))


def test_the_processor_needs_a_compiler_only(usr: Path) -> None:
    own = (f"-DCMAKE_C_COMPILER={usr / 'gcc'}", f"-DCMAKE_CXX_COMPILER={usr / 'g++'}")
    plain = Recipe("cpu", "CPU, gcc 12", (*COMMON, *own), str(usr))
    assert recipe("cpu", BuildHost(str(usr))) == plain


def test_the_compiler_is_the_newest_that_the_toolkit_takes(tmp_path: Path, usr: Path) -> None:
    gcc(usr, 10, "-10")
    gcc(usr, 9, "-9")
    assert compilers(str(usr)) == Compilers(usr / "gcc", usr / "g++", 12)
    assert compilers(str(usr), 11) == Compilers(usr / "gcc-10", usr / "g++-10", 10)
    assert compilers(str(tmp_path)) is None


def test_toolkits_that_do_not_answer_are_none(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "nvcc", "exit 1")
    assert toolkits("", [tmp_path, tmp_path / "nowhere"]) == []


def test_path_holds_one_toolkit_only(tmp_path: Path, usr: Path) -> None:
    cuda(tmp_path / "a", "11.8", OLD)
    other = cuda(tmp_path / "b", "12.9", OLD).parent
    kit = toolkits("", [tmp_path / "a"])[0]
    assert one_toolkit(path_of(other, usr, kit.nvcc.parent), kit) == path_of(kit.nvcc.parent, usr)


def test_the_systems_own_folder_stays_on_path(tmp_path: Path, usr: Path) -> None:
    """Debian's toolkit lies beside the linker."""
    old = cuda(tmp_path / "old", "11.8", OLD).parent
    new = cuda(tmp_path / "new", "13.0", NEW).parent
    program(old / "ld", "exit 0")
    here = toolkits(path_of(usr, old, new), [])
    assert [one_toolkit(path_of(usr, old, new), kit) for kit in here] == [
        path_of(new, usr, old),
        path_of(old, usr),
    ]


def test_of_one_toolkit_the_first_on_path_is_taken(tmp_path: Path) -> None:
    first, second = (cuda(tmp_path / name, "11.8", OLD) for name in "ab")
    found = toolkits(path_of(first.parent, second.parent), [])
    assert [kit.nvcc for kit in found] == [first]
