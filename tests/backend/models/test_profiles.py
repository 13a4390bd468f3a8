"""The built-in profiles: no flag that a server lacks or that does nothing, and what each needs of its cards."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend.embedded.__main__ import command_line, params_of
from backend.models.fit import FreeMemory, fit_profile, fit_report, sum_text, verdict
from backend.models.gguf_header import Header, read_header
from backend.models.placement import Device, DoesNotFit, place
from backend.models.profile import Profile, load, names
from backend.server import flags
from fakes.gguf_shapes import make
from fakes.llama_server_flags import LLAMA_SERVER_FLAGS

MIB, GIB = 2**20, 2**30
V100 = 16_144 * MIB  # what the driver gives of 16 GB
HOST = 64 * GIB
UPSTREAM = [name for name in names() if load(name).engine == "llama.cpp"]
# Where the shapes are known: the file's size in GB, its shape, the cards it is for.
KNOWN = {
    "gemma4-26b-a4b": (14.4, "gemma4-26b-a4b", 1, V100),
    "gemma4-26b-a4b-mtp": (14.4, "gemma4-26b-a4b", 1, V100),
    "gpt-oss-20b": (12.11, "gpt-oss-20b", 1, V100),
    "devstral-small-2": (12.78, "devstral-small-2-24b", 1, V100),
    "deepseek-coder-v2-lite": (10.4, "deepseek-coder-v2-lite", 1, V100),
    "qwen3.6-35b-a3b-16gb": (13.4, "qwen3.6-35b-a3b", 1, V100),
    "qwen3.6-35b-a3b-32gb": (22.66, "qwen3.6-35b-a3b", 1, 2 * V100),
    "qwen3.8-27b": (17.56, "qwen3.6-27b", 1, 2 * V100),
    "llama3.3-70b-2x": (27.5, "llama3.3-70b", 2, V100),
}
# The placement reads the first; llama-server alone makes four slots of its own accord.
ELSEWHERE = {("--split-mode", "layer"), ("--parallel", "1")}


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Header]:
    folder = tmp_path_factory.mktemp("shapes")
    shapes = {shape for _, shape, _, _ in KNOWN.values()} | {"gemma4-26b-a4b-mtp"}
    return {shape: read_header(make(folder, shape)) for shape in shapes}


def sized(header: Header, gigabytes: float) -> Header:
    """The shape with the weights of a file of this size."""
    factor = gigabytes * 1e9 / header.weights
    tensors = (replace(tensor, size=round(tensor.size * factor)) for tensor in header.tensors)
    return Header(header.values, tuple(tensors), header.size)


def model_of(name: str, headers: dict[str, Header]) -> tuple[Profile, Header, Header | None]:
    size, shape, _, _ = KNOWN[name]
    draft = headers["gemma4-26b-a4b-mtp"] if name == "gemma4-26b-a4b-mtp" else None
    return load(name), sized(headers[shape], size), draft


# -- flags ----------------------------------------------------------------------


@pytest.mark.parametrize("name", UPSTREAM)
def test_a_profile_names_no_flag_that_llama_server_lacks(name: str) -> None:
    profile = load(name)
    fitted = flags.fit(profile.required, profile.optional, LLAMA_SERVER_FLAGS)
    assert (fitted.missing, fitted.left_out) == ((), ())


@pytest.mark.parametrize("name", UPSTREAM)
def test_the_embedded_server_takes_every_flag_and_each_changes_something(name: str) -> None:
    profile = load(name)
    known = flags.known(command_line().format_help())
    for flag, value in {**profile.required, **profile.optional}.items():
        used = flags.spelling(flag, known)
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


def test_a_flag_that_does_nothing_is_noticed() -> None:
    assert parameters("--batch-size", "2048") == parameters() != parameters("--batch-size", "1024")


# -- memory ---------------------------------------------------------------------


@pytest.mark.parametrize("name", KNOWN)
def test_a_profile_fits_the_cards_that_it_is_for(name: str, headers: dict[str, Header]) -> None:
    profile, model, draft = model_of(name, headers)
    _, _, cards, size = KNOWN[name]
    devices = [Device(index, size) for index in range(cards)]
    placed = place(profile, model, draft, devices, HOST)
    assert (placed.profile.context, placed.changed) == (profile.context, "")
    fit = fit_profile(placed.profile, model, draft, FreeMemory(cards * size, HOST, cards))
    assert fit.fits and fit.options.cpu_experts == 0
    assert fit.need.gpu / MIB == pytest.approx(profile.vram_mib, rel=0.06)


@pytest.mark.parametrize("name", KNOWN)
def test_the_sum_grows_with_the_window_by_what_the_cache_and_the_masks_take(
    name: str, headers: dict[str, Header]
) -> None:
    profile, model, draft = model_of(name, headers)
    _, _, cards, size = KNOWN[name]
    free = FreeMemory(cards * size, HOST, cards)
    fits = [
        fit_profile(replace(profile, context=context), model, draft, free)
        for context in (8192, 32_768, 131_072)
    ]
    needs = [fit.need for fit in fits]
    assert len({(need.weights, need.overhead) for need in needs}) == 1
    assert needs[0].gpu < needs[1].gpu < needs[2].gpu
    assert [fit.free for fit in fits] == [free.gpu - need.gpu - 300 * MIB for need in needs]
    for fit in fits:
        whole = re.search(r"= ([\d.]+) GiB$", sum_text(fit))
        assert whole and float(whole[1]) * GIB == pytest.approx(fit.need.gpu + 300 * MIB, rel=0.001)


def test_a_70b_of_four_bits_is_refused_on_two_cards_with_the_sum(
    headers: dict[str, Header],
) -> None:
    profile = load("llama3.3-70b-2x")
    model = sized(headers["llama3.3-70b"], 42.5)
    with pytest.raises(DoesNotFit) as refused:
        place(profile, model, None, [Device(0, V100), Device(1, V100)], HOST)
    found = re.search(
        r"needs ([\d,]+) MiB more on the 2 cards \((.*) = ([\d.]+) GiB\)", str(refused.value)
    )
    assert found
    missing, whole = float(found[1].replace(",", "")) * MIB, float(found[3]) * GIB
    assert whole - missing == pytest.approx(2 * V100, rel=0.001)
    assert [part.split()[1] for part in found[2].split(" + ")] == [
        "weights", "cache", "compute", "CUDA", "headroom",
    ]  # fmt: skip
    assert "no window fits" in str(refused.value)


# -- the pair of the sources ------------------------------------------------------


def test_a_draft_of_another_vocabulary_is_left_out_and_that_is_said(
    headers: dict[str, Header],
) -> None:
    profile, model, _ = model_of("deepseek-coder-v2-lite", headers)
    words = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens.length": 102_400}
    model = Header({**model.values, **words}, model.tensors)
    qwen = Header({**words, "tokenizer.ggml.tokens.length": 151_936}, ())
    assert profile.draft
    placed = place(profile, model, qwen, [Device(0, V100)], HOST)
    assert "151,936" in placed.changed and "102,400" in placed.changed
    assert placed.profile.draft is None and not placed.profile.drafts
    assert placed.profile.flag("--spec-draft-n-max") is None
    report = fit_report(profile, model, qwen, FreeMemory(V100, HOST))
    assert report.draft_refusal == placed.changed and report.own.need.draft == 0
    assert verdict(profile.name, report) == ""


def test_every_profile_says_where_its_file_is_and_whose_its_figures_are() -> None:
    for name in names():
        profile = load(name)
        assert profile.reference.source or profile.model.builtin, name
        for source in profile.sources:
            assert source.builtin or (source.repo and source.file), name
            assert Path(source.file or "x.gguf").suffix == ".gguf"
