"""voltaire tool: one tool exactly as the agent would run it."""

import json
import secrets
from difflib import get_close_matches

import click

from agent.approvals import GuardedCall
from agent.errors import ToolError
from agent.tools.tool import Call, Output
from bot.cli.command import (
    Failed,
    Misused,
    Options,
    chat_option,
    json_option,
    pass_options,
    runs,
)
from bot.cli.connect import backend_client
from bot.composition import Agent, open_agent


@click.command("tool", help="Run one tool as the agent would and print what the model would see.")
@click.argument("name")
@click.argument("arguments")
@chat_option
@json_option
@pass_options
@runs
async def command(options: Options, name: str, arguments: str, chat: str, as_json: bool) -> int:
    try:
        values = json.loads(arguments)
    except ValueError as error:
        raise Misused(f"The arguments are not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise Misused('The arguments must be a JSON object, such as {"path": "notes.txt"}.')
    settings, call = options.settings, secrets.token_hex(4)
    async with backend_client(settings) as backend, open_agent(settings, backend) as agent:
        output = await run(agent, chat, call, name, values)
    fields = {"id": call, "name": name, "ok": output.ok, "output": output.text}
    click.echo(json.dumps(fields, ensure_ascii=False) if as_json else output.text)
    return 0 if output.ok else 1


async def run(agent: Agent, chat: str, id: str, name: str, arguments: dict[str, object]) -> Output:
    """One call; what went wrong is its output."""
    tools = {tool.name: tool for tool in agent.tools}
    if name not in tools:
        near = get_close_matches(name, tools, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise Failed(f"There is no tool named {name}.{hint}")
    await agent.refresh_status()
    step = GuardedCall(f"cli-{id}", id, chat, lambda: False)
    approve = agent.approvals.approver(step, lambda event: None)
    call = Call(id, step.turn, chat, await agent.tool_contexts.of(chat), approve)
    try:
        return await tools[name].run(call, arguments)
    except ToolError as error:
        return Output(f"Error: {error}", ok=False)
