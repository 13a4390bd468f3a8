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
PACKAGE = Path(__file__).parents[1]


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


_help_texts: dict[tuple[str, int, int], str] = {}  # by path, size and time of the binary


async def find(config: BackendConfig) -> Binary:
    """The server to use and what its `--help` says; CannotStart when it does not run."""
    command = configured_command(config)
    env = dict(os.environ)
    if command == EMBEDDED:
        program = PACKAGE / "embedded" / "flags.py"
        prepend(env, "PYTHONPATH", PACKAGE.parent)
    else:
        program = Path(command[0])
        prepend(env, "LD_LIBRARY_PATH", program.parent)  # V100 packs ship CUDA beside it
    key = stamp(program)
    if key not in _help_texts:
        _help_texts[key] = await ask_help(command, env)
    return Binary(command, env, _help_texts[key])


def configured_command(config: BackendConfig) -> tuple[str, ...]:
    if config.server == "embedded":
        return EMBEDDED
    if config.server == "auto":
        built = config.state_dir / "servers" / "llama-server"
        found = str(built) if built.exists() else shutil.which("llama-server")
        return (found,) if found else EMBEDDED
    path = Path(config.server).expanduser()
    if not path.is_file() or not os.access(path, os.X_OK):
        sentence = f"The model server {path} is missing or not executable."
        raise CannotStart(Cause("unknown", sentence))
    return (str(path.resolve()),)


def prepend(env: dict[str, str], variable: str, folder: Path) -> None:
    env[variable] = os.pathsep.join(filter(None, (str(folder), env.get(variable))))


async def ask_help(command: tuple[str, ...], env: Mapping[str, str]) -> str:
    try:
        answer = await output_of((*command, "--help"), env=env, seconds=HELP_SECONDS)
    except TimeoutError:
        sentence = "The model server does not even answer --help."
        raise CannotStart(Cause("unknown", sentence)) from None
    except OSError as error:
        sentence = f"The model server {command[0]} cannot be run: {error.strerror}."
        raise CannotStart(Cause("server missing", sentence)) from None
    if not flags.known(answer.text):
        raise CannotStart(diagnose(answer.code, answer.text.splitlines()))
    return answer.text


def stamp(path: Path) -> tuple[str, int, int]:
    """Path, size and time: what changes when the file does."""
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), found.st_size, found.st_mtime_ns
