"""What holds for all tests."""

import ctypes
import gc
import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

import bot.settings
from agent import language
from agent.store import database
from bot.installed_program import MAKE

for variable in MAKE:  # of `make test`: programs say what they would be given under make
    os.environ.pop(variable, None)

# Not what is installed on this machine; commands that are forked from here (fakes/command_line.py) inherit it.
bot.settings.MACHINE = Path("/nonexistent/voltaire/config.toml")

# A bot with a new state reads each catalogue once and forgets it: that was half of such a test's time.
language.read_catalogue = cache(language.read_catalogue)


@cache
def empty_database() -> bytes:
    """A file with the newest schema and no rows."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        steps = database.migrations()
        for sql in (sql for step in steps for sql in database.statements(step)):
            made.execute(sql)
        made.execute(f"PRAGMA user_version = {len(steps)}")
        return made.serialize()


def create_copied(path: Path, create: Callable[[Path], None] = database._create) -> None:
    """Create a database as a copy: its tables, made anew, were three quarters of what each of a thousand tests does
    to open a store."""
    whole = path.with_name(f".made-{os.getpid()}-{threading.get_ident()}")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            whole.touch(0o600)
            whole.write_bytes(empty_database())
            os.link(whole, path)
    with suppress(OSError):
        whole.unlink()
    create(path)


database._create = create_copied

settings.register_profile(
    "untimed", deadline=None
)  # an example takes as long as the machine is busy
settings.load_profile("untimed")

NVML = Path(__file__).parents[1] / "fakes/nvml.c"

# One worker runs a whole file: the longest begin first, so that none is left alone at the end.
LONGEST = (
    "bot/matrix",
    "bot/test_setup",
    "bot/cli/test_holder",
    "agent/shell/test_web_render",
    "backend/server/test_lending",
    "backend/server/test_chat_states",
    "agent/sandbox/test_attacks",
    "bot/cli/test_first_evening",
    "bot/cli/test_send",
    "bot/page/test_browser",
    "agent/mail/test_reading",
    "agent/calendar/test_reminders",
    "bot/cli/test_demo",
    "backend/server/test_faults",
    "agent/schedule/test_watches",
    "test_fuzz",
    "test_languages",
)


# What one worker runs, too: the tests of these folders share a homeserver that takes seconds to start.
TOGETHER = ("bot/matrix",)


def unit(nodeid: str) -> str:
    """The file of a test, or the folder whose files stay together."""
    file = nodeid.partition(".py::")[0].removeprefix("tests/")
    folder = file.rpartition("/")[0]
    return folder if folder in TOGETHER else file


def pytest_configure(config: pytest.Config) -> None:
    """Have each worker import the files from another one on: in a fresh checkout the first to import a file writes the
    bytecode of its rewritten asserts, which takes as long as the rest of the collection."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and not any("::" in arg for arg in config.args):
        paths = [config.invocation_params.dir / arg for arg in config.args]
        files = sorted(
            f for path in paths for f in ([path], path.rglob("test_*.py"))[path.is_dir()]
        )
        first = len(files) * int(worker[2:]) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        config.args[:] = map(str, [*files[first:], *files[:first]])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect tests without collecting garbage, which then never looks through the tests and modules either: that took a
    third of the collection's computing, and of that of tests that run in this process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> tuple[int, Path]:
        of = unit(item.nodeid)
        return (LONGEST.index(of) if of in LONGEST else len(LONGEST)), item.path

    items.sort(key=place)


class UnitScheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return UnitScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session", autouse=True)
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The fake libnvidia-ml.so.1, loaded before a test asks for the machine's own: a process keeps the first.

    None without a C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    out = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    named = "-Wl,-soname,libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", named, "-o", out, NVML], check=True)
    ctypes.CDLL(str(out), mode=ctypes.RTLD_GLOBAL)
    return out
