"""The servers of tools that the owner has configured: started when they are used, each in a sandbox of its own,
kept for a while, ended with the program.

Each chat has a process of its own of each server that it uses, so that no chat sees what a session holds of another
one. The folder of a server is shared by its processes, and lasts.
"""

import asyncio
import hashlib
import importlib
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.aio import BackgroundTasks, set_within
from agent.channels import Channels, NoChannels
from agent.errors import ToolError
from agent.language import translated
from agent.leaks import LeakDetector
from agent.mcp.config import BrokenServer, ServerConfig, SignInFirst, SignInNeeded
from agent.mcp.tools import Pins, ServerResult, ServerTool, result_of, tools_of
from agent.sandbox.hosts import TUNNEL, HostRequest, Hosts, is_public
from agent.sandbox.long_running import run_lasting
from agent.sandbox.observer import Observer
from agent.sandbox.output_buffer import visible
from agent.sandbox.proxy import EgressProxy, Outflow
from agent.sandbox.sandbox import Sandboxes, make_workspace
from agent.sandbox.sandbox_config import SandboxConfig
from agent.store import Store
from agent.store.key_values import KeyValueTable

if TYPE_CHECKING:  # imported when a server is first used
    from agent.mcp.connection import ServerConnection
    from agent.mcp.oauth import Show, SignIn

log = logging.getLogger(__name__)

KEPT_SECONDS = 600
MOST_RUNNING = 8
BACKOFF_SECONDS = (0, 0, 5, 15, 60)  # after so many ends in a row
LAST_WORDS_SECONDS = 1.0
LOOK_SECONDS = 1.0
SAID = 300  # characters of a server's standard error
MOST_REFUSED = 8  # sentences
ASK_AGAIN_SECONDS = 3600.0  # an owner who did not sign in
SIGN_INS = "mcp-tokens"  # folder of the state: what is kept of sign-ins, a file for each server
NO_SDK = "The package for MCP servers is not installed; the owner can install it (docs/mcp.md). Go on without it."
ENVIRONMENT = {  # of a server's process, besides its own variables; its package is at /program
    "PATH": "/program/bin:/program/node_modules/.bin:/usr/local/bin:/usr/bin:/bin",
    "HOME": "/workspace",
    "PYTHONPATH": "/program",
    "PYTHONUNBUFFERED": "1",
    "NODE_USE_ENV_PROXY": "1",  # else Node's fetch ignores the proxy
}


@dataclass
class RunningServer:
    """A session with an MCP server; setting `stop` ends it."""

    connection: "ServerConnection"
    secrets: Sequence[str]
    pid: int | None = None
    network: "ServerNetwork | None" = None
    tools: list[ServerTool] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # why tools are missing, to be told
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    busy: int = 0  # calls that use it now
    used: float = field(default_factory=time.monotonic)  # when the last one ended

    async def call(
        self, tool: ServerTool, arguments: dict[str, Any], progress: Callable[[str], None]
    ) -> ServerResult:
        def lives(done: float, total: float | None, message: str | None) -> None:
            of = f"/{total:g}" if total else ""
            progress(f"{tool.server}: {done:g}{of} {message or ''}".rstrip())

        raw = await self.connection.call(tool.name, arguments, lives)
        stem = f"{tool.server}-{tool.name.replace('/', '-')}"
        return await asyncio.to_thread(result_of, raw, stem, self.secrets)

    def told(self) -> list[str]:
        """Return and clear sentences on refusals and on tools left out since the last call."""
        name, screen = self.connection.name, self.connection.screen
        asked, screen.asked = screen.asked, []
        refused = self.network.refused if self.network else []
        lines, self.left_out = self.left_out, []
        lines += [f"{name} {what}; that was refused." for what in asked]
        lines += [f"{name} was refused: {visible(why)}" for why in refused]
        refused.clear()
        return lines


