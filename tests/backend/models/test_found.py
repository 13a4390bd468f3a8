"""Models that other programs have left on the machine, in folders laid out as theirs."""

import json
from pathlib import Path

import pytest

from backend.models.found import OLLAMA_MODEL, FoundModel, found_models
from backend.models.outlook import PREFERRED_CPU, Machine, candidates
from backend.models.profile import load, names
from fakes import gguf_maker
from fakes.gguf_maker import MEDIUM

MIB = 1 << 20


def file(path: Path, mib: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as made:
        made.truncate(mib * MIB)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    cache = tmp_path / ".cache"
    repo = cache / "huggingface" / "hub" / "models--Qwen--Qwen3-4B-GGUF"
    blob = file(repo / "blobs" / "abc", 5)
    snapshot = repo / "snapshots" / "c1" / "Qwen3-4B-Q4_K_M.gguf"
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to(blob)
    studio = tmp_path / ".lmstudio" / "models" / "org" / "repo"
    file(studio / "big-00001-of-00002.gguf", 4)
    file(studio / "big-00002-of-00002.gguf", 3)
    file(studio / "mmproj-big.gguf", 9)
    file(cache / "llama.cpp" / "tiny.gguf", 2)
    file(cache / "llama.cpp" / "stub.gguf", 0)
    ollama = tmp_path / ".ollama" / "models"
    file(ollama / "blobs" / "sha256-77", 6)
    manifest = ollama / "manifests" / "registry.ollama.ai" / "library" / "llama3" / "8b"
    manifest.parent.mkdir(parents=True)
    layers = [{"mediaType": OLLAMA_MODEL, "digest": "sha256:77", "size": 6 * MIB}]
    manifest.write_text(json.dumps({"layers": layers}))
    for name, text in (("broken", "{"), ("other", "[]"), ("out", '{"layers": [{"digest": 5}]}')):
        (manifest.parent / name).write_text(text)
    trap = [{"mediaType": OLLAMA_MODEL, "digest": "../../../../.cache/llama.cpp/tiny.gguf"}]
    (manifest.parent / "trap").write_text(json.dumps({"layers": trap}))
    return tmp_path


def test_each_programs_folder_is_known(home: Path) -> None:
    found = [(each.name, each.size // MIB, each.place) for each in found_models(home, {})]
    assert found == [
        ("big-00001-of-00002", 7, "LM Studio"),
        ("llama3:8b", 6, "Ollama"),
        ("Qwen3-4B-Q4_K_M", 5, "Hugging Face"),
        ("tiny", 2, "llama.cpp"),
    ]


def test_folders_that_were_moved_are_found_where_the_environment_says(
    home: Path, tmp_path: Path
) -> None:
    env = {"HF_HUB_CACHE": str(home / ".cache" / "huggingface" / "hub"), "LLAMA_CACHE": "/nowhere"}
    found = [each.name for each in found_models(tmp_path / "another", env)]
    assert found == ["Qwen3-4B-Q4_K_M"]


def test_what_fits_is_listed_best_first(tmp_path: Path) -> None:
    path = gguf_maker.make(tmp_path / "own.gguf", MEDIUM)
    mine = FoundModel("own", path, path.stat().st_size, "LM Studio")
    profiles = [load(name) for name in names()]

    def listed(*cards: float) -> list[tuple[str, bool | None]]:
        machine = Machine(cards, 64 << 30, tmp_path)
        return [(each.name, each.runs) for each in candidates(machine, profiles, [mine])]

    none, small, large = listed(), listed(4.0), listed(32.0)
    assert [name for name, runs in none if runs] == [
        *PREFERRED_CPU,
        *("gemma3-4b", "gemma3-1b"),  # for talk
        *("own", "pocket"),
    ]
    fits = [name for name, runs in small if runs]
    assert (fits[0], fits[-1], "own" in fits) == ("qwen2.5-3b", "pocket", True)
    assert large[0] == ("qwen3.6-35b-a3b-q6-2x", True)
    assert [runs for _, runs in large] == sorted(
        (runs for _, runs in large), key=[True, None, False].index
    )
