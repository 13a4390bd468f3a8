"""The second server, for vectors: the real one, beside the first."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from agent.memory.search import Embedder, EmbeddingsUnavailable
from backend.config import BackendConfig
from backend.protocol import EmbeddingStatus
from fakes.backend_running import QUICK, Running, running
from fakes.patience import SECONDS, soon

POCKET = Path(str(files("backend.embedded") / "pocket.gguf"))
TOML = f"""
title = "Vectors of a toy"
gpu = false
context = 512
[model]
path = "{POCKET}"
[flags.required]
"--embedding" = ""
"--pooling" = "mean"
"""


def config(folder: Path, embedding: str) -> BackendConfig:
    own = folder / "config" / "profiles"
    (folder / "config" / "embedders").mkdir(parents=True)
    (folder / "config" / "embedders" / "toy.toml").write_text(TOML)
    return BackendConfig(
        state_dir=folder / "state", server="embedded", profiles=own, embedding=embedding
    )


async def told(running: Running, fits: Callable[[EmbeddingStatus], bool]) -> EmbeddingStatus:
    """What the status says of the second server, once it fits."""
    async with asyncio.timeout(SECONDS):
        while True:
            status = (await running.client.status()).embedding
            if status and fits(status):
                return status
            await asyncio.sleep(0.02)  # nothing else tells of it


def pid_of(running: Running) -> int:
    record = running.backend.state.config.state_dir / "run" / "embedding.json"
    return int(json.loads(record.read_text())["pid"]) if record.exists() else 0


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGSTOP, id="stopped", marks=pytest.mark.slow),
    ],
)
async def test_vectors_come_from_a_server_of_our_own_and_from_its_next(
    tmp_path: Path, number: signal.Signals
) -> None:
    async with running(config(tmp_path, "toy"), QUICK) as backend:
        embedder = Embedder("http://backend", "toy", backend.backend.socket)
        await told(backend, lambda status: status.state == "ready")
        [bees, again] = await embedder.vectors(["bees and honey", "bees and honey"], SECONDS)
        assert len(bees) > 8
        assert bees == again
        first = pid_of(backend)
        os.kill(first, number)
        await soon(lambda: pid_of(backend) not in (0, first))
        await told(backend, lambda status: status.state == "ready")
        assert await embedder.vectors(["bees and honey"], SECONDS) == [bees]


async def test_without_its_file_it_says_how_to_get_it_and_searches_go_on(tmp_path: Path) -> None:
    async with running(config(tmp_path, "embeddinggemma-300m"), QUICK) as backend:
        status = await told(backend, lambda status: status.state == "failed")
        assert "voltaire model pull embeddinggemma-300m" in (status.reason or "")
        assert backend.backend.state.alerts.kept[-1].name == "embedding"
        embedder = Embedder("http://backend", "x", backend.backend.socket)
        with pytest.raises(EmbeddingsUnavailable, match="503"):
            await embedder.vectors(["a"], SECONDS)


async def test_where_none_is_configured_none_runs(tmp_path: Path) -> None:
    async with running(config(tmp_path, ""), QUICK) as backend:
        assert (await backend.client.status()).embedding is None
        assert not (tmp_path / "state" / "run" / "embedding.json").exists()
