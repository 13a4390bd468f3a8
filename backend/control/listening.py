"""HTTP over a UNIX socket, as the backend and the owner of the state serve it."""

import socket
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
    runner = web.AppRunner(
        app, access_log=None, handler_cancellation=True, shutdown_timeout=CLOSING_SECONDS
    )
    try:
        await runner.setup()
        await web.SockSite(runner, bound_socket(path, 0o660 if group else 0o600)).start()
        yield
    finally:
        await runner.cleanup()
        path.unlink(missing_ok=True)


def bound_socket(path: Path, mode: int) -> socket.socket:
    """A UNIX socket at the path, of that mode before it listens; the umask, which all threads share, is left alone."""
    if path.is_socket():
        path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(mode)
    except OSError:
        listener.close()
        raise
    return listener
