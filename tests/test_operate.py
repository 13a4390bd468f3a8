"""The bench of what an operator does: what it does before a machine is booted."""

import fcntl
import os
from pathlib import Path

import pytest

from bench.operate import releases


def test_wheels_are_fetched_by_one_bench_at_a_time_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second one that began meanwhile deleted what the first had fetched so far."""
    wheels, tries = tmp_path / "wheels", []

    def download(*words: "str | Path") -> str:
        part = Path(words[words.index("-d") + 1])
        part.mkdir(parents=True, exist_ok=True)
        (part / "other.whl").touch()
        fd = os.open(wheels, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            tries.append("got in")
        except BlockingIOError:
            tries.append("waits")
        finally:
            os.close(fd)
        return ""

    monkeypatch.setattr(releases, "WHEELS", wheels)
    monkeypatch.setattr(releases, "LOCKS", ())
    monkeypatch.setattr(releases, "_run", download)
    (wheels / "of-another-lock").mkdir(parents=True)
    folder = releases.fetched(tmp_path / "voltaire.whl")
    assert releases.fetched(tmp_path / "voltaire.whl") == folder
    assert (tries, list(wheels.iterdir())) == (["waits", "waits"], [folder])
    assert [path.name for path in folder.iterdir()] == ["other.whl"]
