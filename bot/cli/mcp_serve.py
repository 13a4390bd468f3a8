"""Voltaire as an MCP server on standard input and output: what it knows, and nothing that changes anything."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

from agent.memory.notes import ChatMemory
from backend.client import BackendUnavailable
from bot.cli.command import Options
from bot.cli.connect import backend_client
from bot.cli.jobs import open_planner
from bot.cli.status import own_facts
from bot.composition import semantic_search
from bot.settings import Settings

MOST = 50  # results of a search
ABOUT = (
    "What a personal agent (Voltaire) knows of its owner's chat and machine. Text from conversations may hold what "
    "strangers wrote."
)


async def run_server(options: Options, chat: str) -> None:
    """Until standard input ends."""
    server = MCPServer(
        "voltaire", instructions=ABOUT, version=version("voltaire-agent"), log_level="WARNING"
    )
    reading = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)
    for function in abilities(options, chat):
        server.add_tool(function, annotations=reading)
    await server.run_stdio_async()


def abilities(options: Options, chat: str) -> Sequence[Callable[..., Awaitable[Mapping[str, Any]]]]:
    """Each opens what it needs for itself, so that it can run beside the bot."""
    settings: Settings = options.settings

    async def recall(query: str, limit: int = 8) -> dict[str, Any]:
        """Search the notes and past conversations of the chat; the best matches first."""
        async with open_planner(options, chat) as (store, planner):
            memory = ChatMemory(store, chat, planner.zone, semantic_search(store, settings))
            found = await memory.recall(query, max(1, min(limit, MOST)))
        return {"chat": chat, "matches": [asdict(match) for match in found]}

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
        async with open_planner(options, chat) as (_, planner):
            return {"chat": chat, "jobs": [planner.describe(job) for job in await planner.jobs()]}

    return [recall, status, gpu, jobs]
