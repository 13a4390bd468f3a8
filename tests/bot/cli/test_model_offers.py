"""What /model offers, from this machine: a download in a process of its own, and what lies here."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from agent.errors import AgentError
from backend.models.outlook import PREFERRED_CPU
from backend.protocol import Gpu, ServerStatus, Speed, Status
from bot.cli import model_offers
from bot.cli.model_offers import MachineModels
from bot.settings import load
from fakes import gguf_maker
from fakes.command_line import voltaire_beside as voltaire
from fakes.gguf_maker import MEDIUM
from fakes.hub import Hub

CONTENT = bytes(range(256)) * 20_000
FAR = 'title = "F"\ncontext = 8192\n[model]\nrepo = "a/b"\nfile = "m.gguf"\nsize = 5120000\n'
REPORT = Status(version="1", uptime_s=1, backend=ServerStatus(state="ready"), speed=Speed())


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    async with Hub(CONTENT).running() as hub:
        yield hub


@pytest.fixture
def models(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MachineModels:
    folders = {"HOME": "", "XDG_STATE_HOME": "s", "XDG_CONFIG_HOME": "x", "HF_HOME": "hf"}
    for name, folder in folders.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    profiles = tmp_path / "x" / "voltaire" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "far.toml").write_text(FAR)
    return MachineModels(load())


async def fetched(models: MachineModels, name: str) -> list[tuple[int, int | None]]:
    async with aclosing(models.download(name)) as steps:
        return [step async for step in steps]


async def test_a_model_is_downloaded_with_its_progress(
    models: MachineModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_offers, "LOOK_SECONDS", 0.05)
    steps = await fetched(models, "far")
    assert steps and all(done >= 0 and size == 5_120_000 for done, size in steps)
    assert (tmp_path / "s/voltaire/models/m.gguf").read_bytes() == CONTENT
    assert models.running == set()


async def test_a_download_that_fails_says_why(models: MachineModels, hub: Hub) -> None:
    hub.status = 404
    with pytest.raises(AgentError, match=r"a/b has no file m\.gguf"):
        await fetched(models, "far")
    with pytest.raises(AgentError, match="There is no profile called nothing"):
        await fetched(models, "nothing")
    assert models.running == set()


async def test_a_download_ends_with_whoever_waits_for_it(
    models: MachineModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_offers, "LOOK_SECONDS", 0.01)
    async with aclosing(models.download("far")) as steps:
        await anext(steps)
        assert models.running == {"far"}
    assert models.running == set()


async def test_what_fits_the_cards_of_the_backend_is_offered(
    models: MachineModels, tmp_path: Path
) -> None:
    own = tmp_path / ".cache" / "llama.cpp" / "own.gguf"
    own.parent.mkdir(parents=True)
    gguf_maker.make(own, MEDIUM)
    card = Gpu(index=0, name="V100", memory_total_mib=16384)
    with_card = REPORT.model_copy(update={"gpus": [card]})
    offered = {each.name: each for each in await models.offers(with_card)}
    assert offered["gemma4-26b-a4b"].size and not offered["gemma4-26b-a4b"].command
    assert offered["own"].command.startswith(f"voltaire run --model {own}")
    assert "pocket" not in offered and "llama3.3-70b-2x" not in offered
    without = [each.name for each in await models.offers(REPORT)]
    assert (*without[:2],) == PREFERRED_CPU[:2] and "own" in without and "far" not in without
    models.demo = True
    in_demo = {each.name: each for each in await models.offers(with_card)}
    assert in_demo.keys() == offered.keys()
    assert in_demo["own"].command.partition("  ")[0] == f"make demo MODEL={own}"


@pytest.mark.slow
async def test_the_last_turns_are_rehearsed_by_the_command(
    models: MachineModels, tmp_path: Path
) -> None:
    with pytest.raises(AgentError, match="There is no such turn yet"):
        await models.rehearse("pocket")
    code, _, err = await voltaire(tmp_path, "ask", "how much disk space is free?")
    assert code == 0, err
    found = await models.rehearse("pocket")
    assert (found.turns, found.recorded, found.same, found.failed) == (1, 1, 1, 0)
    assert found.decode_tok_s and found.first_word_s
