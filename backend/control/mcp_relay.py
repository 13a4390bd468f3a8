"""/v1/mcp of the control API: what programs ask of Voltaire as an MCP server (streamable HTTP) goes on to
`voltaire mcp serve --socket`, where that runs beside this backend."""

from pathlib import Path

import aiohttp
from aiohttp import web

from backend.client import default_socket
from backend.config import BackendConfig

SOCKET = "mcp.sock"  # beside the control socket
NOBODY = "Nobody offers MCP here: voltaire mcp serve --socket"
OF_ONE_CONNECTION = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})
WAITS = aiohttp.ClientTimeout(total=None, sock_connect=5)  # a turn may take half an hour


def mcp_socket(config: BackendConfig) -> Path:
    return (config.socket or default_socket(config.state_dir)).with_name(SOCKET)


async def relay_mcp(request: web.Request, socket: Path) -> web.StreamResponse:
    headers = {k: v for k, v in request.headers.items() if k.lower() not in OF_ONE_CONNECTION}
    body = await request.read()
    connector = aiohttp.UnixConnector(str(socket))
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector, timeout=WAITS, auto_decompress=False
            ) as session,
            session.request(
                request.method,
                "http://localhost/mcp",
                headers=headers,
                data=body or None,
                allow_redirects=False,
            ) as answer,
        ):
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in OF_ONE_CONNECTION}
            back = web.StreamResponse(status=answer.status, headers=kept)
            await back.prepare(request)
            async for piece in answer.content.iter_any():
                await back.write(piece)
            return back
    except aiohttp.ClientConnectorError:
        return web.Response(status=503, text=NOBODY)
    except (OSError, aiohttp.ClientError):
        return web.Response(status=502, text="What offers MCP here went away.")
