"""Progress of slow work, on one line of the terminal that is rewritten each second."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agent.aio import BackgroundTasks

if TYPE_CHECKING:
    from backend.config import BackendConfig
    from backend.models.profile import Source

T = TypeVar("T")


@asynccontextmanager
async def sign_of_life(doing: Callable[[], str]) -> AsyncIterator[None]:
    """Within the block, show on stderr what is being done and for how long, if stderr is a terminal."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    began = time.monotonic()

    async def tick() -> None:
        while True:
            status.update(escape(f"{doing()}, {time.monotonic() - began:.0f} s"))
            await asyncio.sleep(1)

    with console.status("") as status:
        async with BackgroundTasks() as tasks:
            tasks.start(tick(), "a sign of life")
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

    async with sign_of_life(doing):
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