@dataclass(kw_only=True)
class ServerNetwork(Observer):
    """The network of one server's process, which it observes. `refused` are sentences that the model is
    told, each once; `variables` and `inputs` come to the process's environment and /tmp."""

    proxy: EgressProxy
    refused: list[str] = field(default_factory=list)
    secrets: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, bytes] = field(default_factory=dict)

    async def connection(self, host: str, refused: str = "") -> None:
        if refused and refused not in self.refused and len(self.refused) < MOST_REFUSED:
            self.refused.append(refused)
        await super().connection(host, refused)

    def renew(self) -> None:
        """Reset the proxy's limit on bytes and its record of refusals for a new call."""
        self.proxy.passed = 0
        self.proxy.refused.clear()


@dataclass
class ToolServers:
    """Made by `open_servers`. `places` is the folder of the servers' folders, `sign_ins` that of the tokens.
    By `channels` an owner is asked to sign in."""

    configs: Mapping[str, ServerConfig]
    config: SandboxConfig
    places: Path
    sign_ins: Path
    table: KeyValueTable
    tasks: BackgroundTasks
    refused: set[str] = field(default_factory=set)  # digests of tools that an owner did not allow
    running: dict[tuple[str, str], RunningServer] = field(default_factory=dict)
    reachable: Callable[[str], bool] = is_public
    channels: Channels = field(default_factory=NoChannels)
    signing_in: "dict[str, SignIn | None]" = field(default_factory=dict)
    _ask_again: dict[str, float] = field(default_factory=dict)  # monotonic
    _locks: dict[tuple[str, str], asyncio.Lock] = field(default_factory=dict)
    # How many sessions broke in a row, and when the last one did.
    _ends: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)

    def named(self, name: str) -> ServerConfig:
        if name not in self.configs:
            known = ", ".join(self.configs) or "none"
            raise ToolError(f"There is no server named {visible(name)[:40]}; there are {known}.")
        return self.configs[name]

    async def pins(self, name: str) -> Pins:
        """The pins of a server; none if it is no longer the same program or address."""
        server = self.named(name)
        source = hashlib.sha256(repr((list(server.command), server.url)).encode()).hexdigest()
        found = await self.table.get(f"mcp:{name}", Pins)
        return found if found and found.source == source else Pins(source)

    async def pin(self, name: str, tools: Sequence[ServerTool]) -> None:
        pins = (await self.pins(name)).with_tools(tools, self.named(name).tools)
        await self.table.put(f"mcp:{name}", asdict(pins))

    async def approve_call(
        self,
        tool: ServerTool,
        arguments: Mapping[str, Any],
        approve: Callable[..., Awaitable[None]],
    ) -> None:
        """Ask an owner by `approve` (agent.tools.context.Approver), unless `allow` names the tool and it does not call itself
        destructive."""
        if tool.name in self.named(tool.server).allow and not tool.destructive:
            return
        shown = json.dumps(arguments, ensure_ascii=False, indent=1)
        kind = "mcp-destructive" if tool.destructive else "mcp"
        what = translated("Call {tool} of the MCP server {server} with").format(
            tool=tool.name, server=tool.server
        )
        await approve(f"{what}\n\n{shown}", scope=f"{kind}:{tool.server}/{tool.name}")

    async def report(self) -> list[str]:
        """A line of Markdown for each server: what it is, what runs, which of its tools owners have seen."""
        lines = []
        for name, server in self.configs.items():
            seen = ", ".join((await self.pins(name)).tools) or translated("no tool allowed yet")
            count = sum(key[0] == name for key in self.running)
            running = f", {translated('{count} running').format(count=count)}" if count else ""
            raw = f", {server.kept_secrets}" if server.kept_secrets else ""
            raw += f", {translated('signed in')}" if self.tokens_file(name).exists() else ""
            lines.append(f"- `{name}` (`{visible(server.source)}`{running}{raw}): {seen}")
        return lines

    @asynccontextmanager
    async def session(self, name: str, chat: str) -> AsyncIterator[RunningServer]:
        """The chat's session with a server, begun where there is none; BrokenServer in the block ends it. SignInFirst where
        the owner, who is sent the link, has to sign in first."""
        server = self.named(name)
        await imported_module()
        try:
            async with self._session(server, chat) as running:
                yield running
        except SignInNeeded as error:
            raise await self._ask_to_sign_in(server, chat, error) from None

    @asynccontextmanager
    async def _session(self, server: ServerConfig, chat: str) -> AsyncIterator[RunningServer]:
        name, key = server.name, (server.name, chat)
        async with self._locks.setdefault(key, asyncio.Lock()):
            running = self.running.get(key) or await self._start(server, chat)
        if running.network and not running.busy:
            running.network.renew()
        running.busy += 1
        try:
            if running.connection.screen.changed:
                descriptors = await running.connection.descriptors()
                running.tools, running.left_out = tools_of(name, descriptors)
            yield running
            self._ends.pop(key, None)
        except BrokenServer:  # a cancelled call ends no session: the server is told
            self._broke(key)
            running.stop.set()
            raise
        finally:
            running.busy -= 1
            running.used = time.monotonic()

    async def _start(self, server: ServerConfig, chat: str) -> RunningServer:
        key = (server.name, chat)
        count, last = self._ends.get(key, (0, 0.0))
        pause = BACKOFF_SECONDS[min(count, len(BACKOFF_SECONDS) - 1)]
        if (left := last + pause - time.monotonic()) > 0:
            raise ToolError(
                f"{server.name} ended {count} times in a row. Try again in {left:.0f} s, or go on without it."
            )
        self._make_room()
        ready: asyncio.Future[RunningServer] = asyncio.get_running_loop().create_future()
        self.tasks.start(self._serve(server, chat, ready), f"the server {server.name}")
        try:
            return await asyncio.shield(ready)
        except asyncio.CancelledError:
            ready.cancel()
            raise

    async def _ask_to_sign_in(
        self, server: ServerConfig, chat: str, error: SignInNeeded
    ) -> ToolError:
        """Ask the owner to sign in, at first or for a wider scope, at most once an hour. Returns what the model is told."""
        self._ends.pop((server.name, chat), None)  # it has not failed
        name = server.name
        if server.has_authorization():
            status = 403 if error.forbidden else 401
            return ToolError(f"{name} refuses the Authorization of its env_file ({status}).")
        lacking = await self.lacking(name) if error.forbidden else ""
        if error.forbidden and not lacking and self.tokens_file(name).exists():
            told = f"{name} does not allow this: its owner was asked for all that it wants, and did not give it."
            return ToolError(told)
        more = f" for more ({lacking})" if lacking else error.why
        if time.monotonic() >= self._ask_again.get(name, 0.0):
            if not self.channels.ask_to_sign_in(self, name):
                told = f"{name} wants its owner to sign in{more}: voltaire mcp test {name}"
                return SignInFirst(told)
            self._ask_again[name] = time.monotonic() + ASK_AGAIN_SECONDS
        told = (
            f"{name} wants its owner to sign in first{more}, so nothing was done. The owner was sent the link. Say that to the "
            "person, go on without it, and do this again once they say that they have signed in."
        )
        return SignInFirst(told)

    async def lacking(self, name: str) -> str:
        """The scope that a call was refused for lack of, as far as no owner was asked for it; "" for none."""
        server = self.named(name)
        if not self.tokens_file(name).exists() or server.has_authorization():
            return ""
        oauth = await imported_module("agent.mcp.oauth")
        kept = oauth.kept_sign_in(self.tokens_file(name), server.url)
        return visible(kept.lacking)[:SAID] if kept else ""

    def tokens_file(self, name: str) -> Path:
        return self.sign_ins / f"{name}.json"

    async def sign_in(self, name: str, show: "Show") -> bool:
        """Have an owner sign in to a server; ToolError says why that failed. There is one sign-in at a time: where one
        waits already, its link is shown again, and False is returned."""
        server = self.named(name)
        if not server.url or server.has_authorization():
            raise ToolError(f"{name} is no server that an owner signs in to.")
        if name in self.signing_in:
            if waiting := self.signing_in[name]:
                await show(waiting)
            return False
        self.signing_in[name] = None

        async def shown(waiting: "SignIn") -> None:
            self.signing_in[name] = waiting
            await show(waiting)

        try:
            oauth = await imported_module("agent.mcp.oauth")
            await oauth.sign_in(server, self.tokens_file(name), shown)
            self._ask_again.pop(name, None)
            for key in [key for key in self.running if key[0] == name]:
                self.running.pop(key).stop.set()  # a session is bound to who began it
        finally:
            del self.signing_in[name]
        return True

    def take_answer(self, name: str, text: str) -> None:
        """Take the address or the code that an owner gives to end a sign-in; ToolError where it is neither."""
        waiting = self.signing_in.get(self.named(name).name)
        if waiting is None:
            raise ToolError(f"Nobody is signing in to {name}: /mcp {name} gives a link.")
        waiting.give(text)

    def _make_room(self) -> None:
        idle = sorted((r.used, key) for key, r in self.running.items() if not r.busy)
        if len(self.running) >= MOST_RUNNING:
            if not idle:
                raise ToolError(f"{MOST_RUNNING} servers run already. Try again in a while.")
            self.running[idle[0][1]].stop.set()

    async def _serve(
        self, server: ServerConfig, chat: str, ready: "asyncio.Future[RunningServer]"
    ) -> None:
        """One session from its start to its end."""
        key = (server.name, chat)
        try:
            async with AsyncExitStack() as stack:
                if server.url:
                    running = await self._connect(server, chat, stack)
                else:
                    running = await self._start_program(server, chat, stack)
                if ready.cancelled():
                    return
                self.running[key] = running
                stack.callback(self._forget, key, running)
                ready.set_result(running)
                await self._until_unused(running)
        except Exception as error:
            log.info("the server %s ended: %s", server.name, type(error).__name__, exc_info=True)
            if not ready.done():
                self._broke(key)
                ready.set_exception(first_tool_error(error, server.name))
        finally:
            if not ready.done():
                ready.cancel()

    async def _connect(
        self, server: ServerConfig, chat: str, stack: AsyncExitStack
    ) -> RunningServer:
        """A session with the server at an address."""
        module = await imported_module()
        oauth = await imported_module("agent.mcp.oauth")
        observer, variables = self.config.observe(chat), server.variables()
        host = re.sub(r"^\w+://([^/@]*@)?|[/?].*", "", server.url)
        await observer.connection(host)
        if variables:
            await observer.secret(f"agent.mcp.{server.name}.env_file", host)
        tokens = None
        if not server.has_authorization():
            tokens = oauth.tokens_of(server.name, self.tokens_file(server.name), server.url)
        if tokens:
            await observer.secret(f"sign-in of the MCP server {server.name}", host)
        why = (lambda: tokens.why) if tokens else str
        opening = module.over_http(server.name, server.url, variables, tokens, why)
        connection = await stack.enter_async_context(opening)
        secrets: list[str] = tokens.secrets if tokens else []  # the list grows with each refresh
        secrets.extend(variables.values())
        return RunningServer(connection, secrets)

    async def _start_program(
        self, server: ServerConfig, chat: str, stack: AsyncExitStack
    ) -> RunningServer:
        """Start a server's program for this chat, in a sandbox of its own; return the session with it."""
        module = await imported_module()
        variables = server.variables()
        if variables:
            name = f"agent.mcp.{server.name}.env_file"
            await self.config.observe(chat).secret(name, f"the program of {server.name}")
        place = self.places / server.name
        await asyncio.to_thread(make_workspace, place / "work", self.config.user.uid)
        made_of = place / "program"
        network = await self._network(server, chat, stack) if server.network else None
        process = await stack.enter_async_context(
            run_lasting(
                replace(self.config, repos=server.mounts, guards={}, report=lambda: ""),
                server.command,
                place / "work",
                made_of=made_of if made_of.is_dir() else None,
                variables={**ENVIRONMENT, **(network.variables if network else {}), **variables},
                inputs=network.inputs if network else {},
                proxy=network.proxy if network else None,
                line_bytes=module.LONGEST_MESSAGE,
            )
        )
        try:
            opening = module.over_pipes(server.name, process)
            connection = await stack.enter_async_context(opening)
        except Exception as error:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_SECONDS):
                    await process.ended()
            told = first_tool_error(error, server.name)
            last = visible(process.errors.strip()[-SAID:])
            raise ToolError(f"{told} It says: {last}" if last else str(told)) from error
        running = RunningServer(
            connection,
            [*variables.values(), *(network.secrets if network else ())],
            pid=process.process.init_pid,
            network=network,
        )
        process.process.ended.add_done_callback(lambda _: running.stop.set())
        return running

    async def _network(
        self, server: ServerConfig, chat: str, stack: AsyncExitStack
    ) -> ServerNetwork:
        hosts = Hosts(server.network, self.reachable)
        proxy = EgressProxy(hosts, listed_only)
        seen = self.config.observe(chat)
        proxy.observer = network = ServerNetwork(ledger=seen.ledger, chat=seen.chat, proxy=proxy)
        if server.ends_tls:
            module = await imported_module("agent.mcp.tls_termination")
            bound = [
                module.BoundSecret(each.name, each.value(server.name), each.place, each.header)
                for each in server.secrets
            ]
            for each in server.secrets:
                name = f"agent.mcp.{server.name}.secrets.{each.name}"
                await network.secret(name, each.place)
            tls = await stack.enter_async_context(module.tls_termination(hosts, bound))
            proxy.tls = tls
            # A placeholder that goes anywhere else is reported.
            hidden = {f"placeholder of {each.name}": each.placeholder for each in bound}
            proxy.outflow = Outflow(leaks=LeakDetector(hidden))
            network.secrets = [each.value for each in bound]
            network.variables, network.inputs = tls.variables, tls.files
        return network

    async def _until_unused(self, running: RunningServer) -> None:
        """Return once it is to stop, or was not used for a while."""
        while not await set_within(running.stop, LOOK_SECONDS):
            if not running.busy and running.used + KEPT_SECONDS <= time.monotonic():
                return

    def stop_all(self) -> int:
        """End all servers, because everything is frozen; no turn is counted."""
        for running in self.running.values():
            running.stop.set()
        return 0

    def _broke(self, key: tuple[str, str]) -> None:
        count, _ = self._ends.get(key, (0, 0.0))
        self._ends[key] = (count + 1, time.monotonic())
        self.running.pop(key, None)

    def _forget(self, key: tuple[str, str], running: RunningServer) -> None:
        if self.running.get(key) is running:
            del self.running[key]


