"""Progress of slow work, on one line of the terminal that is rewritten each second."""

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from backend.config import BackendConfig
    from backend.models.profile import Source

T = TypeVar("T")

# On a busy machine or a slow disk the libraries of a command take seconds to read.
SILENT_SECONDS = 0.7
STARTING = "Starting; reading the program takes a moment on this machine "


@contextmanager
def reading_program() -> Iterator[None]:
    """Within the block, which imports, say each second that the program is being read, if stderr is a terminal."""
    words = STARTING

    def tell(*_: object) -> None:
        nonlocal words
        click.echo(words, nl=False, err=True)
        words = "."

    before = signal.signal(signal.SIGALRM, tell)
    if sys.stderr.isatty():
        signal.setitimer(signal.ITIMER_REAL, SILENT_SECONDS, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        click.echo("\r\x1b[K" * (words == "."), nl=False, err=True)


@contextmanager
def sign_of_life(doing: str | Callable[[], str]) -> Iterator[None]:
    """Within the block, show on stderr what is being done and for how long, if stderr is a terminal.

    Nothing may be asked in it.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    console, began, spinner = Console(stderr=True), time.monotonic(), Spinner("dots")

    def line() -> Spinner:
        what = doing if isinstance(doing, str) else doing()
        spinner.update(text=Text(f"{what}, {time.monotonic() - began:.0f} s"))
        return spinner

    shown = sys.stdout.isatty()  # else what is printed there stays apart from this terminal
    with Live(console=console, get_renderable=line, transient=True, redirect_stdout=shown):
        yield


async def pull_files(
    sources: "Sequence[Source]", config: "BackendConfig", say: Callable[[str], None] = click.echo
) -> Path:
    """Download each source that is not here, and show how far it is; return the path of the first."""
    from agent.files import bytes_below
    from backend.models.pull import pull

    sizes = [source.size for source in sources]
    whole = f" of {sum(filter(None, sizes)) / 1e6:,.0f}" if all(sizes) else ""
    before = bytes_below(config.models_folder)

    def doing() -> str:
        have = max(0, bytes_below(config.models_folder) - before)
        return f"downloading, {have / 1e6:,.0f}{whole} MB"

    with sign_of_life(doing):
        return await in_daemon_thread(pull, sources, config, say)


async def in_daemon_thread(function: Callable[..., T], *args: Any) -> T:
    """Run a blocking function in a thread that the process does not wait for when it is interrupted."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def settle(set_value: Callable[[Any], None], value: object) -> None:
        if not ended.done():
            set_value(value)

    def work() -> None:
        try:
            outcome: tuple[Any, object] = ended.set_result, function(*args)
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            outcome = ended.set_exception, error
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=work, daemon=True).start()
    return await ended
