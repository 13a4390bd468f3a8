"""The built-in profiles: no flag that a server lacks or that does nothing, and what each needs of its cards."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend.embedded.__main__ import command_line, params_of
from backend.models.fit import FreeMemory, fit_profile, fit_report, verdict
from backend.models.gguf_header import Header
from backend.models.outlook import Machine, profile_candidate
from backend.models.placement import Device, place
from backend.models.profile import load, names
from backend.server import flag_spellings
from fakes.llama_server_flags import LLAMA_SERVER_FLAGS
from fakes.profile_shapes import KNOWN, V100, model_of

MIB, GIB = 2**20, 2**30
HOST = 64 * GIB
UPSTREAM = [name for name in names() if load(name).engine == "llama.cpp"]
# The placement reads the first; llama-server alone makes four slots of its own accord.
ELSEWHERE = {("--split-mode", "layer"), ("--parallel", "1")}


# -- flags ----------------------------------------------------------------------


@pytest.mark.parametrize("name", UPSTREAM)
def test_a_profile_names_no_flag_that_llama_server_lacks(name: str) -> None:
    profile = load(name)
    fitted = flag_spellings.fit(profile.required, profile.optional, LLAMA_SERVER_FLAGS)
    assert (fitted.missing, fitted.left_out) == ((), ())


@pytest.mark.parametrize("name", UPSTREAM)
def test_the_embedded_server_takes_every_flag_and_each_changes_something(name: str) -> None:
    profile = load(name)
    known = flag_spellings.known(command_line().format_help())
    for flag, value in {**profile.required, **profile.optional}.items():
        used = flag_spellings.spelling(flag, known)
        assert used, flag
        given = {"auto": "7"}.get(value, value)
        if (flag, given) in ELSEWHERE:
            continue
        words = [used, given] if given else [used]
        assert parameters(*words) != parameters(), f"{flag} {given} does nothing"


def parameters(*words: str) -> Any:
    """Everything that the server is given, as plain values."""

    def plain(value: Any) -> Any:
        if not type(value).__module__.startswith("xllamacpp") or hasattr(value, "name"):
            return repr(value)
        fields = {n: getattr(value, n) for n in dir(value) if not n.startswith("_")}
        return {n: plain(field) for n, field in fields.items() if not callable(field)}

    return plain(params_of(command_line().parse_args(["-m", "x.gguf", *words])))


# -- files ----------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in names() if load(name).cpu])
def test_a_profile_for_processors_says_what_is_downloaded(name: str, tmp_path: Path) -> None:
    profile = load(name)
    [source] = profile.sources
    assert source.repo and source.file
    assert source.size and 0.5 * GIB < source.size < 4 * GIB
    assert source.sha256 and re.fullmatch("[0-9a-f]{64}", source.sha256)
    machine = Machine((), 8 * GIB, tmp_path)
    here = profile_candidate(profile, machine)
    assert here.runs and "no speed reported" in here.line, "what is known is of cards"
    assert "more than " in here.line, "a window takes memory beside the file"
    assert not profile_candidate(profile, replace(machine, host=GIB // 2)).runs


def test_a_file_is_run_by_the_profile_that_knows_it_else_by_flags_for_any(tmp_path: Path) -> None:
    known = load(str(tmp_path / "Qwen3-1.7B-Q4_K_M.gguf"))
    assert known.model.path == str(tmp_path / "Qwen3-1.7B-Q4_K_M.gguf")
    assert known == replace(load("qwen3-1.7b"), model=known.model)
    other = load(str(tmp_path / "other.gguf"))
    assert (other.name, other.cpu) == ("other", True)
    assert other.sampling == {"temperature": 0.2, "top_p": 0.9}


# -- memory ---------------------------------------------------------------------


@pytest.mark.parametrize("name", KNOWN)
def test_a_profile_fits_the_cards_that_it_is_for(name: str, tmp_path: Path) -> None:
    profile, model, draft = model_of(name, tmp_path)
    cards, size = KNOWN[name].cards, KNOWN[name].card
    devices = [Device(index, size) for index in range(cards)]
    placed = place(profile, model, draft, devices, HOST)
    assert (placed.profile.context, placed.changes) == (profile.context, ())
    fit = fit_profile(placed.profile, model, draft, FreeMemory(cards * size, HOST, cards))
    assert fit.fits and fit.options.cpu_experts == 0
    assert fit.need.gpu / MIB == pytest.approx(profile.vram_mib, rel=0.06)


# -- the pair of the sources ------------------------------------------------------


def test_a_draft_of_another_vocabulary_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    profile, model, _ = model_of("deepseek-coder-v2-lite", tmp_path)
    words = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens.length": 102_400}
    model = Header({**model.values, **words}, model.tensors)
    qwen = Header({**words, "tokenizer.ggml.tokens.length": 151_936}, ())
    assert profile.draft
    placed = place(profile, model, qwen, [Device(0, V100)], HOST)
    assert "151,936" in placed.changes[0] and "102,400" in placed.changes[0]
    assert placed.profile.draft is None and not placed.profile.drafts
    assert placed.profile.flag("--spec-draft-n-max") is None
    report = fit_report(profile, model, qwen, FreeMemory(V100, HOST))
    assert report.draft_refusal == placed.changes[0] and report.own.need.draft == 0
    assert verdict(profile.name, report) == ""


def test_every_profile_says_where_its_file_is_and_whose_its_figures_are() -> None:
    for name in names():
        profile = load(name)
        assert profile.reference.source or profile.model.builtin, name
        for source in profile.sources:
            assert source.builtin or (source.repo and source.file), name
            assert Path(source.file or "x.gguf").suffix == ".gguf"
