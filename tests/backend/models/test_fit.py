"""What is predicted from a header is what the real server logs; what cannot fit is told before the start."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from backend.models.fit import (
    FreeMemory,
    draft_refusal,
    fit_options,
    fit_profile,
    fit_report,
    fit_with_experts,
    refusal,
    run_options,
    shortage,
    sum_text,
    verdict,
)
from backend.models.gguf_header import Header, NotAModel, Tensor, read_header
from backend.models.memory import (
    RunOptions,
    checkpoint_bytes,
    compute_bytes,
    draft_bytes,
    kv_bytes,
    loaded_weights,
    memory_need,
    overridden_bytes,
)
from backend.models.profile import Profile, Source
from fakes.gguf_maker import MEDIUM, Kind, Shape, make
from fakes.gguf_random import make_random, narrowed
from fakes.gguf_shapes import SHAPES
from fakes.gguf_shapes import make as make_shape
from fakes.llama_checkpoint import checkpoint
from fakes.llama_dry_run import dry_run, server_log
from fakes.words import saying

MIB, GIB = 2**20, 2**30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


# -- real shapes ---------------------------------------------------------------


# Of windows with experts one, and one of recurrent states; `make test-long` has the others.
SAMPLE = ("gpt-oss-20b", "qwen3.6-27b")


def by_day(names: Iterable[str], day: Sequence[str]) -> pytest.MarkDecorator:
    """Every name, those that are not in `day` for make test-long."""
    marked = [pytest.param(n, marks=() if n in day else pytest.mark.slow) for n in names]
    return pytest.mark.parametrize("name", marked)


@by_day(SHAPES, SAMPLE)
async def test_a_real_model_needs_what_the_server_says(tmp_path: Path, name: str) -> None:
    path = make_shape(tmp_path, name)
    model = read_header(path)
    for context in (8192, 131_072):
        options = RunOptions(context, 512, "q8_0", "f16")
        flags = ("-c", str(context), "-ctk", "q8_0", "-np", "1", "-ub", "512", "-fa", "on")
        found = await dry_run(path, *flags)
        assert kv_bytes(model, options) / MIB == pytest.approx(found.kv, rel=0.01)
        assert compute_bytes(model, options) / MIB == pytest.approx(found.compute, rel=0.05)
        unused = model.weights - loaded_weights(model, options)
        assert unused / MIB == pytest.approx(found.unused, abs=0.1)


@by_day(["qwen3.6-35b-a3b", "qwen3.6-27b"], ["qwen3.6-35b-a3b"])
async def test_a_head_that_drafts_has_a_context_of_its_own(tmp_path: Path, name: str) -> None:
    path = make_shape(tmp_path, name)
    model = read_header(path)
    drafting = ("--spec-type", "draft-mtp", "--spec-draft-n-max", "2")
    for context in (8192, 131_072):
        options = RunOptions(context, 1024, "q8_0", "q8_0", mtp_tokens=2)
        flags = ("-c", str(context), "-ctk", "q8_0", "-ctv", "q8_0", "-np", "1", "-ub", "1024")
        found = await dry_run(path, *flags, "-fa", "on", *drafting)
        assert kv_bytes(model, options) / MIB == pytest.approx(found.kv, rel=0.01)
        assert found.mtp_compute > 0 and found.unused == 0
        compute = compute_bytes(model, options) / MIB
        logged_compute = found.compute + found.mtp_compute
        assert logged_compute <= compute + 1
        assert compute == pytest.approx(logged_compute, rel=0.03)
        everything = found.kv + found.compute + found.mtp_compute
        assert kv_bytes(model, options) / MIB + compute == pytest.approx(everything, rel=0.05)
    assert loaded_weights(model, options) == model.weights


@by_day(["gemma3-4b", "qwen3.6-27b"], ["gemma3-4b"])
@pytest.mark.parametrize(
    ("flag", "options"),
    [
        ((), RunOptions(32_768, 256, slots=4)),
        (("-kvu",), RunOptions(32_768, 256, slots=4, unified=True)),
        (("--swa-full",), RunOptions(32_768, 256, slots=4, swa_full=True)),
    ],
)
async def test_slots_share_the_buffers(
    tmp_path: Path, name: str, flag: tuple[str, ...], options: RunOptions
) -> None:
    path = make_shape(tmp_path, name)
    flags = ("-c", "32768", "-np", "4", "-ub", "256", "-fa", "on", *flag)
    found = await dry_run(path, *flags)
    model = read_header(path)
    assert kv_bytes(model, options) / MIB == pytest.approx(found.kv, rel=0.01)
    assert compute_bytes(model, options) / MIB == pytest.approx(found.compute, rel=0.05)


@pytest.mark.parametrize("kind", [pytest.param("gemma3", marks=pytest.mark.slow), "lfm2"])
async def test_a_context_checkpoint_is_as_large_as_the_server_says(
    tmp_path: Path, kind: Kind
) -> None:
    """Sliding windows and recurrent states; the server adds some KiB of its own."""
    path = make(tmp_path / "m.gguf", Shape(kind, width=512, heads=8, kv_heads=8, window=256))
    found = await checkpoint(path, 400, "-c", "2048", "-ub", "128")
    size = checkpoint_bytes(read_header(path), RunOptions(2048, 128)) / MIB
    assert found.mib == pytest.approx(size, rel=0.01, abs=0.01)


@pytest.mark.slow  # a minute each
@pytest.mark.parametrize("drafted", [0, 3])
async def test_a_checkpoint_of_qwen36_is_as_large_as_the_server_says(
    tmp_path: Path, drafted: int
) -> None:
    """62.8 MiB of recurrent states; where its own head drafts, all that this keeps of the chat besides."""
    path = make_random(tmp_path / "m.gguf", narrowed(SHAPES["qwen3.6-35b-a3b"]))
    drafting = ("--spec-type", "draft-mtp", "--spec-draft-n-max", str(drafted)) * bool(drafted)
    found = await checkpoint(path, 1100, "-c", "2048", "-ub", "128", *drafting)
    options = RunOptions(2048, 128, mtp_tokens=drafted)
    model = read_header(path)
    size = checkpoint_bytes(model, options, found.tokens) / MIB
    assert found.mib == pytest.approx(size, rel=0.001)
    assert found.mib > (64 if drafted else 62.8)
    whole = replace(options, context=131_072)
    assert memory_need(model, whole).checkpoints == 32 * checkpoint_bytes(model, whole, 65_536)
    assert (checkpoint_bytes(model, whole, 65_536) / MIB > 190) == bool(drafted)


@by_day([n for n in SHAPES if "expert_count" in SHAPES[n].values], ["gpt-oss-20b"])
async def test_experts_in_host_memory_are_those_that_the_server_leaves_there(
    tmp_path: Path, name: str
) -> None:
    path = make_shape(tmp_path, name)
    model = read_header(path)
    down = r"blk\.[0-9]\.ffn_down_exps"
    for flags, options in (
        (("--n-cpu-moe", "7"), RunOptions(8192, cpu_experts=7)),
        (("-ot", f"{down}=CPU"), RunOptions(8192, on_host=(down,))),
    ):
        found = await dry_run(path, "-c", "8192", "-np", "1", "-fa", "on", *flags)
        assert overridden_bytes(model, options) / MIB == pytest.approx(found.on_host, rel=0.01)
        need, whole = memory_need(model, options), memory_need(model, RunOptions(8192))
        moved = overridden_bytes(model, options)
        assert (whole.weights - need.weights, need.host_weights - whole.host_weights) == (
            moved,
            moved,
        )


def test_tensors_are_left_in_host_memory_by_any_flag_that_says_so() -> None:
    free = FreeMemory(16 * GIB, 64 * GIB)

    def on_host(**flags: str) -> int:
        given = {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
        profile = replace(PROFILE, required={}, optional=given)
        return overridden_bytes(moe(), run_options(profile, moe(), free)) // MIB

    assert (
        on_host()
        == on_host(override_tensor="up_exps=CUDA0")
        == on_host(override_tensor="(=CPU")
        == 0
    )
    assert on_host(n_cpu_moe="2") == 800
    assert on_host(cpu_moe="") == on_host(override_tensor="exps=CPU") == 16_000
    assert on_host(override_tensor=r"blk\.1\.ffn_.*=CPU,attn_q=CPU") == 400 + 40 * 20


# -- options and free memory, on headers written by hand -----------------------------


def moe(experts: int = 40, expert: int = 400 * MIB) -> Header:
    values = {
        "general.architecture": "qwen3moe",
        "qwen3moe.block_count": experts,
        "qwen3moe.embedding_length": 2048,
        "qwen3moe.attention.head_count": 32,
        "qwen3moe.attention.head_count_kv": 4,
        "qwen3moe.attention.key_length": 128,
        "qwen3moe.attention.value_length": 128,
        "qwen3moe.context_length": 131072,
        "qwen3moe.feed_forward_length": 6144,
        "qwen3moe.expert_used_count": 8,
        "tokenizer.ggml.tokens.length": 151936,
    }
    tensors = [
        Tensor("token_embd.weight", (2048, 151936), 300 * MIB),
        Tensor("output.weight", (2048, 151936), 300 * MIB),
    ]
    tensors += [
        Tensor(f"blk.{n}.ffn_up_exps.weight", (2048, 768, 128), expert) for n in range(experts)
    ]
    tensors += [Tensor(f"blk.{n}.attn_q.weight", (1,), 20 * MIB) for n in range(experts)]
    return Header(values, tuple(tensors))


KINDS: tuple[Kind, ...] = ("gemma3", "llama")
PROFILE = Profile(
    "p",
    "P",
    32768,
    Source(path="x"),
    required={"--n-cpu-moe": "auto", "-ctk": "q8_0", "-ctv": "q8_0"},
)


def test_experts_go_to_host_memory_until_the_card_holds_the_rest() -> None:
    model, options = moe(), RunOptions(32768, cache_k="q8_0", cache_v="q8_0")
    free = FreeMemory(int(15.78 * GIB), 48 * GIB)
    assert not fit_options(model, options, free).fits
    found = fit_with_experts(model, options, free)
    assert found.fits and 0 < found.options.cpu_experts < 40
    assert not fit_options(
        model, replace(options, cpu_experts=found.options.cpu_experts - 1), free
    ).fits
    assert (
        memory_need(model, found.options).host_weights
        == 300 * MIB + found.options.cpu_experts * 400 * MIB
    )
    assert fit_profile(PROFILE, model, None, free) == found
    wider = fit_with_experts(model, replace(options, context=131072), free)
    assert wider.options.cpu_experts > found.options.cpu_experts
    assert not fit_with_experts(model, options, FreeMemory(free.gpu, 2 * GIB)).fits


def test_recurrent_layers_keep_a_state_and_no_cache() -> None:
    values = {
        "general.architecture": "qwen35moe",
        "qwen35moe.block_count": 9,
        "qwen35moe.nextn_predict_layers": 1,
        "qwen35moe.embedding_length": 2048,
        "qwen35moe.attention.head_count": 16,
        "qwen35moe.attention.head_count_kv": 2,
        "qwen35moe.attention.key_length": 256,
        "qwen35moe.attention.value_length": 256,
        "qwen35moe.ssm.inner_size": 4096,
        "qwen35moe.ssm.state_size": 128,
        "qwen35moe.ssm.group_count": 16,
        "qwen35moe.ssm.conv_kernel": 4,
    }
    attention = 2 * 8192 * 2 * 256 * 2 * 2  # two of eight layers, keys and values, f16
    state = 6 * 4 * (3 * (4096 + 2 * 16 * 128) + 128 * 4096)
    assert kv_bytes(Header(values, ()), RunOptions(8192)) == attention + state


def test_what_can_never_run_is_refused_with_the_reason(folder: Path) -> None:
    gemma, llama = (read_header(make(folder / kind, replace(MEDIUM, kind=kind))) for kind in KINDS)
    plain = Profile("p", "P", 8192, Source(path="x"))
    assert refusal(plain, gemma) is None
    assert "upstream llama.cpp" in str(refusal(replace(plain, engine="ik_llama.cpp"), gemma))
    assert "row crashes" in str(refusal(replace(plain, required={"--split-mode": "row"}), llama))


def test_a_draft_with_another_vocabulary_is_refused_and_a_padded_one_is_not() -> None:
    qwen = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens.length": 152_064,
        "tokenizer.ggml.tokens.digest": "a",
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.bos_token_id": 151_643,
        "tokenizer.ggml.eos_token_id": 151_645,
    }
    target = Header(qwen, ())

    def said(**changes: object) -> str:
        draft = {
            **qwen,
            **{f"tokenizer.ggml.{k}".replace("__", "."): v for k, v in changes.items()},
        }
        return draft_refusal(target, Header(draft, ())) or ""

    # Qwen2.5-Coder 0.5B for 14B: the same words, padded to another size; another end of text.
    assert said(tokens__length=151_936, bos_token_id=1, eos_token_id=151_643) == ""
    for other in (
        {"tokens__length": 151_935},
        {"tokens__digest": "b"},
        {"model": "llama"},
        {"add_bos_token": True},
    ):
        assert "another vocabulary" in said(**other), other


def test_the_word_before_a_start_names_what_would_fit(folder: Path) -> None:
    model = read_header(make(folder / "v.gguf", MEDIUM))
    profile = Profile("tiny", "T", 16384, Source(path="x"), gpu=False, optional={"-ctk": "f16"})
    assert verdict("tiny", fit_report(profile, model, None, FreeMemory(0, GIB))) == ""
    tight = fit_report(profile, model, None, FreeMemory(0, 55 * MIB))
    told = verdict("tiny", tight)
    assert re.search(r"\d MiB more in memory", told)
    assert told == saying("tiny", "16,384 tokens", "8,192 tokens", "f16")
    assert verdict("tiny", fit_report(profile, model, None, FreeMemory(0, MIB))).endswith(
        "no window fits."
    )


def test_a_damaged_file_is_told(tmp_path: Path, folder: Path) -> None:
    whole = make(folder / "d.gguf", MEDIUM).read_bytes()
    for name, content in (
        ("text", b"hello there, this is no model"),
        ("header", whole[:3000]),
        ("weights", whole[:-5_000_000]),
        ("empty", b""),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(NotAModel):
            read_header(path)


def test_a_draft_model_has_cache_types_of_its_own() -> None:
    options = RunOptions(8192, cache_k="q8_0", cache_v="q8_0")
    plain = memory_need(moe(), options, moe())
    assert plain.gpu - memory_need(moe(), options).gpu == plain.draft > moe().weights - 300 * MIB
    other = replace(options, cache_k="f16", cache_v="f16")
    assert memory_need(moe(), other, moe()).draft == plain.draft
    less = memory_need(moe(), replace(options, draft_k="q8_0", draft_v="q8_0"), moe())
    assert plain.draft - less.draft == kv_bytes(moe(), other) - kv_bytes(moe(), options)
    head = {**moe().values, "qwen3moe.nextn_predict_layers": 1}
    drafting = [
        kv_bytes(Header(head, moe().tensors), replace(options, mtp_tokens=3, draft_k=k, draft_v=k))
        for k in ("f16", "q8_0")
    ]
    assert drafting[0] - drafting[1] == 8192 * 4 * 128 * 2 * (2 - 34 / 32)


async def test_gemmas_drafter_reads_the_cache_of_its_model(tmp_path: Path) -> None:
    target, drafter = (make_shape(tmp_path, n) for n in ("gemma4-26b-a4b", "gemma4-26b-a4b-mtp"))
    draft = read_header(drafter)
    for context in (8192, 32_768, 131_072):
        flags = ("-c", str(context), "-np", "1", "-ub", "512", "-fa", "on", "-md", str(drafter))
        found = await dry_run(target, *flags, "--spec-type", "draft-mtp")
        whole = draft_bytes(draft, RunOptions(context)) / MIB
        assert whole == pytest.approx(draft.weights / MIB + found.mtp_compute, rel=0.02)
    log = await server_log(target, *flags, "--spec-type", "draft-mtp")
    assert log.count(b" KV buffer size") == 2  # the model's own: full layers and sliding ones


def test_the_sum_names_every_part_and_is_what_is_missing() -> None:
    model = moe()
    options = RunOptions(32_768, cache_k="q8_0", cache_v="q8_0", expert_cache=512 * MIB)
    free = FreeMemory(10 * GIB, 48 * GIB)
    fit = fit_options(model, options, free, model)
    said = sum_text(fit)
    parts, _, whole = said.partition(" = ")
    assert [part.split(" ", 1)[1] for part in parts.split(" + ")] == [
        "weights",
        "cache",
        "compute",
        "draft",
        "CUDA",
        "cached experts",
        "headroom",
    ]
    assert float(whole.removesuffix(" GiB")) * GIB == pytest.approx(free.gpu - fit.free, rel=0.001)
    assert sum(float(part.split()[0]) for part in parts.split(" + ")) == pytest.approx(
        float(whole.removesuffix(" GiB")), abs=0.04
    )
    assert said in shortage("big", fit)
    without = fit_options(model, replace(options, expert_cache=0), free, model)
    assert fit.need.gpu - without.need.gpu == 512 * MIB
    on_host = fit_options(model, replace(options, gpu=False), FreeMemory(0, 8 * GIB))
    whole = sum_text(on_host).partition(" = ")[2].removesuffix(" GiB")
    assert float(whole) * GIB == pytest.approx(8 * GIB - on_host.free, rel=0.001)
