"""HTTP over a UNIX socket, as the backend and the owner of the state serve it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

CLOSING_SECONDS = 0.5


@asynccontextmanager
async def listen_on(
    app: web.Application, path: Path, *, group: bool = False
) -> AsyncIterator[None]:
    """Serve on the socket at `path` with mode 0600, for its `group` too with mode 0660."""
    try:
        async with app_runner(app) as runner:
            before = os.umask(0o117 if group else 0o177)
            try:
                await web.UnixSite(runner, str(path)).start()
            finally:
                os.umask(before)
            yield
    finally:
        path.unlink(missing_ok=True)


@asynccontextmanager
async def app_runner(app: web.Application) -> AsyncIterator[web.AppRunner]:
    """A runner that cancels the handlers of clients that have disconnected."""
    runner = web.AppRunner(
        app, access_log=None, handler_cancellation=True, shutdown_timeout=CLOSING_SECONDS
    )
    await runner.setup()
    try:
        yield runner
    finally:
        await runner.cleanup()
