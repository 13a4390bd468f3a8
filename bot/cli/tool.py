"""voltaire tool: one tool as the agent would run it; voltaire sandbox: a command where its commands run."""

import json
import secrets
from difflib import get_close_matches

import click

from agent.agent import Agent
from agent.approvals import GuardedCall
from agent.errors import ToolError
from agent.sandbox.hosts import HostRequest
from agent.shell.broker import Broker
from agent.store import Store
from agent.tools.tool import Call, Output, untouched
from bot.cli.command import Failed, Misused, Options, chat_option, json_option, runs
from bot.cli.connect import backend_client, chat_sandboxes
from bot.cli.holder_client import HolderClient, JsonFields, with_holder
from bot.cli.progress import sign_of_life
from bot.holder import Holder
from bot.settings import Settings

# A command that does not exist fails with the shell's own message and exit code.
RUN = (
    """type -P -- "$1" > /dev/null || { echo "$1: command not found"; exit 127; }; exec -- "$@" """
)
SHELL = ("/bin/bash", "--noprofile", "--norc", "-c", RUN, "sandbox")


@click.command("tool", help="Run one tool, ARGUMENTS in JSON; print what the model would see.")
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
    fields = {"chat": chat, "id": secrets.token_hex(4), "name": name, "arguments": values}
    ran = await call_holder(options.settings, "tool", fields)
    click.echo(json.dumps(ran, ensure_ascii=False) if as_json else ran["output"])
    return 0 if ran["ok"] else 1


async def call_holder(
    settings: Settings, act: str, fields: JsonFields, doing: str = "running"
) -> JsonFields:
    """Return the result of an act that needs the agent."""

    async def call(client: HolderClient) -> JsonFields:
        return dict(await client.call(act, **fields))

    with sign_of_life(doing):
        async with backend_client(settings) as backend:
            return await with_holder(settings, backend, call)


async def run_tool(holder: Holder, fields: JsonFields) -> JsonFields:
    assert holder.agent
    id, name = fields["id"], fields["name"]
    output = await run(holder.agent, fields["chat"], id, name, fields["arguments"])
    return {"id": id, "name": name, "ok": output.ok, "output": output.text}


async def check_thawed(store: Store) -> None:
    """Raise Failed while all tools are frozen."""
    if await store.freeze.since() is not None:
        raise Failed("All tools are frozen. Thaw them with: voltaire thaw")


async def run(agent: Agent, chat: str, id: str, name: str, arguments: dict[str, object]) -> Output:
    """Run one tool call; the sentence of a ToolError is its output."""
    tools = {tool.name: tool for tool in agent.tools}
    if name not in tools:
        near = get_close_matches(name, tools, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise Failed(f"There is no tool named {name}.{hint}")
    await check_thawed(agent.store)
    await agent.refresh_status()
    call = await owners_call(agent, chat, id, "\n".join(map(str, arguments.values())))
    try:
        return await tools[name].run(call, arguments)
    except ToolError as error:
        return Output(f"Error: {error}", ok=False)


async def owners_call(agent: Agent, chat: str, id: str, written: str) -> Call:
    """Create a call that counts as the owner's own, free of untrusted text."""
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
    settings = options.settings
    if where:
        async with chat_sandboxes(settings) as sandboxes:
            click.echo((await sandboxes.of(chat)).workspace)
        return 0
    ran = await call_holder(settings, "sandbox", {"chat": chat, "argv": argv})
    output, saved_path, reason = ran["output"], ran["saved_path"], ran["reason"]
    click.echo(output, nl=bool(output) and not output.endswith("\n"))
    if saved_path:
        click.echo(f"The whole output is in {saved_path}.", err=True)
    if reason:
        click.echo(reason, err=True)
    return int(ran["exit_code"])


async def run_in_sandbox(holder: Holder, fields: JsonFields) -> JsonFields:
    assert holder.agent
    agent, argv = holder.agent, fields["argv"]

    async def allowed(request: HostRequest) -> None:
        """Allow without asking: the owner runs it, so the list of hosts alone decides."""
        if not request.listed:
            raise ToolError(f"{request}: agent.sandbox.allow_hosts does not have it.")

    await agent.refresh_status()
    call = await owners_call(agent, fields["chat"], secrets.token_hex(4), " ".join(argv))
    ran = await call.sandbox.run([*SHELL, *argv], permit=allowed, commands=Broker(call))
    return {
        "output": ran.output,
        "saved_path": ran.saved_path,
        "reason": ran.reason,
        "exit_code": ran.exit_code,
    }


TOOL_ACTS = {"tool": run_tool, "sandbox": run_in_sandbox}
