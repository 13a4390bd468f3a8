"""The servers of tools that the owner has configured: started when they are used, each in a sandbox of its own,
kept for a while, ended with the program.

A chat has a process of its own of each server that it uses, so that what a session holds of one chat is not seen from
another; the folder of a server is one, and lasts.
"""

import asyncio
import hashlib
import importlib
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.aio import BackgroundTasks
from agent.errors import ToolError
from agent.mcp.tools import Pins, ServerTool, tools_of
from agent.sandbox.hosts import HostRequest, Hosts, is_public
from agent.sandbox.lasting import LastingProgram, run_lasting
from agent.sandbox.limits import HostRepo
from agent.sandbox.observer import Observer
from agent.sandbox.output_buffer import visible
from agent.sandbox.proxy import EgressProxy
from agent.sandbox.sandbox import Sandboxes, make_workspace
from agent.sandbox.sandbox_config import SandboxConfig
from agent.store.key_values import KeyValueTable

if TYPE_CHECKING:  # imported when a server is first used
    from agent.mcp.connection import ServerConnection

log = logging.getLogger(__name__)

KEPT_SECONDS = 600
MOST_RUNNING = 8
BACKOFF_SECONDS = (0, 0, 5, 15, 60)  # after so many ends in a row
LAST_WORDS_SECONDS = 1.0
SAID = 300  # characters of a server's standard error
ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w-]*)\s*=\s*(.*?)\s*")
NO_SDK = "The package for MCP servers is not installed; the owner can install it (docs/mcp.md). Go on without it."


@dataclass(frozen=True)
class ServerConfig:
    """A section `agent.mcp.NAME`: `command`, or `url`. `allow` names tools that never ask."""

    name: str
    command: Sequence[str] = ()
    url: str = ""
    env_file: str = ""
    network: Sequence[str] = ()
    folders: Sequence[str] = ()
    allow: Sequence[str] = ()

    @property
    def source(self) -> str:
        """What is started or connected to, for the owner."""
        return self.url or " ".join(self.command)

    @property
    def mounts(self) -> dict[str, HostRepo]:
        """Its folders, at /repos/NAME."""
        found: dict[str, HostRepo] = {}
        for entry in self.folders:
            path, write = entry.removesuffix(":rw"), entry.endswith(":rw")
            name = re.sub(r"[^A-Za-z0-9._-]", "-", Path(path).name).lstrip(".-") or "folder"
            name = name if name not in found else f"{name}-{len(found) + 1}"
            found[name] = HostRepo(name, Path(path).expanduser(), write)
        return found

    def variables(self) -> dict[str, str]:
        """Of its env_file; ToolError where that cannot be read."""
        if not self.env_file:
            return {}
        try:
            text = Path(self.env_file).expanduser().read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise ToolError(
                f"The env_file of {self.name} cannot be read; the owner can mend that."
            ) from None
        lines = (ASSIGNMENT.fullmatch(line) for line in text.splitlines())
        return {line[1]: unquoted(line[2]) for line in lines if line}


def unquoted(value: str) -> str:
    return value[1:-1] if value[:1] in ("'", '"') and value[-1:] == value[:1] else value


@dataclass
class RunningServer:
    """One session. `failed` is set where it cannot be used any more."""

    connection: "ServerConnection"
    secrets: Sequence[str]
    stop: asyncio.Event
    used: float = 0.0
    tools: list[ServerTool] = field(default_factory=list)
    busy: int = 0
    pid: int | None = None


