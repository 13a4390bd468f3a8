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
from agent.sandbox.layout import Access
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
class Ran:
    """How a command ended.

    `output` is what it printed (both streams, in order), cleaned of terminal
    escapes, head and tail of it where it was `cut`; `saved` then names the file
    in the sandbox that holds the whole. `reason` is one plain sentence when the
    sandbox ended it or something of it was lost, else empty. `reached` are the
    hosts ("name:port") that it talked to.
    """

    exit_code: int
    output: str
    cut: bool = False
    saved: str = ""
    reason: str = ""
    reached: frozenset[str] = frozenset()


class Sandbox:
    """`workspace` is the host's path of /workspace."""

    def __init__(self, ground: SandboxConfig, chat: str, workspace: Path) -> None:
        self.chat = chat
        self.workspace = workspace
        self.ground = ground
        self.quota = Quota(workspace, ground.limits)
        self.files = Files(ground, workspace, self.quota)

    async def run(
        self,
        command: str | Sequence[str],
        *,
        seconds: float | None = None,
        permit: Permit | None = None,
        keep: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Ran:
        """Run bash text, or an argument list, in /workspace; ToolError when nothing can run.

        `seconds` are at most five times the owner's `command_seconds`, `keep`
        (bytes of output) at most the owner's `output_kib`. Where the owner allows
        network, `permit` is asked before each host; without it there is none.
        """
        limit = self.ground.limits.command_seconds
        proxy = Proxy(self.ground.hosts, permit) if self.ground.hosts and permit else None
        bubble, reason = await self._call(
            command, min(seconds or limit, 5 * limit), proxy=proxy, progress=progress
        )
        reached = frozenset(proxy.reached if proxy else ())
        if reached:
            self.files.reached_out()
        text, cut = bubble.printed.shown(self.keep(keep))
        saved = await self.save(bytes(bubble.printed.raw)) if cut else ""
        return Ran(_code(bubble, reason), text, cut, saved, reason, reached)

    async def ask(self, command: Sequence[str], *, seconds: float, access: Access = "look") -> Ran:
        """A question of the program's own: the whole output, and ToolError when it takes too long."""
        bubble, reason = await self._call(command, seconds, access=access)
        if reason:
            raise ToolError(reason)
        return Ran(_code(bubble, reason), decode(bytes(bubble.printed.raw)))

    def keep(self, room: int | None = None) -> int:
        """How many bytes of output a model may get, where its window has place for `room`."""
        return min(room or 1 << 30, self.ground.limits.output_kib << 10)

    async def _call(
        self,
        command: str | Sequence[str],
        seconds: float,
        *,
        access: Access = "work",
        proxy: Proxy | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> tuple[BwrapProcess, str]:
        async with self.ground.place, self.ground.group() as group:
            await self.quota.settle()
            order = await self.ground.order(
                self.workspace,
                _argv(command),
                access=access,
                network=proxy is not None,
                group=group,
            )
            async with blown(self.ground.actor, order) as bubble:
                beside = [watch(bubble, self.quota, memory=group is None)]
                beside += [_tell(bubble, progress)] if progress else []
                reason = await self._verdict(bubble, order.inner, seconds, proxy, beside)
            if group and group.out_of_memory():
                reason = over_memory(self.ground.limits)
        if bubble.exit_code is None and not reason:
            raise self.ground.broken(bubble.printed.shown(2000)[0])
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
            return await self.ground.actor.listen(pid)
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
