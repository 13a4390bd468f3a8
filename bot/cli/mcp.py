"""voltaire mcp: servers of tools that others wrote (docs/mcp.md). They are the owner's to add."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError

from agent.aio import BackgroundTasks
from agent.errors import ToolError
from agent.files import give
from agent.mcp.install import install
from agent.mcp.servers import SIGN_INS, imported_module
from agent.sandbox.output_buffer import visible
from bot import config_file
from bot.agent_config import agent_config
from bot.cli.command import Failed, Misused, Options, chat_option, json_option, runs
from bot.cli.connect import chat_sandboxes, configured_servers
from bot.cli.holder_client import JsonFields, change, record_act
from bot.cli.progress import sign_of_life
from bot.cli.tool import call_holder
from bot.settings import Settings, find_file
from bot.state import DATABASE, make_private, open_state, open_state_read_only

if TYPE_CHECKING:
    from agent.mcp.oauth import SignIn
    from bot.terminal import InputLines

LATER = "A bot that runs takes that up at its next start."


command = click.Group("mcp", help="Manage servers of tools that others wrote (MCP).")


@command.command("list")
@json_option
@runs
async def list_servers(options: Options, as_json: bool) -> None:
    """List the configured servers, and which tools an owner has seen."""
    settings = options.settings
    rows: list[dict[str, Any]] = []
    opened = open_state_read_only if (settings.state_dir / DATABASE).exists() else open_state
    async with (
        opened(settings) as store,
        chat_sandboxes(settings, store) as sandboxes,
        configured_servers(settings, store, sandboxes) as servers,
    ):
        for name, section in settings.agent.mcp.items():
            config = servers.named(name)
            rows.append(
                {
                    "name": name,
                    "source": config.source,
                    "tools": (await servers.pins(name)).tools,
                    "secrets": bool(section.env_file),
                    "allow": section.allow,
                    "kept_secrets": config.kept_secrets,
                }
            )
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        seen = ", ".join(row["tools"]) or f"no tool seen yet: voltaire mcp test {row['name']}"
        raw = f" (it {row['kept_secrets']})" if row["kept_secrets"] else ""
        click.echo(f"{row['name']}  {row['source']}{raw}\n    {seen}")
    if not rows:
        click.echo("There are no servers. voltaire mcp add NAME -- uvx PACKAGE adds one.")


@command.command("test")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Allow what it says of its tools without a question.")
@runs
async def test(options: Options, name: str, yes: bool) -> int:
    """Start a server and list its tools. Show whole what is new or changed, and ask whether to allow it."""
    from bot.terminal import InputLines

    settings, lines = options.settings, InputLines(sys.stdin)

    async def look(**more: Any) -> JsonFields:
        fields = {"name": name, "allowed": yes, "signed_in": False, **more}
        return await call_holder(settings, "mcp-test", fields, f"starting {name}")

    found = await look()
    if found["sign_in"]:
        await sign_in(settings, name, lines)
        found = await look(signed_in=True)
    if found["asked"]:
        click.echo(found["asked"] + "\n")
    if found["tools"] is None:
        if not await confirmed(lines, f"Allow these {found['new']} tools, as they are now?"):
            return 1
        found = await look(allowed=found["asked"], signed_in=True)
    if found["tools"] is None:
        raise Failed(
            f"What {name} says of its tools changes each time it starts: nothing is allowed."
        )
    for line in found["tools"]:
        click.echo(line)
    if found["problem"]:
        raise Failed(found["problem"])
    return 0


async def sign_in(settings: Settings, name: str, lines: "InputLines") -> None:
    """Show the link, and wait until the redirect arrives at our listener or its address is pasted."""
    (server,) = [each for each in agent_config(settings).mcp if each.name == name]

    async def paste(waiting: "SignIn") -> None:
        while not waiting.answered.done():
            try:
                waiting.give(await lines.next())
            except ToolError as error:
                click.echo(str(error), err=True)
            except EOFError:
                return

    async def show(waiting: "SignIn") -> None:
        if waiting.before:
            click.echo(
                f"Take care: the last time you signed in to {name} at {waiting.before}, which is another place."
            )
        click.echo(
            f"{name} wants you to sign in at {waiting.host}:\n\n{visible(waiting.link)}\n\n"
            "Where that page leads to an address that cannot be opened, paste it here."
        )
        pasting.start(paste(waiting), "reading what is pasted")

    oauth = await imported_module("agent.mcp.oauth")
    async with BackgroundTasks() as pasting:
        await oauth.sign_in(server, settings.state_dir / SIGN_INS / f"{name}.json", show)
    click.echo(f"You are signed in to {name}.\n")


async def confirmed(lines: "InputLines", what: str) -> bool:
    """Ask yes or no on `lines`, which a sign-in may have begun to read. Raises Failed at their end."""
    click.echo(f"{what} [y/N]: ", nl=False)
    try:
        return (await lines.next()).strip().lower() in ("y", "yes")
    except EOFError:
        click.echo(err=True)
        raise Failed("Nobody answered, so nothing was done; --yes does not ask.") from None


@command.command("add", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.option("--url", default="", help="A server that somebody else runs (streamable HTTP).")
@click.option("--env-file", default="", help="KEY=VALUE lines for this server alone.")
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    nargs=4,
    metavar="VARIABLE FILE HOST HEADER",
    help="A secret that it never sees: the proxy puts it into that header of requests to that host.",
)
@click.option("--client-id", default="", help="Voltaire's OAuth client id, if you registered one.")
@click.option("--client-secret-file", default="", help="Holds the secret of that client_id.")
@click.option("--callback-port", default=0, help="Port of the redirect address you registered.")
@click.option("--network", multiple=True, help="A host that it may reach; may be repeated.")
@click.option(
    "--folder", "folders", multiple=True, help='A folder that it sees; ":rw" to write in it.'
)
@click.option("--new", is_flag=True, help="Allow a release that is younger than three days.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@runs
async def add(
    options: Options,
    name: str,
    new: bool,
    words: tuple[str, ...],
    secrets: tuple[tuple[str, str, str, str], ...],
    **given: Any,
) -> None:
    """Install a server, once, and put it into the configuration. NAME -- uvx PACKAGE ..., NAME -- npx PACKAGE ..., or
    NAME -- PROGRAM ... for one that is on this machine."""
    settings = options.settings_as_root
    path = writable_config(options)
    if name in settings.agent.mcp:
        raise Failed(f"There is a server named {name} already: voltaire mcp remove {name}")
    given["command"] = words
    given["secrets"] = {
        variable: {"file": file, "host": host, "header": header}
        for variable, file, host, header in secrets
    }
    section = {k: list(v) if isinstance(v, tuple) else v for k, v in given.items() if v}
    try:
        type(settings.agent).model_validate({"mcp": {name: section}})
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise Misused(f"{name}: {why}.") from None
    if words:
        make_private(settings.state_dir)
        place = settings.state_dir / "mcp" / name / "program"
        with sign_of_life("installing"):
            section["command"] = await asyncio.to_thread(install, words, place, new=new)
        made, owner = settings.state_dir / "mcp", settings.state_dir.stat()
        if os.geteuid() == 0 and owner.st_uid and made.exists():  # what root makes is its owner's
            await asyncio.to_thread(give, made, owner.st_uid, owner.st_gid)
    configured = config_file.read(path)
    config_file.put(configured, f"agent.mcp.{name}", section)
    config_file.write(path, configured)
    await record_act(settings, act="mcp", added=name)
    click.echo(
        f"Added {name}. Look at what it says of its tools: voltaire mcp test {name}\n{LATER}"
    )


@command.command("remove")
@click.argument("name")
@click.option("--data", is_flag=True, help="Delete the folder of its own files, too.")
@runs
async def remove(options: Options, name: str, data: bool) -> None:
    """Take a server out of the configuration, with its program. What it keeps stays, unless --data."""
    settings = options.settings_as_root
    path = writable_config(options)
    if name not in settings.agent.mcp:
        raise Failed(f"There is no server named {visible(name)}: voltaire mcp list")
    configured = config_file.read(path)
    del configured["agent"]["mcp"][name]
    config_file.write(path, configured)
    place = settings.state_dir / "mcp" / name
    shutil.rmtree(place if data else place / "program", ignore_errors=True)
    (settings.state_dir / SIGN_INS / f"{name}.json").unlink(missing_ok=True)
    await change(settings, "forget-fact", key=f"mcp:{name}")
    await record_act(settings, act="mcp", removed=name)
    click.echo(f"Removed {name}. {LATER}")


@command.command("serve")
@chat_option
@click.option(
    "--socket", "on_socket", is_flag=True, help="Serve at /v1/mcp of the control socket instead."
)
@runs
async def serve(options: Options, chat: str, on_socket: bool) -> None:
    """Offer Voltaire to an editor or another agent. Over standard input and output it gets notes and past conversations
    of one chat, its jobs, the status, the GPU, and may ask, as a turn of that chat in which nobody can approve anything."""
    try:
        from bot.cli.mcp_serve import run_server
    except ImportError:
        raise Failed("The package for MCP is not installed: make mcp") from None
    await run_server(options, chat, on_socket=on_socket)


def writable_config(options: Options) -> Path:
    path = find_file(options.config)
    if path is None or not path.exists():
        raise Failed("There is no configuration file to write to: voltaire setup makes one.")
    return path