@dataclass
class ToolServers:
    """`places` is where the servers' folders are; made by `open_servers`."""

    configs: Mapping[str, ServerConfig]
    config: SandboxConfig
    places: Path
    table: KeyValueTable
    tasks: BackgroundTasks
    observe: Callable[[str], Observer]
    refused: set[str] = field(default_factory=set)  # descriptors that an owner did not allow
    running: dict[tuple[str, str], RunningServer] = field(default_factory=dict)
    reachable: Callable[[str], bool] = is_public
    _locks: dict[tuple[str, str], asyncio.Lock] = field(default_factory=dict)
    _ends: dict[tuple[str, str], tuple[int, float]] = field(
        default_factory=dict
    )  # in a row, the last

    def named(self, name: str) -> ServerConfig:
        if name not in self.configs:
            known = ", ".join(self.configs) or "none"
            raise ToolError(f"There is no server named {visible(name)[:40]}; there are {known}.")
        return self.configs[name]

    async def pins(self, name: str) -> Pins:
        """What owners have seen of it, as it is configured now."""
        source = identity(self.named(name))
        found = await self.table.get(f"mcp:{name}", Pins)
        return found if found and found.source == source else Pins(source)

    async def pin(self, name: str, tools: Sequence[ServerTool]) -> None:
        pins = (await self.pins(name)).with_tools(tools)
        value = {"source": pins.source, "tools": pins.tools, "lines": pins.lines}
        await self.table.put(f"mcp:{name}", value)

    async def report(self) -> list[str]:
        """A line of Markdown for each server: what it is, what runs, which of its tools owners have seen."""
        lines = []
        for name, server in self.configs.items():
            seen = ", ".join((await self.pins(name)).tools) or "no tool allowed yet"
            count = sum(key[0] == name for key in self.running)
            running = f", {count} running" if count else ""
            raw = ", gets the values of its env_file as they are" if server.env_file else ""
            lines.append(f"- `{name}` (`{visible(server.source)}`{running}{raw}): {seen}")
        return lines

    @asynccontextmanager
    async def session(self, name: str, chat: str) -> AsyncIterator[RunningServer]:
        """The chat's session with a server, started where there is none. What breaks it ends it."""
        server = self.named(name)
        key = (name, chat)
        async with self._locks.setdefault(key, asyncio.Lock()):
            running = self.running.get(key) or await self._start(server, chat)
        running.busy += 1
        broken = await imported("BrokenServer")
        try:
            if running.connection.screen.changed:
                running.tools = tools_of(name, await running.connection.descriptors())
            yield running
            self._ends.pop(key, None)
        except (broken, asyncio.CancelledError) as error:
            # After a cancellation nobody knows what it still does.
            if isinstance(error, broken):
                self._ended(key)
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
        await imported("over_pipes")
        self._make_room()
        ready: asyncio.Future[RunningServer] = asyncio.get_running_loop().create_future()
        self.tasks.start(self._serve(server, chat, ready), f"the server {server.name}")
        try:
            return await asyncio.shield(ready)
        except asyncio.CancelledError:
            ready.cancel()
            raise

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
        opened: list[RunningServer] = []
        try:
            async with AsyncExitStack() as stack:
                running, ended = await self._open(server, chat, stack)
                if ready.cancelled():
                    return
                opened.append(running)
                self.running[key] = running
                ready.set_result(running)
                await self._until_unused(running, ended)
                self.running.pop(key, None)
        except Exception as error:
            log.info("the server %s ended: %s", server.name, type(error).__name__, exc_info=True)
            if not ready.done():
                self._ended(key)
                ready.set_exception(first_tool_error(error, server.name))
        finally:
            if opened and self.running.get(key) is opened[0]:
                del self.running[key]
            if not ready.done():
                ready.cancel()

    async def _open(
        self, server: ServerConfig, chat: str, stack: AsyncExitStack
    ) -> tuple[RunningServer, "asyncio.Future[Any] | None"]:
        module = await imported_module()
        variables = server.variables()
        stop = asyncio.Event()
        if server.url:
            host = re.sub(r"^\w+://([^/@]*@)?|[/?].*", "", server.url)
            await self.observe(chat).connection(host)
            opening = module.over_http(server.name, server.url, variables)
            connection = await stack.enter_async_context(opening)
            return RunningServer(connection, [*variables.values()], stop), None
        place = self.places / server.name
        folder = place / "work"
        await asyncio.to_thread(make_workspace, folder, self.config.user.uid)
        made_of = place / "program"
        proxy = None
        if server.network:
            proxy = EgressProxy(
                Hosts(server.network, self.reachable), listed_only, observer=self.observe(chat)
            )
        program = LastingProgram(
            server.command, folder, made_of if made_of.is_dir() else None, environment() | variables
        )
        process = await stack.enter_async_context(
            run_lasting(
                replace(self.config, repos=server.mounts, guards={}, report=lambda: ""),
                program,
                proxy=proxy,
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
            told, last = (
                first_tool_error(error, server.name),
                visible(process.errors.strip()[-SAID:]),
            )
            raise ToolError(f"{told} It says: {last}" if last else str(told)) from error
        running = RunningServer(
            connection, [*variables.values()], stop, pid=process.process.init_pid
        )
        return running, asyncio.ensure_future(process.ended())

    async def _until_unused(
        self, running: RunningServer, ended: "asyncio.Future[Any] | None"
    ) -> None:
        """Return once it has ended, is to end, or was not used for a while."""
        running.used = time.monotonic()
        stopping = asyncio.ensure_future(running.stop.wait())
        waiting = {stopping, *([ended] if ended else [])}
        try:
            while True:
                left = running.used + KEPT_SECONDS - time.monotonic()
                done, _ = await asyncio.wait(waiting, timeout=max(left, 1.0))
                unused = running.used + KEPT_SECONDS <= time.monotonic()
                if done or (unused and not running.busy):
                    return
        finally:
            for each in waiting:
                each.cancel()

    def _ended(self, key: tuple[str, str]) -> None:
        count, _ = self._ends.get(key, (0, 0.0))
        self._ends[key] = (count + 1, time.monotonic())
        self.running.pop(key, None)


def first_tool_error(error: BaseException, name: str) -> ToolError:
    """What a task group may have wrapped."""
    if isinstance(error, ToolError):
        return error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    found = (first_tool_error(each, "") for each in inner)
    return next(
        (each for each in found if str(each)), ToolError(name and f"{name} cannot be reached.")
    )


def identity(server: ServerConfig) -> str:
    """Another value where something else is started or connected to."""
    return hashlib.sha256(repr((list(server.command), server.url)).encode()).hexdigest()


def environment() -> dict[str, str]:
    """What a server's process has besides a command's variables; its package is at /program."""
    return {
        "PATH": "/program/bin:/program/node_modules/.bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/workspace",
        "PYTHONPATH": "/program",
        "PYTHONUNBUFFERED": "1",
    }


async def listed_only(request: HostRequest) -> None:
    if not request.listed:
        raise ToolError(f"{request.place} is not among the hosts of this server.")


async def imported_module() -> Any:
    """agent.mcp.connection; ToolError where the SDK is not installed."""
    try:
        return await asyncio.to_thread(importlib.import_module, "agent.mcp.connection")
    except ImportError:
        raise ToolError(NO_SDK) from None


async def imported(name: str) -> Any:
    return getattr(await imported_module(), name)


@asynccontextmanager
async def open_servers(
    configs: Sequence[ServerConfig], sandboxes: Sandboxes, state: Path, table: KeyValueTable
) -> AsyncIterator[ToolServers]:
    """On leaving, all servers are ended."""
    config = sandboxes.config
    async with BackgroundTasks() as tasks:
        yield ToolServers(
            {each.name: each for each in configs},
            config,
            state / "mcp",
            table,
            tasks,
            config.observe,
        )
