"""Where no namespace can be made, a person reads so at once, with the remedy; no model is asked."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fakes.localgram import Localgram
from fakes.patience import SECONDS
from fakes.words import saying

CODE = Path(__file__).parents[3]
VOLTAIRE = Path(sys.executable).with_name("voltaire")
REMEDIES = {"filter": "--security-opt", "sysctl": "user.max_user_namespaces"}


@asynccontextmanager
async def started(
    how: str, home: Path, *words: str, **settings: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")}
    env |= {"XDG_CONFIG_HOME": str(home / "c"), "XDG_STATE_HOME": str(home / "s")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fakes.no_namespaces", how, str(VOLTAIRE), *words),
        cwd=CODE,
        env=env | settings,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.communicate()


async def voltaire(
    how: str, home: Path, *words: str, **settings: str
) -> tuple[int | None, str, str]:
    async with started(how, home, *words, **settings) as process:
        out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    if b"no_namespaces.py" in err:
        pytest.skip("this machine lets nobody simulate it")
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("how", [pytest.param("filter", marks=pytest.mark.slow), "sysctl"])
async def test_the_demo_says_so_before_a_model_is_started(how: str, tmp_path: Path) -> None:
    code, out, err = await voltaire(how, tmp_path, "demo", "--ask", "how much disk is free?")
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert err == saying("sandbox does not work", REMEDIES[how])
    assert not any((tmp_path / "s").iterdir())


@pytest.mark.slow
async def test_run_says_so_before_a_model_is_started(tmp_path: Path) -> None:
    code, _, err = await voltaire("filter", tmp_path, "run", VOLTAIRE_TELEGRAM__TOKEN="1:a")
    assert code == 1 and REMEDIES["filter"] in err and "backend" not in err


@pytest.mark.slow
async def test_a_turn_ends_at_its_first_command(tmp_path: Path) -> None:
    code, out, err = await voltaire("filter", tmp_path, "ask", "how much disk space is free?")
    assert code == 1 and REMEDIES["filter"] in out
    assert err.count("→") == 1


async def test_the_running_bot_tells_its_owner(tmp_path: Path) -> None:
    async with Localgram("1000001:abc") as gram:
        owner = gram.user("Ada", id=7, started=True)
        settings = {
            "VOLTAIRE_TELEGRAM__TOKEN": gram.token,
            "VOLTAIRE_TELEGRAM__BASE_URL": gram.url,
            "VOLTAIRE_TELEGRAM__OWNERS": "7",
            "VOLTAIRE_BACKEND__KIND": "external",
            "VOLTAIRE_BACKEND__URL": "http://127.0.0.1:9",
        }
        async with started("filter", tmp_path, "bot", **settings):
            message = await owner.next_message(seconds=SECONDS)
    assert REMEDIES["filter"] in message.text
