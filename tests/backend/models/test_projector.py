"""Projectors of pictures: what they take, where they go, and how many pixels they use."""

from dataclasses import replace
from pathlib import Path

import pytest

from backend.models.fit import FreeMemory, fit_report, sum_text
from backend.models.gguf_header import (
    ANY_SHAPE,
    MIB,
    UNREAD_COMPUTE,
    Header,
    Tensor,
    picture_pixels,
    projector_bytes,
    read_header,
    with_projector,
)
from backend.models.placement import PROJECTOR_ON_HOST, WITHOUT_PROJECTOR, Device, place
from backend.models.profile import Profile, Source, load, locate, of_file
from backend.protocol import PICTURE_PIXELS
from fakes import gguf_projector
from tests.backend.models.test_placement import HOST, PLAIN, model

GIB = 1 << 30
VISION = replace(PLAIN, mmproj=Source(path="/models/mmproj.gguf"), mmproj_bytes=GIB)
DENSE = model(250, experts=False)


def header(kind: str, image: int = 896, patch: int = 14) -> Header:
    values = {
        "clip.projector_type": kind,
        "clip.vision.image_size": image,
        "clip.vision.patch_size": patch,
        "clip.vision.embedding_length": 1152,
        "clip.vision.feed_forward_length": 4304,
    }
    return Header(values, (Tensor("v.patch_embd.weight", (1,), 800 * MIB),))


def test_what_a_projector_takes_is_its_weights_and_the_largest_picture() -> None:
    fixed = projector_bytes(header("gemma3"))
    assert fixed - 800 * MIB == 4 * 64**2 * (2 * 1152 + 4304 + 80)
    any_shape = projector_bytes(header("qwen3vl_merger", patch=16))
    assert any_shape - 800 * MIB == 4 * (46 * 2) ** 2 * (2 * 1152 + 4304 + 80)


def test_the_pixels_that_it_uses(tmp_path: Path) -> None:
    toy = gguf_projector.make(tmp_path / "mmproj.gguf", 32)
    assert picture_pixels(toy) == gguf_projector.IMAGE**2
    assert picture_pixels(tmp_path / "none.gguf") == PICTURE_PIXELS
    side, tokens, _ = ANY_SHAPE["gemma4v"]
    assert tokens * (side * 16) ** 2 == 645_120


def test_a_profile_knows_what_its_projector_takes_before_it_is_here(tmp_path: Path) -> None:
    toy = gguf_projector.make(tmp_path / "here.gguf", 32)
    here = replace(PLAIN, mmproj=Source(path=str(toy)))
    assert with_projector(here, tmp_path).mmproj_bytes == projector_bytes(read_header(toy))
    later = replace(PLAIN, mmproj=Source(repo="a/b", file="x.gguf", size=GIB))
    assert with_projector(later, tmp_path).mmproj_bytes == GIB + UNREAD_COMPUTE
    assert with_projector(PLAIN, tmp_path) == PLAIN


def placed(card: float, host: int = HOST, profile: Profile = VISION) -> tuple[int, bool, bool, str]:
    """Window, whether it sees, whether by the processor, and what is said."""
    found = place(profile, DENSE, None, [Device(0, int(card * GIB))], host)
    sees = found.profile.mmproj is not None
    return found.profile.context, sees, found.profile.mmproj_on_host, " ".join(found.changes)


def test_eyes_go_to_the_card_where_all_fits_and_to_the_processor_where_they_cost_window() -> None:
    assert placed(16) == (32768, True, False, "")
    alone = place(VISION.without_mmproj(), DENSE, None, [Device(0, int(12.9 * GIB))], HOST)
    window, sees, on_host, said = placed(12.9)
    assert (window, sees, on_host) == (alone.profile.context, True, True)
    assert said.startswith(PROJECTOR_ON_HOST)


def test_without_any_room_for_eyes_it_runs_blind() -> None:
    no_card = replace(VISION, gpu=False)
    found = place(no_card, DENSE, None, [], int(10.8 * GIB))
    assert found.profile.mmproj is None and found.changes[0] == WITHOUT_PROJECTOR


def test_a_sum_names_the_projector() -> None:
    report = fit_report(VISION, DENSE, None, FreeMemory(16 * GIB, HOST))
    assert " + 1.00 projector + " in sum_text(report.own)
    tight = fit_report(VISION, DENSE, None, FreeMemory(int(13.2 * GIB), HOST))
    assert tight.own.options.projector_on_host and tight.own.need.projector == 0
    assert tight.own.need.host_weights >= GIB


@pytest.mark.parametrize(
    "name", ["gemma4-26b-a4b", "gemma4-26b-a4b-mtp", "qwen3.6-35b-a3b", "qwen3.6-27b-2x"]
)
def test_profiles_of_models_that_see_name_their_projector(name: str, tmp_path: Path) -> None:
    profile = load(name)
    assert profile.mmproj and profile.sources[-1] == profile.mmproj
    assert profile.mmproj not in profile.needed
    assert locate(profile.mmproj, tmp_path).name not in ("mmproj-F16.gguf", "model.gguf")


def test_a_file_of_ones_own_sees_with_the_only_projector_beside_it(tmp_path: Path) -> None:
    for name in ("m.gguf", "mmproj-m-F16.gguf"):
        (tmp_path / name).touch()
    found = of_file(tmp_path / "m.gguf").mmproj
    assert found == Source(path=str(tmp_path / "mmproj-m-F16.gguf"))
    (tmp_path / "other.gguf").touch()
    assert of_file(tmp_path / "m.gguf").mmproj is None
