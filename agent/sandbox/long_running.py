"""A program that keeps running: one bubblewrap of its own, with pipes to its standard input and output.

It has a lasting folder at /workspace and its own files, read-only, at /program. It sees no more of the host
than a command does, and no more of the network than the proxy lets through.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox.bubblewrap import PROGRAM
from agent.sandbox.bwrap_process import BwrapProcess, pipe, run_bwrap
from agent.sandbox.limits import DiskQuota
from agent.sandbox.output_buffer import RecentOutput
from agent.sandbox.proxy import EgressProxy
from agent.sandbox.sandbox_config import SandboxConfig

WATCH_SECONDS = 1.0
GRACE_SECONDS = 2.0  # from the end of its input until it is killed
KEPT_ERRORS = 16 << 10  # bytes of its standard error
# bash knows descriptors of more than one digit, sh does not.
WITH_PIPES = 'exec "$@" <&{0} >&{1} {0}<&- {1}>&-'


@dataclass(frozen=True)
class LongRunningProcess:
    """A running program. `reader` gives lines of at most `line_bytes`."""

    process: BwrapProcess
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def errors(self) -> str:
        """The end of the process's standard error."""
        return self.process.output.excerpt(KEPT_ERRORS)[0]

    async def ended(self) -> str:
        """Wait for its end; return the reason where the sandbox ended it, else empty."""
        return await asyncio.shield(self.process.ended)


@asynccontextmanager
async def run_lasting(
    config: SandboxConfig,
    command: Sequence[str],
    folder: Path,
    *,
    made_of: Path | None,
    variables: Mapping[str, str],
    inputs: Mapping[str, bytes],
    proxy: EgressProxy | None,
    line_bytes: int,
) -> AsyncIterator[LongRunningProcess]:
    """Start a command in `folder`; on leaving, every process of it is gone. NoSandbox where it cannot be isolated.

    `made_of` is shown at /program, `variables` are added to its environment, `inputs` are files in its /tmp.
    """
    quota = DiskQuota(folder, config.limits)
    async with AsyncExitStack() as stack:
        group = await stack.enter_async_context(config.call_group())
        repos = await stack.enter_async_context(config.guarded_repos("files"))
        ours, theirs = stack.enter_context(ExitStack()), stack.enter_context(ExitStack())
        given, to_write = pipe(theirs, ours)
        to_read, taken = pipe(ours, theirs)
        await quota.measure()
        invocation = config.invocation(
            folder,
            ["/bin/bash", "-c", WITH_PIPES.format(given, taken), "server", *command],
            guards=repos.guards,
            network=proxy is not None,
            group=group,
            folders={PROGRAM: os.fspath(made_of)} if made_of else {},
            variables=variables,
            inputs=inputs,
            fds=(given, taken),
        )
        process = await stack.enter_async_context(run_bwrap(config.user, invocation))
        theirs.close()
        process.output = RecentOutput(KEPT_ERRORS, process.output.raw)
        released = config.released(
            process, invocation, quota, memory=group is None, proxy=proxy, interval=WATCH_SECONDS
        )
        await stack.enter_async_context(released)
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
            outgoing.close()  # asks it to end by itself
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_SECONDS):
                    await running.ended()
