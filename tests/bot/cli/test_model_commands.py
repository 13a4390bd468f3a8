"""The commands around models, as a person calls them."""

import json
import os
import re
from pathlib import Path

import pytest

from backend.service import serve_backend
from bot.cli.backend_config import backend_config
from bot.settings import BackendSection, Settings, StateSection
from fakes import gguf_maker
from fakes.command_line import voltaire, voltaire_beside
from fakes.gguf_chain import make_chain
from fakes.gguf_maker import MEDIUM
from fakes.hub import Hub
from fakes.toolkits import cuda, gcc
from fakes.words import saying


def test_what_is_shown_of_ik_llama_cpp_builds_its_server_too(tmp_path: Path) -> None:
    gcc(tmp_path / "bin", 12)
    words = ("--engine", "ik", "--source", str(tmp_path), "--check")
    code, out, err = voltaire(
        tmp_path, "server", "build", "--cpu", *words, env={"PATH": str(tmp_path / "bin")}
    )
    assert (code, err) == (0, "")
    assert out.split()[-1] == "-DLLAMA_BUILD_EXAMPLES=ON"  # the last one counts


def test_a_toolkit_without_the_card_is_exit_1_with_what_to_install(tmp_path: Path) -> None:
    gcc(tmp_path / "bin", 12)
    nvcc = cuda(tmp_path / "cuda", "99.0", "sm_200")
    path = os.pathsep.join([str(nvcc.parent), str(tmp_path / "bin")])
    code, out, err = voltaire(
        tmp_path, "server", "build", "--cuda", "--capability", "9.9", "--check", env={"PATH": path}
    )
    assert (code, out) == (1, "")
    assert err == saying("capability 9.9", "install CUDA 12")


def test_wrong_usage_of_build_and_bench_is_exit_2(tmp_path: Path) -> None:
    for words, sentence in (
        (["server", "build", "--capability", "seven"], "--capability looks like 7.0"),
        (["server", "build", "--engine", "ik"], "ik_llama.cpp is built from a checkout"),
        (["bench", "--server", "/x"], "--server is given twice"),
    ):
        code, _, err = voltaire(tmp_path, *words)
        assert (code, sentence in err) == (2, True), err


def test_what_fits_a_card_that_is_not_here(tmp_path: Path) -> None:
    path = gguf_maker.make(tmp_path / "small.gguf", MEDIUM)
    code, out, _ = voltaire(tmp_path, "model", "fit", str(path), "--vram", "1", "--json")
    found = json.loads(out)
    assert (code, found["fits"], found["card"]) == (0, True, 2**30)
    code, out, _ = voltaire(tmp_path, "model", "fit", str(path), "--vram", "0.5")
    assert code == 1
    assert out.splitlines()[-1] == saying("small with a window", "MiB more on the card")


def test_without_a_name_it_lists_what_fits_best_first(tmp_path: Path) -> None:
    own = tmp_path / ".cache" / "llama.cpp" / "own model.gguf"
    own.parent.mkdir(parents=True)
    gguf_maker.make(own, MEDIUM)
    env = {"HOME": str(tmp_path)}
    code, out, err = voltaire(tmp_path, "model", "fit", "--vram", "16", env=env)
    assert code == 0, err
    fits, _, rest = out.partition("\nDoes not fit:\n")
    assert out.splitlines()[0] == saying("cards of 16 GiB")
    assert fits.index("gemma4-26b-a4b: a window") < fits.index("  pocket: a window")
    assert f"make demo MODEL='{own}'" in fits and "from llama.cpp" in fits
    assert "voltaire model pull gemma4-26b-a4b  (14.5 GiB)" in fits
    assert fits.index("gpt-oss-20b: a window") < fits.index("qwen2.5-3b: a window")
    assert "llama3.3-70b-2x" in rest.splitlines()[0], "names alone: each would be a line"
    code, out, _ = voltaire(tmp_path, "model", "fit", "--vram", "16", "--vram", "16", env=env)
    assert out.splitlines()[0] == saying("cards of 16, 16 GiB")
    assert out == saying("llama3.3-70b-2x: ", "window of 16,384", "30.3 of 32.0 GiB", "2 cards")
    code, out, _ = voltaire(tmp_path, "model", "fit", "--ram", "21", env=env)
    assert ("Does not fit:" in out) == ("says what is missing" in out)
    code, out, _ = voltaire(tmp_path, "model", "fit", "--json", env=env)
    rows = {row["name"]: row for row in json.loads(out)}
    assert (rows["own model"]["runs"], rows["own model"]["path"]) == (True, str(own))
    assert rows["gemma4-26b-a4b"]["runs"] is False, "it wants a card"


