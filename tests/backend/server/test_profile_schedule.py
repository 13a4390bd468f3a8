"""Profiles by the clock, and by hand until the clock's next word."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from backend.config import BackendConfig, ScheduledProfile
from backend.server.managed import (
    ScheduledSwitch,
    chosen_profile,
    last_switch,
    next_switch,
    read_ahead,
    save_choice,
)

PARIS = ZoneInfo("Europe/Paris")
DAY = (ScheduledProfile("08:00", "coder"), ScheduledProfile("18:30", "chat"))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=PARIS)


def test_the_next_and_the_last_switch() -> None:
    assert next_switch(DAY, at("2026-03-28 07:59")) == ScheduledSwitch(
        at("2026-03-28 08:00"), "coder"
    )
    assert next_switch(DAY, at("2026-03-28 18:30")) == ScheduledSwitch(
        at("2026-03-29 08:00"), "coder"
    )
    assert last_switch(DAY, at("2026-03-28 18:30")) == ScheduledSwitch(
        at("2026-03-28 18:30"), "chat"
    )
    assert last_switch(DAY, at("2026-03-28 03:00")) == ScheduledSwitch(
        at("2026-03-27 18:30"), "chat"
    )
    assert (
        next_switch((), at("2026-03-28 03:00")) is last_switch((), at("2026-03-28 03:00")) is None
    )


def test_the_clock_is_the_walls_across_a_change_of_summer_time() -> None:
    due = next_switch(DAY, at("2026-03-28 20:00"))
    assert due is not None
    assert (due.at.hour, due.at.utcoffset()) == (8, timedelta(hours=2))


def test_a_choice_by_hand_holds_until_the_next_scheduled_switch(tmp_path: Path) -> None:
    config = BackendConfig(tmp_path, profile="pocket", schedule=DAY)
    assert chosen_profile(config, at("2026-03-28 09:00")) == "coder"
    save_choice(config, "mine", at("2026-03-28 10:00"))
    assert chosen_profile(config, at("2026-03-28 11:00")) == "mine"
    assert chosen_profile(config, at("2026-03-28 19:00")) == "chat"


def test_a_choice_by_hand_lasts_without_a_schedule_until_the_configuration_changes(
    tmp_path: Path,
) -> None:
    config = BackendConfig(tmp_path, profile="pocket")
    save_choice(config, "mine", at("2026-03-28 10:00"))
    now = at("2026-05-01 10:00")
    assert chosen_profile(config, now) == "mine"
    assert chosen_profile(replace(config, profile="other"), now) == "other"


def resident(path: Path) -> int:
    """Pages of a file that are in the page cache."""
    said = subprocess.run(
        ["fincore", "--bytes", "--noheadings", "--output", "PAGES", path],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(said.stdout)


@pytest.mark.skipif(not shutil.which("fincore"), reason="needs util-linux with fincore")
def test_models_are_read_into_the_page_cache() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # on a disk
        model = Path(folder) / "m.gguf"
        model.write_bytes(bytes(8 << 20))
        with model.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        cold = resident(model)
        read_ahead([Path(folder) / "gone", model])
        assert (cold, resident(model)) == (0, 2048)
