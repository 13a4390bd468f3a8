"""The llama-server of this machine: which program it is, and what its `--help` says."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from backend.config import BackendConfig
from backend.programs import output_of
from backend.server import flags
from backend.server.diagnosis import Cause, diagnose

HELP_SECONDS = 30.0
EMBEDDED = (sys.executable, "-m", "backend.embedded")


class CannotStart(Exception):
    """Nothing was started; `cause` says why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.sentence)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Binary:
    command: tuple[str, ...]
    env: Mapping[str, str]
    help: str


async def find(config: BackendConfig) -> Binary:
    """The server to use and what its `--help` says."""
    command = _command(config)
    env = _environment(command)
    text = await _help(command, env)
    return Binary(command, env, text)


def _command(config: BackendConfig) -> tuple[str, ...]:
    if config.server == "embedded":
        return EMBEDDED
    if config.server == "auto":
        built = config.state_dir / "servers" / "llama-server"
        found = str(built) if built.exists() else shutil.which("llama-server")
        return (found,) if found else EMBEDDED
    path = Path(config.server).expanduser()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise CannotStart(
            Cause("unknown", f"The model server {path} is missing or not executable.")
        )
    return (str(path.resolve()),)


def _environment(command: tuple[str, ...]) -> dict[str, str]:
    """Ours, with the server's own folder first for libraries (V100 packs ship CUDA beside it)."""
    env = dict(os.environ)
    if command == EMBEDDED:
        root = str(Path(__file__).parents[2])
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (root, env.get("PYTHONPATH"))))
    else:
        folder = str(Path(command[0]).parent)
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (folder, env.get("LD_LIBRARY_PATH"))))
    return env


_helps: dict[tuple[str, int, int], str] = {}  # by path, size and time of the binary


async def _help(command: tuple[str, ...], env: Mapping[str, str]) -> str:
    key = stamp(
        Path(__file__).parents[1] / "embedded" / "flags.py"
        if command == EMBEDDED
        else Path(command[0])
    )
    if key not in _helps:
        _helps[key] = await _ask_help(command, env)
    return _helps[key]


async def _ask_help(command: tuple[str, ...], env: Mapping[str, str]) -> str:
    try:
        answer = await output_of((*command, "--help"), env=env, seconds=HELP_SECONDS)
    except TimeoutError:
        raise CannotStart(
            Cause("unknown", "The model server does not even answer --help.")
        ) from None
    except OSError as error:
        sentence = f"The model server {command[0]} cannot be run: {error.strerror}."
        raise CannotStart(Cause("server missing", sentence)) from None
    if not flags.known(answer.text):
        raise CannotStart(diagnose(answer.code, answer.text.splitlines()))
    return answer.text


def stamp(path: Path) -> tuple[str, int, int]:
    """What changes when a file does."""
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), found.st_size, found.st_mtime_ns
