"""One chat's sandbox: run a command in it, read and write its files."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agent.errors import ToolError
from agent.sandbox.bwrap_process import BwrapProcess, blown
from agent.sandbox.countdown import Countdown
from agent.sandbox.files import Files
from agent.sandbox.layout import WriteAccess
from agent.sandbox.mountinfo import verified
from agent.sandbox.output_buffer import decode
from agent.sandbox.outputs import save
from agent.sandbox.proxy import Permit, Proxy, serving
from agent.sandbox.quota import Quota
from agent.sandbox.sandbox_config import SandboxConfig
from agent.sandbox.usage_watcher import over_memory, watch

PROGRESS_SECONDS = 1.0
_LONGEST_COMMAND = 100_000  # bytes; the kernel takes 128 KiB in one argument


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended.

    `output` is what it printed (both streams, in order), cleaned of terminal
    escapes, head and tail of it where it was `cut`; `saved` then names the file
    in the sandbox that holds the whole. `reason` is one plain sentence when the
    sandbox ended it or something of it was lost, else empty. `reached` are the
    hosts ("name:port") that it talked to.
    """

    exit_code: int
    output: str
    truncated: bool = False
    saved_path: str = ""
    reason: str = ""
    hosts: frozenset[str] = frozenset()


class Sandbox:
    """`workspace` is the host's path of /workspace."""

    def __init__(self, config: SandboxConfig, chat: str, workspace: Path) -> None:
        self.chat = chat
        self.workspace = workspace
        self.config = config
        self.quota = Quota(workspace, config.limits)
        self.files = Files(config, workspace, self.quota)

    async def run(
        self,
        command: str | Sequence[str],
        *,
        seconds: float | None = None,
        permit: Permit | None = None,
        output_bytes: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> CommandResult:
        """Run bash text, or an argument list, in /workspace; ToolError when nothing can run.

        `seconds` are at most five times the owner's `command_seconds`, `output_bytes`
        at most the owner's `output_kib`. Where the owner allows
        network, `permit` is asked before each host; without it there is none.
        """
        limit = self.config.limits.command_seconds
        proxy = Proxy(self.config.hosts, permit) if self.config.hosts and permit else None
        bubble, reason = await self._call(
            command, min(seconds or limit, 5 * limit), proxy=proxy, progress=progress
        )
        reached = frozenset(proxy.reached if proxy else ())
        if reached:
            self.files.reached_out()
        text, cut = bubble.printed.shown(self.output_limit(output_bytes))
        saved = await self.save(bytes(bubble.printed.raw)) if cut else ""
        return CommandResult(_code(bubble, reason), text, cut, saved, reason, reached)

    async def run_internal(
        self, command: Sequence[str], *, seconds: float, access: WriteAccess = "look"
    ) -> CommandResult:
        """A question of the program's own: the whole output, and ToolError when it takes too long."""
        bubble, reason = await self._call(command, seconds, access=access)
        if reason:
            raise ToolError(reason)
        return CommandResult(_code(bubble, reason), decode(bytes(bubble.printed.raw)))

    def output_limit(self, output_bytes: int | None = None) -> int:
        """How many bytes of output a model may get, where `output_bytes` of its window are free for it."""
        return min(output_bytes or 1 << 30, self.config.limits.output_kib << 10)

    async def _call(
        self,
        command: str | Sequence[str],
        seconds: float,
        *,
        access: WriteAccess = "work",
        proxy: Proxy | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> tuple[BwrapProcess, str]:
        async with self.config.place, self.config.group() as group:
            await self.quota.settle()
            order = await self.config.order(
                self.workspace,
                _argv(command),
                access=access,
                network=proxy is not None,
                group=group,
            )
            async with blown(self.config.actor, order) as bubble:
                beside = [watch(bubble, self.quota, memory=group is None)]
                beside += [_tell(bubble, progress)] if progress else []
                reason = await self._verdict(bubble, order.inner, seconds, proxy, beside)
            if group and group.out_of_memory():
                reason = over_memory(self.config.limits)
        if bubble.exit_code is None and not reason:
            raise self.config.broken(bubble.printed.shown(2000)[0])
        return bubble, reason

    async def _verdict(
        self,
        bubble: BwrapProcess,
        inner: Sequence[str],
        seconds: float,
        proxy: Proxy | None,
        beside: Sequence[Coroutine[Any, Any, None]],
    ) -> str:
        """Wait for whatever ends the call first."""
        loop = asyncio.get_running_loop()
        late = f"Stopped: the time limit of {seconds:g} s was reached."
        countdown = Countdown(seconds, partial(bubble.end, late))
        tasks = [loop.create_task(work) for work in beside]
        try:
            async with self._entered(bubble, inner, proxy, countdown):
                return await asyncio.shield(bubble.verdict)
        finally:
            countdown.cancel()
            await _stopped(tasks)

    @asynccontextmanager
    async def _entered(
        self, bubble: BwrapProcess, inner: Sequence[str], proxy: Proxy | None, countdown: Countdown
    ) -> AsyncIterator[None]:
        """Look at the mounts and put the proxy into the sandbox's network, then let the command start."""
        if inner or proxy:
            await bubble.introduced(bubble.verdict)
        if bubble.init_pid is None:
            yield
            return
        if inner:
            await verified(bubble.init_pid, bubble.verdict, inner)
        async with AsyncExitStack() as stack:
            if proxy:
                proxy.permit = _pausing(proxy.permit, countdown)
                listener = await self._listener(bubble.init_pid)
                await stack.enter_async_context(serving(listener, proxy))
            bubble.release()
            yield

    async def _listener(self, pid: int) -> int:
        try:
            return await self.config.actor.listen(pid)
        except OSError as error:
            raise ToolError(f"The sandbox's network does not work here: {error}.") from None

    async def save(self, raw: bytes) -> str:
        """Keep a whole output in the workspace; its path in the sandbox, or empty."""
        return await save(self.files, raw)


def _code(bubble: BwrapProcess, reason: str) -> int:
    return 137 if bubble.exit_code is None or reason else bubble.exit_code


def _argv(command: str | Sequence[str]) -> list[str]:
    if isinstance(command, str):
        command = ["/bin/bash", "--noprofile", "--norc", "-c", command]
    if any("\0" in part for part in command):
        raise ToolError("A command cannot hold a NUL character.")
    if any(len(part.encode("utf-8", "replace")) > _LONGEST_COMMAND for part in command):
        raise ToolError("The command is too long. Put it into a file with write_file and run that.")
    return list(command)


def _pausing(permit: Permit, countdown: Countdown) -> Permit:
    async def ask(name: str) -> None:
        with countdown.paused():
            await permit(name)

    return ask


async def _tell(bubble: BwrapProcess, progress: Callable[[str], None]) -> None:
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        if news := bubble.printed.news():
            progress(news)


async def _stopped(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
