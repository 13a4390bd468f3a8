"""One tool, run as the agent would run it."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from agent.approvals import GuardedCall
from agent.errors import AgentError, ToolError
from agent.tools.tool import Call, Output, Tool
from backend.client import BackendClient
from bot.backend_connection import socket_of
from bot.composition import stored_agent
from bot.settings import Settings


async def run_tool(
    settings: Settings, chat: str, call: str, name: str, arguments: Mapping[str, Any]
) -> Output:
    """One tool as the agent would run it; what went wrong is its output."""
    async with (
        BackendClient(socket_of(settings)) as backend,
        stored_agent(settings, backend) as agent,
    ):
        tool = next((tool for tool in agent.tools if tool.name == name), None)
        if tool is None:
            raise AgentError(f"There is no tool named {name}.{_near(name, agent.tools)}")
        await agent.look()
        step = GuardedCall(f"cli-{call}", call, chat, lambda: False)
        approve = agent.approvals.approver(step, lambda event: None)
        surroundings = Call(call, step.turn, chat, await agent.desks.of(chat), approve)
        try:
            return await tool.run(surroundings, arguments)
        except ToolError as error:
            return Output(f"Error: {error}", ok=False)


def _near(name: str, tools: Sequence[Tool]) -> str:
    near = get_close_matches(name, [tool.name for tool in tools], 1)
    return f" Did you mean {near[0]}?" if near else ""
