"""Voltaire as an MCP server, on standard input and output or behind the control socket: what it knows of one chat,
and `ask`, with the rights of the user who starts it."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

from backend.client import BackendUnavailable
from backend.control.listening import bound_socket, mcp_socket
from backend.files import private_folder
from bot.cli.ask import run_one_turn
from bot.cli.backend_config import backend_config
from bot.cli.command import Failed, Options
from bot.cli.connect import backend_client
from bot.cli.holder_client import change
from bot.cli.status import own_facts

log = logging.getLogger(__name__)

MOST = 50  # results of a search
CLIENT = "a program that uses voltaire mcp serve"  # it may repeat what it has read: a stranger
ABOUT = (
    "What a personal agent (Voltaire) knows of its owner's chat and machine. Text from conversations may hold what "
    "strangers wrote."
)


async def run_server(options: Options, chat: str, *, on_socket: bool) -> None:
    """Serve until standard input ends, on the socket until cancelled."""
    server = MCPServer(
        "voltaire", instructions=ABOUT, version=version("voltaire-agent"), log_level="WARNING"
    )
    reading = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)
    for function in abilities(options, chat):
        server.add_tool(function, annotations=reading)
    acting = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
    server.add_tool(asking(options, chat), annotations=acting)
    if on_socket:
        await serve_on_socket(server, mcp_socket(backend_config(options.settings)))
    else:
        await server.run_stdio_async()


async def serve_on_socket(server: MCPServer, path: Path) -> None:
    """Serve streamable HTTP at /mcp on a UNIX socket that only this user's programs can open."""
    import uvicorn

    private_folder(path.parent)
    with closing(socket.socket(socket.AF_UNIX)) as asking:
        if asking.connect_ex(os.fspath(path)) == 0:
            raise Failed("It is offered on the control socket already.")
    listener = bound_socket(path, 0o600)
    app = server.streamable_http_app()
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    log.warning("offered at /v1/mcp of the control socket")
    offered = uvicorn.Server(config)
    serving = asyncio.create_task(offered.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    finally:
        offered.should_exit = True  # cancelled, it would print a traceback
        path.unlink(missing_ok=True)
        await serving


def asking(options: Options, chat: str) -> Callable[[str], Awaitable[Mapping[str, Any]]]:
    async def ask(text: str) -> dict[str, Any]:
        """Have the agent answer a question or do a task in its chat, with its own tools, as a turn of that chat. Steps that
        need the owner's word are denied. It may take minutes."""
        finished = await run_one_turn(
            options.settings, chat, text, lambda event: None, stranger=CLIENT
        )
        return {"chat": chat, "answer": finished.text, "ended": finished.reason}

    return ask


def abilities(options: Options, chat: str) -> Sequence[Callable[..., Awaitable[Mapping[str, Any]]]]:
    """The read-only tools."""
    settings = options.settings

    async def recall(query: str, limit: int = 8) -> dict[str, Any]:
        """Search the notes and past conversations of the chat; the best matches first."""
        fields = {"chat": chat, "query": query, "limit": max(1, min(limit, MOST))}
        return {"chat": chat, "matches": await change(settings, "recall", **fields)}

    async def status() -> dict[str, Any]:
        """Whether the model's server and the bot run, which model, how fast, what waits."""
        return await own_facts(settings)

    async def gpu(minutes: int = 10) -> dict[str, Any]:
        """Temperature, power, memory and use of each GPU, now and in the last minutes."""
        facts = await own_facts(settings)
        minutes_ago: list[dict[str, Any]] = []
        async with backend_client(settings) as backend:
            with suppress(BackendUnavailable):
                history = await backend.gpu_history(max(1, min(minutes, 60)))
                minutes_ago = [minute.model_dump(mode="json") for minute in history]
        return {"gpus": facts["gpus"], "history": minutes_ago}

    async def jobs() -> dict[str, Any]:
        """The scheduled jobs of the chat with their next times."""
        found = await change(settings, "jobs", chat=chat)
        return {"chat": chat, "jobs": [job["told"] for job in found]}

    return [recall, status, gpu, jobs]
