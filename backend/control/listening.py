"""HTTP over a UNIX socket, as the backend and the owner of the state serve it; and MCP requests passed on to
`voltaire mcp serve --socket`."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web

from backend.client import default_socket
from backend.config import BackendConfig

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


SOCKET = "mcp.sock"  # in the folder of the control socket
NO_SERVER = "Nobody offers MCP here: voltaire mcp serve --socket"
HOP_BY_HOP = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})
TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5)  # a turn may take half an hour


def mcp_socket(config: BackendConfig) -> Path:
    return (config.socket or default_socket(config.state_dir)).with_name(SOCKET)


async def relay_mcp(request: web.Request, socket: Path) -> web.StreamResponse:
    headers = {k: v for k, v in request.headers.items() if k.lower() not in HOP_BY_HOP}
    body = await request.read()
    connector = aiohttp.UnixConnector(str(socket))
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector, timeout=TIMEOUT, auto_decompress=False
            ) as session,
            session.request(
                request.method,
                "http://localhost/mcp",
                headers=headers,
                data=body or None,
                allow_redirects=False,
            ) as answer,
        ):
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in HOP_BY_HOP}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response
    except aiohttp.ClientConnectorError:
        return web.Response(status=503, text=NO_SERVER)
    except (OSError, aiohttp.ClientError):
        return web.Response(status=502, text="What offers MCP here went away.")
