"""voltaire server get, and which of two servers stays."""

import sys
from pathlib import Path

import pytest

from backend.build.build import use_server, used_server
from backend.build.release import RELEASES_VARIABLE
from bot.cli.connect import running_backend
from bot.cli.server import use_faster
from bot.settings import Settings, load
from fakes.command_line import voltaire_beside as voltaire
from fakes.patience import SECONDS
from fakes.release_server import TAG, ReleaseServer
from fakes.toolkits import program

EMBEDDED = f'PYTHONPATH={Path(__file__).parents[3]} exec {sys.executable} -m backend.embedded "$@"'


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    config = tmp_path / "c.toml"
    config.write_text(f'[state]\ndir = "{tmp_path / "s"}"\n[backend]\ncontext = 1024\n')
    return load(config)


async def test_a_released_server_is_got(tmp_path: Path) -> None:
    async with ReleaseServer().running() as releases:
        env = {RELEASES_VARIABLE: releases.url}
        code, out, err = await voltaire(tmp_path, "server", "get", "--vulkan", env=env)
    assert (code, err) == (0, "")
    assert f"release {TAG}" in out and "Vulkan0: Tesla V100" in out
    [server] = tmp_path.rglob("released-*/*/llama-server")
    assert f"{server}, release" in out


@pytest.mark.slow
async def test_a_running_backend_measures_both_and_keeps_what_serves(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = settings.state_dir / "servers"
    good = program(servers / "good" / "llama-server", EMBEDDED)
    bad = program(servers / "bad" / "llama-server", f'[ "$1" = --help ] || exit 1\n{EMBEDDED}')
    use_server(servers, good)
    async with running_backend(settings) as backend:
        async for _ in backend.ready(SECONDS):
            pass
        before = (await backend.status()).backend
        await use_faster(settings, good, bad)
        after = (await backend.status()).backend
    assert used_server(servers) == good
    assert (before.state, after.state) == ("ready", "ready") and before.pid != after.pid
    out = capsys.readouterr().out
    assert f"{bad} did not serve" in out and out.endswith(f"In use: {good}\n")


async def test_without_a_backend_both_are_started_for_it(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = settings.state_dir / "servers"
    bad = program(servers / "bad" / "llama-server", f'[ "$1" = --help ] || exit 1\n{EMBEDDED}')
    good = program(servers / "good" / "llama-server", EMBEDDED)
    use_server(servers, bad)
    await use_faster(settings, bad, good)
    assert used_server(servers) == good
    assert capsys.readouterr().out.endswith(f"In use: {good}\n")
