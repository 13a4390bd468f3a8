"""What does not fit is made smaller or refused before the start, never after an abort."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from backend.config import BackendConfig
from backend.models.fit import FreeMemory, fit_profile
from backend.models.gguf_header import Header, Tensor, read_header
from backend.models.placement import (
    Device,
    DoesNotFit,
    Placement,
    parse_devices,
    place,
)
from backend.models.profile import Profile, Source
from backend.protocol import Alert
from backend.server.launch import with_threads
from fakes import gguf_maker, gguf_shapes, llama_devices
from fakes.gguf_maker import MEDIUM
from fakes.words import saying
from tests.backend.conftest import running, with_server

GIB, MIB = 2**30, 2**20
HOST = 64 * GIB
V100 = Device(0, int(15.4 * GIB))
PLAIN = Profile("plain", "P", 32768, Source(path="x"), required={"-ctk": "q8_0", "-ctv": "q8_0"})
MOE = PLAIN.with_flag("auto", "--n-cpu-moe")
SPLIT = PLAIN.with_flag("layer", "--split-mode").with_flag("1,1", "--tensor-split")


def model(layer_mib: int, layers: int = 40, experts: bool = True) -> Header:
    """A header of `layers` layers of this size, most of it experts."""
    values = {
        "general.architecture": "qwen3moe",
        "qwen3moe.block_count": layers,
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
    name = "ffn_up_exps" if experts else "ffn_up"
    tensors = [
        Tensor(f"blk.{n}.{name}.weight", (2048, 768), layer_mib * MIB) for n in range(layers)
    ]
    head = [Tensor("token_embd.weight", (1,), MIB), Tensor("output.weight", (1,), 300 * MIB)]
    return Header(values, (*head, *tensors))


def test_experts_move_to_host_memory_as_far_as_needed() -> None:
    found = place(MOE, model(450), None, [V100], HOST)
    moved = int(found.profile.flag("--n-cpu-moe") or 0)
    assert found == Placement(MOE.with_flag(str(moved), "--n-cpu-moe"))
    assert 5 <= moved <= 12
    assert place(MOE, model(250), None, [V100], HOST).profile.flag("--n-cpu-moe") == "0"


@pytest.mark.parametrize("layer_mib", [450, 600])
def test_experts_in_the_same_memory_make_no_room(layer_mib: int) -> None:
    unified = replace(V100, unified=True)
    with pytest.raises(DoesNotFit):
        place(MOE, model(layer_mib), None, [unified], unified.free)
    assert place(MOE, model(layer_mib), None, [V100], 4 * HOST)  # beside the card there is room


def test_threads_and_batch_go_by_where_the_experts_are() -> None:
    made = MOE.with_flag("12", "--threads").with_flag("2048", "--ubatch-size")
    partly = place(made, model(450), None, [V100], HOST).profile
    wholly = place(made, model(250), None, [V100], HOST).profile
    assert (partly.flag("-t"), partly.flag("--ubatch-size")) == ("12", "2048")
    assert (wholly.flag("-t"), wholly.flag("--ubatch-size")) == ("6", "1024")


def test_a_window_that_does_not_fit_gives_way_to_a_smaller_one() -> None:
    found = place(PLAIN, model(340), None, [V100], HOST)
    assert found.profile == replace(PLAIN, context=24576)
    assert found.changes[0] == saying("15.4 GiB", "24,576 tokens", "in place of 32,768")


def test_what_fits_no_window_is_refused_with_what_is_missing() -> None:
    with pytest.raises(DoesNotFit) as refused:
        place(PLAIN, model(450), None, [V100], HOST)
    assert str(refused.value) == saying("plain", "32,768 tokens", "MiB more on the card")


def test_without_a_card_host_memory_counts() -> None:
    assert place(PLAIN, model(250), None, [], HOST).profile == PLAIN
    with pytest.raises(DoesNotFit, match="MiB more in memory .*; no window fits"):
        place(PLAIN, model(250), None, [], 8 * GIB)


def test_what_fits_one_card_is_pinned_to_the_emptier_one() -> None:
    two = [Device(0, 6 * GIB), Device(1, V100.free)]
    assert place(PLAIN, model(250), None, two, HOST) == Placement(
        PLAIN, {"CUDA_VISIBLE_DEVICES": "1"}
    )
    vulkan = [replace(card, kind="Vulkan") for card in two]
    assert place(PLAIN, model(250), None, vulkan, HOST).env == {"GGML_VK_VISIBLE_DEVICES": "1"}


def test_what_needs_both_cards_gets_both() -> None:
    two = [V100, replace(V100, index=1)]
    assert place(PLAIN, model(600), None, two, HOST) == Placement(PLAIN)
    assert place(SPLIT, model(600), None, two, HOST) == Placement(SPLIT)


def test_a_profile_for_two_cards_on_one() -> None:
    many = SPLIT.with_flag("16", "--parallel")
    with pytest.raises(DoesNotFit, match="many is made for two cards, and there is one"):
        place(replace(many, name="many"), model(100), None, [V100], HOST)
    with pytest.raises(DoesNotFit, match="made for two cards, and none was found"):
        place(SPLIT, model(100), None, [], HOST)
    assert place(SPLIT, model(250), None, [V100], HOST).profile == PLAIN


def test_row_split_is_refused_whatever_the_cards() -> None:
    with pytest.raises(DoesNotFit, match="plain cannot run: --split-mode row crashes"):
        place(PLAIN.with_flag("row", "-sm"), model(100), None, [V100, V100], HOST)


def test_devices_are_read_as_servers_print_them() -> None:
    text = """Available devices:
  CUDA0: Tesla V100-SXM2-16GB (16144 MiB, 15800 MiB free)
  Vulkan1: AMD Radeon RX 6600M (RADV NAVI23) (8176 MiB, 8000 MiB free)
  BLAS: OpenBLAS (0 MiB, 0 MiB free)