def first_tool_error(error: BaseException, name: str) -> ToolError:
    """Find the ToolError in an error or exception group."""
    if isinstance(error, BaseExceptionGroup):
        error = error.subgroup(ToolError) or error
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, ToolError) else ToolError(f"{name} cannot be reached.")


async def listed_only(request: HostRequest) -> None:
    if not request.listed:
        what = request.place if request.method == TUNNEL else str(request)
        raise ToolError(f"{what} is not in the network of this server.")


async def imported_module(name: str = "agent.mcp.connection") -> Any:
    """Import a module that needs the SDK. Raises ToolError if that is not installed."""
    try:
        return await asyncio.to_thread(importlib.import_module, name)
    except ImportError:
        raise ToolError(NO_SDK) from None


@asynccontextmanager
async def open_servers(
    configs: Sequence[ServerConfig],
    sandboxes: Sandboxes,
    state: Path,
    store: Store,
    channels: Channels | None = None,
) -> AsyncIterator[ToolServers]:
    """The servers, which a freeze stops; on leaving, all are ended."""
    named = {each.name: each for each in configs}
    places, table = (state / "mcp", state / SIGN_INS), store.key_values
    async with BackgroundTasks() as tasks:
        servers = ToolServers(
            named, sandboxes.config, *places, table, tasks, channels=channels or NoChannels()
        )
        store.freeze.on_freeze.append(servers.stop_all)
        try:
            yield servers
        finally:
            store.freeze.on_freeze.remove(servers.stop_all)
