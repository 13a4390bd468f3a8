"""A program that stays: one bubblewrap of its own, with pipes to its standard input and output.

It has a folder that lasts, at /workspace, and what it is made of, read-only, at /program. Of the host it
sees no more than a command does, and of the network what the proxy lets through.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from agent.aio import BackgroundTasks
from agent.errors import ToolError
from agent.sandbox.bubblewrap import PROGRAM
from agent.sandbox.bwrap_process import BwrapProcess, pipe, run_bwrap
from agent.sandbox.limits import DiskQuota, watch_usage
from agent.sandbox.mountinfo import verify_mounts
from agent.sandbox.output_buffer import RecentOutput
from agent.sandbox.proxy import EgressProxy, serve_proxy
from agent.sandbox.sandbox_config import SandboxConfig

WATCH_SECONDS = 1.0
GRACE_SECONDS = 2.0  # between the end of its input and its own
KEPT_ERRORS = 16 << 10  # bytes of its standard error
# bash knows descriptors of more than one digit, sh does not.
WITH_PIPES = 'exec "$@" <&{0} >&{1} {0}<&- {1}>&-'


@dataclass(frozen=True, slots=True)
class LongRunningProgram:
    """`command` is started in `folder`; `made_of` is shown at /program; `variables` come to its environment, and
    `inputs` are files in its /tmp."""

    command: Sequence[str]
    folder: Path
    made_of: Path | None = None
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    inputs: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class LongRunningProcess:
    """A running one. `reader` gives lines of at most `line_bytes`."""

    process: BwrapProcess
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def errors(self) -> str:
        """The newest of its standard error."""
        return self.process.output.excerpt(KEPT_ERRORS)[0]

    async def ended(self) -> str:
        """Return once it has ended; the reason where the sandbox ended it."""
        return await asyncio.shield(self.process.ended)


@asynccontextmanager
async def run_lasting(
    config: SandboxConfig,
    program: LongRunningProgram,
    *,
    proxy: EgressProxy | None = None,
    line_bytes: int,
) -> AsyncIterator[LongRunningProcess]:
    """Start it; on leaving, every process of it is gone. NoSandbox where it cannot be isolated."""
    quota = DiskQuota(program.folder, config.limits)
    async with AsyncExitStack() as stack:
        group = await stack.enter_async_context(config.call_group())
        repos = await stack.enter_async_context(config.guarded_repos("files"))
        ours, theirs = stack.enter_context(ExitStack()), stack.enter_context(ExitStack())
        given, to_write = pipe(theirs, ours)
        to_read, taken = pipe(ours, theirs)
        await quota.measure()
        invocation = await config.invocation(
            program.folder,
            ["/bin/bash", "-c", WITH_PIPES.format(given, taken), "server", *program.command],
            guards=repos.guards,
            network=proxy is not None,
            group=group,
            folders={PROGRAM: os.fspath(program.made_of)} if program.made_of else {},
            variables=program.variables,
            inputs=program.inputs,
            fds=(given, taken),
        )
        process = await stack.enter_async_context(run_bwrap(config.user, invocation))
        theirs.close()
        process.output = RecentOutput(KEPT_ERRORS, process.output.raw)
        beside = await stack.enter_async_context(BackgroundTasks())
        memory = group is None
        watch = watch_usage(process, quota, memory=memory, interval=WATCH_SECONDS)
        beside.start(watch, "the watch over a program")
        if invocation.blocked and (init := await process.started()) is not None:
            if invocation.nested_mounts:
                await verify_mounts(init, process.ended, invocation.nested_mounts)
            if proxy:
                try:
                    listener = await config.user.listen(init)
                except OSError as error:
                    raise ToolError(f"The sandbox's network does not work here: {error}.") from None
                await stack.enter_async_context(serve_proxy(listener, proxy))
            process.release()
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(line_bytes)
        ours.pop_all()  # the transports close them
        protocol = asyncio.StreamReaderProtocol(reader)
        incoming, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(to_read, "rb", 0))
        stack.callback(incoming.close)
        draining = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        outgoing, _ = await loop.connect_write_pipe(lambda: draining, os.fdopen(to_write, "wb", 0))
        stack.callback(lambda: None if outgoing.is_closing() else outgoing.abort())
        writer = asyncio.StreamWriter(outgoing, draining, None, loop)
        running = LongRunningProcess(process, reader, writer)
        try:
            yield running
        finally:
            outgoing.close()  # its sign to end by itself
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_SECONDS):
                    await running.ended()