def test_each_size_of_card_has_its_table(tmp_path: Path, nvml: Path | None) -> None:
    if nvml is None:
        pytest.skip("needs a C compiler")
    path = gguf_maker.make(tmp_path / "small.gguf", MEDIUM)
    scene = tmp_path / "scene"
    scene.write_text(f"cards 3\nused 0\ntotal {16 << 30}\ntotal1 {1 << 29}\n")
    env = {"FAKE_NVML": str(scene)}
    code, out, _ = voltaire(tmp_path, "model", "fit", str(path), "--json", env=env)
    found = json.loads(out)
    assert (code, found["card"], found["fits"]) == (0, 16 << 30, True)
    assert [(card["card"], card["fits"]) for card in found["smaller_cards"]] == [(1 << 29, False)]
    _, out, _ = voltaire(tmp_path, "model", "fit", str(path), env=env)
    assert out.splitlines()[-1] == saying("MiB more on the card")
    assert sum(line.startswith("small: llama") for line in out.splitlines()) == 2


def test_the_list_shows_size_and_fit(tmp_path: Path) -> None:
    code, out, err = voltaire(tmp_path, "model", "list", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0, err
    assert rows["pocket"]["fits"] is True and 4 << 20 < rows["pocket"]["bytes"] < 8 << 20
    assert rows["gpt-oss-20b"]["bytes"] > 10 << 30 and rows["coder-draft"]["bytes"] is None
    assert rows["gemma4-26b-a4b"]["fits"] is False, "it wants a card"
    code, out, _ = voltaire(tmp_path, "model", "list")
    assert "qwen2.5-3b: " in out and "T1200" not in out, "a card's speed, and there is none"
    (named,) = (line for line in out.splitlines() if "gemma4-26b-a4b" in line)
    assert named.startswith("Do not fit") and "gpt-oss-20b" in named, "all of them in one line"


def test_the_model_that_is_used_is_the_one_of_the_next_start(tmp_path: Path) -> None:
    """With the backend stopped; a second backend is none the wiser by the configuration."""
    model = make_chain(tmp_path / "mine.gguf", "Hello from mine.")
    code, out, err = voltaire(tmp_path, "model", "use", str(model))
    assert code == 0, err
    kept = tmp_path / "s" / "voltaire" / "profile.json"
    used_now, tried = out.splitlines()
    assert tried == saying("Do not trust it with tools"), "it answers each wish with the same words"
    assert used_now == saying("mine is in use", f"({kept})")
    code, out, err = voltaire(tmp_path, "model", "list", "--json")
    [used] = [row for row in json.loads(out) if row["current"]]
    assert (used["name"], used["path"], used["here"]) == ("mine", str(model), True)
    assert used["selftest"] == tried
    code, out, _ = voltaire(tmp_path, "status", "--json")
    server = json.loads(out)["backend"]
    assert (server["state"], server["profile"], server["model"]) == ("stopped", "mine", "mine.gguf")
    _, out, _ = voltaire(tmp_path, "status")
    assert "model when it starts: mine.gguf, profile mine" in out.splitlines()
    _, out, _ = voltaire(tmp_path, "model", "fit")
    assert f"make demo MODEL={model}" in out and "from this configuration" in out
    _, out, _ = voltaire(tmp_path, "config")
    assert saying("The next start serves", str(model)) in out.splitlines()
    code, out, err = voltaire(tmp_path, "ask", "hi")
    assert (code, out) == (0, "Hello from mine.\n"), err


@pytest.mark.parametrize(("named", "used"), [("far", "far"), ("a/b/m.gguf", "{path}")])
async def test_a_model_that_was_pulled_is_told_how_to_be_used(
    tmp_path: Path, named: str, used: str
) -> None:
    own = tmp_path / "x" / "voltaire" / "profiles"
    own.mkdir(parents=True)
    (own / "far.toml").write_text(
        'title = "F"\ncpu = true\ncontext = 8192\n[model]\nrepo = "a/b"\nfile = "m.gguf"\n'
    )
    async with Hub(b"weights").running() as hub:
        code, out, err = await voltaire_beside(
            tmp_path, "model", "pull", named, env={"HF_ENDPOINT": hub.url}
        )
    path = tmp_path / "s" / "voltaire" / "models" / "m.gguf"
    assert (code, path.read_bytes()) == (0, b"weights"), err
    told = [f"Here: {path}", f"Use it: voltaire model use {used.format(path=path)}"]
    assert out.splitlines()[-2:] == told


async def test_a_file_that_runs_for_this_start_alone_is_not_called_unfit(tmp_path: Path) -> None:
    model = make_chain(tmp_path / "mine.gguf", "Hello from mine.")
    settings = Settings(
        state=StateSection(dir=tmp_path / "s" / "voltaire"),
        backend=BackendSection(profile=str(model)),
    )
    async with serve_backend(backend_config(settings)):
        code, out, err = await voltaire_beside(tmp_path, "model", "list")
        first, *_ = out.splitlines()
        assert code == 0, err
        # Its title is the file once that is loaded.
        assert re.fullmatch(r"\* mine: mine(?:\.gguf)? \(size not known; fit not known\)", first)
        _, out, _ = await voltaire_beside(tmp_path, "model", "fit")
        assert "Fits, best first:\n" in out and "mine" not in out


@pytest.mark.slow
async def test_a_model_other_than_the_one_that_runs_is_refused_with_the_command_that_switches(
    tmp_path: Path,
) -> None:
    model = make_chain(tmp_path / "mine.gguf", "Hello from mine.")
    settings = Settings(state=StateSection(dir=tmp_path / "s" / "voltaire"))
    async with serve_backend(backend_config(settings)):
        code, out, err = await voltaire_beside(tmp_path, "ask", "--model", str(model), "hi")
        assert (code, out) == (1, "")
        assert err == saying("serves pocket", f"voltaire model use {model}")
        code, out, err = await voltaire_beside(tmp_path, "model", "use", str(model))
        assert (code, out.splitlines()[0]) == (0, saying("mine is in use")), err
        code, out, _ = await voltaire_beside(tmp_path, "ask", "--model", str(model), "hi")
        assert (code, out) == (0, "Hello from mine.\n")
    code, out, _ = await voltaire_beside(tmp_path, "status", "--json")
    assert json.loads(out)["backend"]["profile"] == "mine", "kept for the next start"


def test_a_model_for_search_by_meaning_is_kept_once_its_file_is_there(tmp_path: Path) -> None:
    settings = tmp_path / "x" / "voltaire" / "config.toml"
    code, out, _ = voltaire(tmp_path, "model", "list", "--embedding")
    assert code == 0
    assert "embeddinggemma-300m: " in out and "Do not fit" not in out, "they run on a processor"
    assert "pocket" not in out
    use = ("model", "use", "--embedding", "embeddinggemma-300m")
    code, _, err = voltaire(tmp_path, *use)
    assert (code, err) == (1, saying("not downloaded", "voltaire model pull embeddinggemma-300m"))
    code, _, err = voltaire(tmp_path, "model", "use", "--embedding", "nothing")
    assert (code, err) == (2, saying("no embedding model called nothing"))
    model = tmp_path / "s" / "voltaire" / "models" / "embeddinggemma-300M-Q8_0.gguf"
    model.parent.mkdir(parents=True)
    model.touch()
    settings.parent.mkdir(parents=True)
    settings.write_text('[agent]\ntimezone = "UTC"\n')
    assert voltaire(tmp_path, *use)[0] == 0
    assert 'embedding = "embeddinggemma-300m"' in settings.read_text()
    assert voltaire(tmp_path, "model", "use", "--embedding", "none")[0] == 0
    assert "embeddinggemma" not in settings.read_text()
