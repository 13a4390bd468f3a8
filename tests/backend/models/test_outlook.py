"""What would run on a machine and why, in one line: by the header, else by the profile's own figures."""

from dataclasses import replace
from pathlib import Path

import pytest

from backend.models.outlook import (
    PREFERRED,
    Machine,
    Outlook,
    outlook,
    profile_candidate,
    propose,
)
from backend.models.profile import Profile, Reference, Source
from fakes import gguf_maker
from fakes.gguf_maker import MEDIUM
from fakes.words import saying

GIB = 2**30
ABSENT = Source(path="/absent/model.gguf")
SPLIT = {"--split-mode": "layer"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """A model of 33 MiB; on a card the overhead of CUDA outweighs it."""
    path = gguf_maker.make(tmp_path_factory.mktemp("outlook") / "small.gguf", MEDIUM)
    known = Reference(decode_tok_s=45, source="a card")
    return Profile("small", "small", 16384, Source(path=str(path)), reference=known)


def machine(*cards: float, host: int = 8 * GIB) -> Machine:
    return Machine(cards, host, Path("/absent"))


def test_what_fits_is_told_with_window_speed_and_reason(small: Profile) -> None:
    line = (
        "small: a window of 16,384 tokens, 45 tokens/s reported (a card); it takes"
        " 0.7 of 1.0 GiB on the card and 4 MiB of RAM."
    )
    assert outlook(small, machine(1.0, 0.5)) == Outlook("small", True, line)
    without = outlook(replace(small, gpu=False, reference=Reference()), machine())
    line = "small: a window of 16,384 tokens, no speed reported; it needs no card, and 73 MiB of memory."
    assert without == Outlook("small", True, line)


def test_what_does_not_fit_is_told(small: Profile) -> None:
    parts = "0.02 weights + 0.02 cache + 0.02 compute + 0.59 CUDA + 0.29 headroom = 0.95 GiB"
    missing = f"needs 354 MiB more on the card ({parts}); no window fits."
    line = f"small with a window of 16,384 tokens {missing}"
    assert outlook(small, machine(0.6)) == Outlook("small", False, line)
    line = "small wants a card, and none was found."
    assert outlook(small, machine()) == Outlook("small", False, line)


def test_less_than_half_of_its_window_is_not_proposed(small: Profile) -> None:
    wide = replace(small, required={"--cache-type-k": "f32", "--cache-type-v": "f32"})
    found = [outlook(wide, machine(card)) for card in (0.68, 0.65, 0.635)]
    assert [each.runs for each in found] == [True, True, False]
    assert found[1].line == saying("small", "8,192 tokens")
    assert found[2].line == saying("small", "only 4,096 of its 16,384")


def expecting(
    vram: int | None, ram: int | None = None, flags: dict[str, str] | None = None
) -> Profile:
    return Profile("far", "far", 8192, ABSENT, vram_mib=vram, ram_mib=ram, required=flags or {})


@pytest.mark.parametrize(
    ("profile", "cards", "expected"),
    [
        (
            expecting(1024, 2048),
            (1.0,),
            "far: a window of 8,192 tokens, no speed reported; its profile expects 1.0 of"
            " 1.0 GiB on the card (its header could not be read) and 2.0 GiB of RAM.",
        ),
        (
            expecting(1500, flags=SPLIT),
            (1.0, 1.0),
            "far: a window of 8,192 tokens, no speed reported; its profile expects 1.5 of"
            " 2.0 GiB of 2 cards (its header could not be read).",
        ),
        (
            expecting(1500),
            (1.0, 1.0),
            "far does not fit: its profile expects 1.5 GiB on the card, and there are 1.0.",
        ),
        (
            expecting(1500, flags={**SPLIT, "--parallel": "4"}),
            (2.0,),
            "far is made for two cards, and there is one.",
        ),
        (
            expecting(512, 16384),
            (1.0,),
            "far does not fit: its profile expects 16.0 GiB of RAM, and 8.0 GiB are free.",
        ),
        (
            expecting(None),
            (1.0,),
            "What far needs is not known: its header could not be read.",
        ),
    ],
)
def test_without_a_header_the_profile_says_what_it_expects(
    profile: Profile, cards: tuple[float, ...], expected: str
) -> None:
    assert outlook(profile, machine(*cards)).line == expected


def test_of_a_profile_without_figures_the_size_of_its_files_is_told() -> None:
    far = replace(expecting(None), model=Source(path="/absent/model.gguf", size=3 * GIB // 2))
    found = [profile_candidate(far, machine(card)) for card in (2.0, 1.0)]
    assert [each.runs for each in found] == [True, False]
    assert found[0].line == saying("far", "files alone", "1.5 of 2.0 GiB")
    assert found[1].line == saying("far does not fit", "files alone", " 1.5 GiB")


def test_the_strongest_that_runs_is_proposed_with_why_none_before_it(small: Profile) -> None:
    needs = dict(zip(PREFERRED, (30_000, 15_000, 3_000), strict=False))

    def load(name: str) -> Profile:
        return replace(expecting(needs.get(name, 1)), name=name)

    assert propose(machine(16.0), load).line.splitlines() == [
        saying("gemma4-26b-a4b", "8,192 tokens", "no speed", "14.6 of 16.0 GiB"),
        saying("qwen3.6-35b-a3b-q6-2x", "does not fit", "29.3 GiB", "16.0"),
    ]
    assert propose(machine(4.0), load).name == "qwen2.5-3b"
    unusable = replace(machine(), problem="a version mismatch")
    last = propose(unusable, lambda name: replace(small, name=name, gpu=False))
    assert (last.name, last.runs) == ("pocket", True)
    assert last.line == saying("No card can be used: a version mismatch.", "doctor")
