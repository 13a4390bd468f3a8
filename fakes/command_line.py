"""`voltaire` on folders of a test's own, as a process that is forked from the test's: nothing is imported anew."""

import asyncio
import atexit
import contextvars
import importlib
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from agent.language import catalogue, languages
from bot.cli import COMMANDS, MODULES, exit_code
from fakes.patience import SECONDS

LATER = (
    "agent.voice",
    "apscheduler.schedulers.asyncio",
    "apscheduler.triggers.cron",
    "bot.matrix",
    "pynvml",
)
for name in (*(f"bot.cli.{MODULES.get(name, (name,))[0]}" for name in COMMANDS), *LATER):
    importlib.import_module(name)  # before the first fork

for code in languages()[1:]:
    catalogue(code)  # tests/conftest.py has what it reads kept: a bot that is forked finds it

VOLTAIRE = Path(sys.executable).with_name("voltaire")
WAITING: set[asyncio.Task[None]] = set()  # a loop alone would lose them
Ended = tuple[int, str, str]  # exit code, standard output, standard error


def own_environment() -> dict[str, str]:
    """The environment without what would be the product's settings."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("VOLTAIRE_", "CUDA_"))}


def folders(home: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(home / "s"), "XDG_CONFIG_HOME": str(home / "x")}


def voltaire(
    home: Path,
    *words: str,
    config: str | None = None,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command that ends by itself; `config` is the text of its configuration file."""
    given = [*_configured(home, config), *words]
    done = subprocess.run(
        [VOLTAIRE, *given],
        preexec_fn=becoming(given, {**own_environment(), **folders(home), **(env or {})}),
        input=stdin.encode(),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


async def voltaire_beside(
    home: Path,
    *words: str,
    config: str | None = None,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
) -> Ended:
    """The same beside what runs in the test's event loop."""
    pipe = asyncio.subprocess.PIPE
    process = await start_voltaire(
        *(*_configured(home, config), *words),
        env={**own_environment(), **folders(home), **(env or {})},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    )
    out, err = await asyncio.wait_for(process.communicate(stdin), SECONDS)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def start_voltaire(
    *words: str | Path, env: Mapping[str, str] | None = None, **more: Any
) -> asyncio.subprocess.Process:
    """Start a command, which ends with the event loop at the latest; `more` is create_subprocess_exec's."""
    process = await asyncio.create_subprocess_exec(
        VOLTAIRE,
        *words,
        preexec_fn=becoming([str(word) for word in words], env or os.environ),
        **more,
    )
    waiting = asyncio.create_task(_end_with_loop(process))
    WAITING.add(waiting)
    waiting.add_done_callback(WAITING.discard)
    return process


async def _end_with_loop(process: asyncio.subprocess.Process) -> None:
    try:
        await process.wait()
    finally:
        if (
            process.returncode is None
        ):  # a test has failed, and would leave an open transport to another
            process.kill()
            await process.wait()


def becoming(words: list[str], env: Mapping[str, str]) -> Callable[[], NoReturn]:
    """What a child does between its fork and its exec, which never comes."""
    return partial(_become, words, dict(env))


def _become(words: list[str], env: dict[str, str]) -> NoReturn:
    """Be `voltaire` in the child of a fork, as a new interpreter would start it."""
    code = 1
    try:
        os.closerange(3, 1 << 16)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
        os.environ.clear()
        os.environ.update(env)
        time.tzset()
        random.seed()
        _forget_the_test()
        sys.argv = [str(VOLTAIRE), *words]
        code = contextvars.Context().run(exit_code, words)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                code = code or 1
        os._exit(code)


def _forget_the_test() -> None:
    atexit._clear()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asyncio._set_running_loop(None)
    asyncio.set_event_loop_policy(None)
    logging.getLogger().handlers.clear()
    logging.getLogger().setLevel(logging.WARNING)
    warnings.simplefilter("ignore")
    sys.unraisablehook, threading.excepthook = sys.__unraisablehook__, threading.__excepthook__
    for name in [name for name in sys.modules if name.startswith("huggingface_hub")]:
        del sys.modules[name]  # it reads its environment when it is imported


def _configured(home: Path, config: str | None) -> list[str]:
    if config is None:
        return []
    file = home / "c.toml"
    file.write_text(config)
    return ["--config", str(file)]
