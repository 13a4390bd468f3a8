"""voltaire tool: one tool as the agent would run it; voltaire sandbox: a command where its commands run."""

import json
import secrets
from difflib import get_close_matches

import click

from agent.approvals import GuardedCall
from agent.errors import ToolError
from agent.sandbox.hosts import HostRequest
from agent.shell.broker import Broker
from agent.tools.tool import Call, Output, untouched
from bot.cli.command import Failed, Misused, Options, chat_option, json_option, runs
from bot.cli.connect import backend_client, chat_sandboxes
from bot.composition import Agent, open_agent

# A command that does not exist fails with the shell's own message and exit code.
RUN = (
    """type -P -- "$1" > /dev/null || { echo "$1: command not found"; exit 127; }; exec -- "$@" """
)
SHELL = ("/bin/bash", "--noprofile", "--norc", "-c", RUN, "sandbox")


@click.command("tool", help="Run one tool as the agent would and print what the model would see.")
@click.argument("name")
@click.argument("arguments")
@chat_option
@json_option
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


async def check_thawed(agent: Agent) -> None:
    """Raise Failed while all tools are frozen."""
    if await agent.store.freeze.since() is not None:
        raise Failed("All tools are frozen. Thaw them with: voltaire thaw")


async def run(agent: Agent, chat: str, id: str, name: str, arguments: dict[str, object]) -> Output:
    """Run one tool call; the sentence of a ToolError is its output."""
    tools = {tool.name: tool for tool in agent.tools}
    if name not in tools:
        near = get_close_matches(name, tools, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise Failed(f"There is no tool named {name}.{hint}")
    await check_thawed(agent)
    await agent.refresh_status()
    call = await owners_call(agent, chat, id, "\n".join(map(str, arguments.values())))
    try:
        return await tools[name].run(call, arguments)
    except ToolError as error:
        return Output(f"Error: {error}", ok=False)


async def owners_call(agent: Agent, chat: str, id: str, written: str) -> Call:
    """A call as an owner has written it: untouched by strangers."""
    step = GuardedCall(f"cli-{id}", id, chat, untouched)
    approve = agent.approvals.approver(step, lambda event: None)
    context = await agent.tool_context(chat)
    return Call(id, step.turn, chat, context, approve, written=written)


@click.command(
    "sandbox",
    help="Run a command in a chat's sandbox, under the limits of bash; its exit code is passed on.",
    context_settings={"ignore_unknown_options": True},
)
@chat_option
@click.option("--where", is_flag=True, help="Print the workspace's path on this machine.")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
@runs
async def sandbox(options: Options, chat: str, where: bool, argv: tuple[str, ...]) -> int:
    if bool(argv) == where:
        raise Misused("Give a command after --, or --where alone.")

    async def allowed(request: HostRequest) -> None:
        """The owner runs it, so the list of hosts alone decides."""
        if not request.listed:
            raise ToolError(f"{request}: agent.sandbox.allow_hosts does not have it.")

    settings = options.settings
    if where:
        async with chat_sandboxes(settings) as sandboxes:
            click.echo((await sandboxes.of(chat)).workspace)
        return 0
    async with backend_client(settings) as backend, open_agent(settings, backend) as agent:
        await agent.refresh_status()
        call = await owners_call(agent, chat, secrets.token_hex(4), " ".join(argv))
        ran = await call.sandbox.run([*SHELL, *argv], permit=allowed, commands=Broker(call))
    click.echo(ran.output, nl=bool(ran.output) and not ran.output.endswith("\n"))
    if ran.saved_path:
        click.echo(f"The whole output is in {ran.saved_path}.", err=True)
    if ran.reason:
        click.echo(ran.reason, err=True)
    return ran.exit_code
