"""The wizard: from a token to a delivered message, and never a half-written configuration."""

import asyncio
import os
import re
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.localgram import Localgram
from bot.setup import file

VOLTAIRE = Path(sys.executable).with_name("voltaire")
SECONDS = 50


@pytest.fixture
async def gram() -> AsyncIterator[Localgram]:
    async with Localgram("1000001:abc") as gram:
        yield gram


async def voltaire(home: Path, *words: str) -> asyncio.subprocess.Process:
    env = {**os.environ, "XDG_CONFIG_HOME": str(home / "c"), "XDG_STATE_HOME": str(home / "s")}
    config = home / "c" / "voltaire" / "config.toml"
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        VOLTAIRE,
        "--config",
        config,
        "setup",
        "--no-units",
        *words,
        env=env,
        stdout=pipe,
        stderr=pipe,
    )


def configured(home: Path) -> dict:
    return tomllib.loads((home / "c" / "voltaire" / "config.toml").read_text())


async def test_yes_ends_with_a_delivered_message(gram: Localgram, tmp_path: Path) -> None:
    owner = gram.user("Ada", id=7, started=True)
    process = await voltaire(
        tmp_path, "--yes", "--token", "1000001:abc", "--base-url", gram.url, "--owner", "7"
    )
    message = await owner.next_message(seconds=SECONDS)
    out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    assert (process.returncode, message.text) == (
        0,
        "Voltaire is set up and listens. Write to me.",
    ), err
    assert b"https://t.me/voltaire_bot" in out and b"abc" not in out + err
    folder = tmp_path / "c" / "voltaire"
    assert configured(tmp_path)["telegram"]["owners"] == [7]
    assert (folder / "telegram-token").read_text() == "1000001:abc\n"
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())


async def test_the_owner_is_found_by_the_pairing_link(gram: Localgram, tmp_path: Path) -> None:
    process = await voltaire(tmp_path, "--yes", "--token", "1000001:abc", "--base-url", gram.url)
    assert process.stdout
    link = ""
    while not (found := re.search(r"t\.me/voltaire_bot\?start=(\S+)", link)):
        link = (await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode()
    stranger = gram.user("Eve")
    await stranger.send("/start nonsense")
    owner = gram.user("Ada")
    await owner.send(f"/start {found[1]}")
    await owner.next_message(where=lambda m: "is set up and listens" in m.text, seconds=SECONDS)
    await asyncio.wait_for(process.communicate(), SECONDS)
    assert process.returncode == 0


async def test_a_wrong_token_changes_nothing(gram: Localgram, tmp_path: Path) -> None:
    process = await voltaire(tmp_path, "--yes", "--token", "1000002:wrong", "--base-url", gram.url)
    out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    assert process.returncode == 1
    assert err.decode() == "The token was not accepted; nothing was changed.\n"
    assert not (tmp_path / "c" / "voltaire").exists() and b"wrong" not in out + err


def test_the_file_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    values = {
        "telegram": {"owners": [1, 2], "language": 'e"n\\'},
        "agent": {
            "sandbox": {"network": True},
            "repos": {"my site": {"path": "/srv/s\u00efte", "write": False}},
        },
        "backend": {
            "warn_celsius": 80,
            "price_kwh": 0.31,
            "schedule": [{"at": "08:00", "profile": "a"}],
        },
    }
    file.write(tmp_path / "c.toml", values)
    assert file.read(tmp_path / "c.toml") == values
    assert list(tmp_path.iterdir()) == [tmp_path / "c.toml"]
