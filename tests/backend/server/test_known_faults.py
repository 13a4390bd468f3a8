"""Faults of builds that others reported: by build number and profile, each with its source."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from backend.models.profile import Profile, load
from backend.server import known_faults
from backend.server.known_faults import Fault

TABLE = Path(known_faults.__file__).with_suffix(".toml")
POCKET, SEEING, DENSE = load("pocket"), load("qwen3.6-35b-a3b-16gb"), load("qwen3.6-27b-2x")


def found(version: str, profile: Profile) -> list[str]:
    faults = known_faults.faults_of(version, profile)
    return [fault.source.rpartition("/")[2] for fault in faults]


def test_each_row_has_builds_a_sentence_and_a_public_source() -> None:
    rows = tomllib.loads(TABLE.read_text())["fault"]
    assert len(rows) >= 5
    for row in rows:
        fault = Fault(**row)
        assert 4000 < fault.first <= fault.last
        assert re.fullmatch(
            r"https://github\.com/ggml-org/llama\.cpp/(issues|pull)/\d+", fault.source
        )
        assert fault.says.startswith(f"In builds {fault.first} to {fault.last} ")


@pytest.mark.parametrize(
    ("version", "profile", "sources"),
    [
        ("version: 9292 (ef570f630)", POCKET, ["25070"]),
        ("version: 9820 (abc)", POCKET, ["25070"]),
        ("version: 9821 (abc)", POCKET, []),
        ("version: 9200 (abc)", SEEING, ["23233"]),
        ("version: 9200 (abc)", SEEING.without_mmproj(), []),
        ("version: 9200 (abc)", replace(SEEING.without_drafting(), draft=None), []),
        ("version: 9200 (abc)", DENSE, ["22616"]),
        ("version: 10100 (abc)", DENSE, ["25829"]),
        ("version: 10100 (abc)", POCKET, []),
        ("version: xllamacpp 2026.10.11549", POCKET, []),
        ("version: xllamacpp 2026.10.11549", POCKET.with_flag("4", "--parallel"), ["27148"]),
        ("version: 0.3.0-dev (build 378, commit 62850522e)", POCKET, []),
        ("", POCKET, []),
    ],
)
def test_a_fault_is_told_for_its_builds_and_profiles(
    version: str, profile: Profile, sources: list[str]
) -> None:
    assert found(version, profile) == sources