"""
    assert parse_devices(text) == [Device(0, 15800 * MIB), Device(1, 8000 * MIB, "Vulkan")]
    assert parse_devices("Available devices:\n  (none)\n") == []


# -- on the real server -------------------------------------------------------


@pytest.fixture
def mine(state: Path) -> Path:
    """A profile of the user's own: a small model that belongs on a GPU."""
    path = gguf_maker.make(state / "small.gguf", MEDIUM)
    folder = state / "profiles"
    folder.mkdir()
    (folder / "small.toml").write_text(
        f'title = "S"\ncontext = 16384\n[model]\npath = "{path}"\n'
        '[flags.required]\n"--parallel" = "1"\n[flags.optional]\n"--n-cpu-moe" = "auto"\n'
    )
    return folder


def on(state: Path, profiles: Path, devices: str) -> BackendConfig:
    config = BackendConfig(state_dir=state, profile="small", profiles=profiles)
    return with_server(config, llama_devices.install(state / "cards", devices))


async def test_the_server_is_started_as_it_fits(state: Path, mine: Path) -> None:
    two = "  CUDA0: A (16144 MiB, 5 MiB free)\n  CUDA1: B (16144 MiB, 652 MiB free)"
    async with running(on(state, mine, two)) as it:
        await it.ready()
        started = llama_devices.argv(state / "cards")
        window = int(started[started.index("-c") + 1])
        assert window == 8192
        assert (await it.client.status()).backend.n_ctx == window
        assert started[started.index("--n-cpu-moe") + 1] == "0"
        pinned = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}
        assert pinned.items() <= llama_devices.environment(state / "cards").items()
        news = [alert async for alert in _first(it.client.events())]
        assert news[0].text == saying("0.6 GiB", f"{window:,} tokens", "in place of 16,384")


async def _first(events: AsyncIterator[Alert]) -> AsyncIterator[Alert]:
    async for alert in events:
        yield alert
        return


@pytest.mark.parametrize(
    ("given", "gpu", "cores", "threads"),
    [
        (None, False, 2, ("1", "2")),
        (None, False, 1, ("1", "1")),
        (None, False, 8, ("7", "8")),
        (None, True, 8, (None, None)),  # the card computes
        ("1", False, 8, ("1", None)),
        ("12", False, 8, ("8", None)),
        ("12", True, 8, ("8", None)),
    ],
)
def test_a_model_on_the_processor_leaves_a_core_free(
    given: str | None, gpu: bool, cores: int, threads: tuple[str | None, str | None]
) -> None:
    profile = replace(PLAIN, gpu=gpu, optional={"-t": given} if given else {})
    found = with_threads(profile, cores)
    assert (found.flag("--threads"), found.flag("--threads-batch")) == threads


async def test_what_cannot_fit_is_one_sentence_and_no_start(state: Path, mine: Path) -> None:
    async with running(on(state, mine, "  CUDA0: A (16144 MiB, 100 MiB free)")) as it:
        status = await it.until(lambda status: status.backend.state == "failed")
        assert status.backend.reason == saying("MiB more on the card")
        assert not (state / "cards" / "argv").exists()


def test_two_cards_hold_their_compute_buffers_and_contexts_twice() -> None:
    two = [V100, replace(V100, index=1)]
    layers = next(n for n in range(600, 900) if fits_two(n, two) != PLAIN.context)
    one_card = FreeMemory(2 * V100.free, HOST)
    assert fit_profile(PLAIN, model(layers), None, one_card).fits
    assert not fit_profile(PLAIN, model(layers), None, replace(one_card, devices=2)).fits


def fits_two(layer_mib: int, two: list[Device]) -> int:
    return place(PLAIN, model(layer_mib), None, two, HOST).profile.context


def test_what_a_long_chat_may_fill_refuses_no_start(tmp_path: Path) -> None:
    hybrid = read_header(gguf_shapes.make(tmp_path, "qwen3.6-27b"))
    need = fit_profile(PLAIN, hybrid, None, FreeMemory(0, HOST)).need
    short = need.host - need.checkpoints // 2
    assert need.checkpoints > 4 * GIB
    assert not fit_profile(PLAIN, hybrid, None, FreeMemory(0, short)).fits
    assert place(PLAIN, hybrid, None, [], short).profile == PLAIN
    less = need.host - need.checkpoints - 100 * MIB
    assert place(PLAIN, hybrid, None, [], less).profile.context == 24_576
