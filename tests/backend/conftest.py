"""A folder with a short path, small models, and backends that leave nothing behind."""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend.config import BackendConfig
from fakes import gguf_maker
from fakes.backend_running import QUICK, SYSTEM, Running, running

__all__ = ["QUICK", "SYSTEM", "Running", "running", "with_server"]


@pytest.fixture
def state() -> Iterator[Path]:
    """A state folder whose path is short enough for a UNIX socket."""
    folder = Path(tempfile.mkdtemp(prefix="vb"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama of random weights with a 32k window."""
    return gguf_maker.make(tmp_path_factory.mktemp("models") / "noise.gguf")


@pytest.fixture
def config(state: Path, noise: Path) -> BackendConfig:
    return BackendConfig(state_dir=state, model=str(noise), server="embedded")


def with_server(config: BackendConfig, program: Path, **changes: Any) -> BackendConfig:
    return replace(config, server=str(program), **changes)
