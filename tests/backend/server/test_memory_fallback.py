"""What is given up when the GPU's memory is full, and in which order."""

from dataclasses import replace
from typing import Any

import pytest

from backend.models.profile import Profile, Source
from backend.server.memory_fallback import Buffers, MemoryFallback, logged_buffers, reductions
from fakes.words import saying

CARD = Profile(
    name="card",
    title="A card",
    context=32768,
    model=Source(file="m.gguf"),
    draft=Source(file="d.gguf"),
    required={"--parallel": "1", "--spec-type": "draft-simple"},
    optional={"-ub": "1024", "--n-cpu-moe": "10"},
)


LOG = [
    "print_info: n_layer = 48",
    "load_tensors:        CUDA0 model buffer size = 12000.00 MiB",
    "llama_kv_cache:      CUDA0 KV buffer size =  1280.00 MiB",
    "llama_context:      CUDA0 compute buffer size =   900.00 MiB",
]


def test_what_saves_most_goes_first_and_the_kv_type_last() -> None:
    found = logged_buffers(LOG)
    assert found == Buffers(compute=900, kv=1280, weights=12000, layers=48)
    fallback: MemoryFallback | None = MemoryFallback(CARD)
    descriptions = []
    while fallback and (fallback := fallback.reduced(found)):
        descriptions.append(fallback.taken[-1].description)
        last = fallback.profile
    assert descriptions[:4] == [saying("experts", f"{n} layers") for n in (14, 18, 22, 26)]
    assert descriptions[-1] == saying("KV cache", "8 bits")
    assert "no draft model" in descriptions
    assert (last.flag("-ctk"), last.flag("-ub"), last.draft) == (
        "q8_0",
        "128",
        None,
    )
    assert last.context >= 4096


def test_a_draft_model_goes_first_where_it_saves_most() -> None:
    less = MemoryFallback(CARD.without_flags("--n-cpu-moe")).reduced(
        logged_buffers(LOG[2:], draft=800)
    )
    assert less and [reduction.description for reduction in less.taken] == ["no draft model"]
    assert less.profile.flag("--spec-type") is None


def test_a_reduction_that_crashed_is_not_tried_again_until_the_full_profile_is_restored() -> None:
    small = Profile(name="s", title="s", context=4096, model=Source(), optional={"-ub": "256"})
    first = MemoryFallback(small).reduced(Buffers())
    assert first is not None
    second = first.reduced(Buffers())
    assert second is not None
    assert [reduction.label for reduction in second.taken] == ["ubatch 128", "kv q8_0"]
    assert second.reduced(Buffers()) is None
    assert second.full == small


def test_q8_0_is_never_left_for_less() -> None:
    already = CARD.with_flag("q8_0", "--cache-type-k").with_flag("q8_0", "--cache-type-v")
    assert not any(reduction.label.startswith("kv") for reduction in reductions(already, Buffers()))


FOUND = Buffers(compute=100, kv=1000, weights=4800, layers=48, draft=300)


def plain(**changes: Any) -> Profile:
    return replace(Profile(name="p", title="p", context=4096, model=Source()), **changes)


@pytest.mark.parametrize(
    ("profile", "found"),
    [
        (plain(), {"ubatch 256": 50, "kv q8_0": 470}),
        (plain(optional={"-ub": "256"}), {"ubatch 128": 50, "kv q8_0": 470}),
        (plain(optional={"-ub": "255"}), {"kv q8_0": 470}),
        (plain(context=5632), {"ubatch 256": 50, "context 4096": 250, "kv q8_0": 470}),
        (plain(context=5461), {"ubatch 256": 50, "kv q8_0": 470}),
        (plain(required={"-ncmoe": "0"}), {"ubatch 256": 50, "experts 4": 400, "kv q8_0": 470}),
        (plain(required={"-ncmoe": "44"}), {"ubatch 256": 50, "experts 48": 4800, "kv q8_0": 470}),
        (plain(required={"-ncmoe": "47"}), {"ubatch 256": 50, "experts 51": 19200, "kv q8_0": 470}),
        (plain(required={"-ncmoe": "48"}), {"ubatch 256": 50, "kv q8_0": 470}),
        (plain(draft=Source()), {"ubatch 256": 50, "draft none": 300, "kv q8_0": 470}),
        (plain(optional={"-ctk": "f32", "-ctv": "bf16"}), {"ubatch 256": 50, "kv q8_0": 470}),
        (plain(optional={"-ctk": "q8_0"}), {"ubatch 256": 50}),
    ],
    ids=[
        "default batch", "least batch", "odd batch", "window", "odd window", "experts",
        "last experts", "fewer than four", "no experts", "draft", "wide KV", "narrow KV",
    ],
)  # fmt: skip
def test_what_each_reduction_saves(profile: Profile, found: dict[str, float]) -> None:
    assert {one.label: round(one.saved_mib) for one in reductions(profile, FOUND)} == found


def test_the_next_reduction_is_made_of_what_really_ran() -> None:
    first = MemoryFallback(plain(context=8192), placed=plain(context=6000))
    less = first.reduced(Buffers(kv=1000))
    assert less and less.profile.context == 4352
    assert less.placed is None
