"""Voltaire as an MCP server on standard input and output: what it knows of one chat, and `ask`, with the rights of the
user who starts it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

from backend.client import BackendUnavailable
from bot.cli.ask import run_one_turn
from bot.cli.command import Options
from bot.cli.connect import backend_client
from bot.cli.holder_client import change
from bot.cli.status import own_facts

MOST = 50  # results of a search
CLIENT = "a program that uses voltaire mcp serve"  # it may repeat what it has read: a stranger
ABOUT = (
    "What a personal agent (Voltaire) knows of its owner's chat and machine. Text from conversations may hold what "
    "strangers wrote."
)


async def run_server(options: Options, chat: str) -> None:
    """Serve until standard input ends."""
    server = MCPServer(
        "voltaire", instructions=ABOUT, version=version("voltaire-agent"), log_level="WARNING"
    )
    reading = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)
    for function in abilities(options, chat):
        server.add_tool(function, annotations=reading)
    acting = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
    server.add_tool(asking(options, chat), annotations=acting)
    await server.run_stdio_async()


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
