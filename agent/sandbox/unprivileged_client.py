"""The actor of a program that root runs: everything is done by a porter, as somebody lesser."""

import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from agent.sandbox.answer import answered
from agent.sandbox.child import Child
from agent.sandbox.isolated import run_isolated
from agent.sandbox.privileges import directory

# Among the ids that systemd's scheme leaves unused (60578-61183), and not one of Debian's.
UID = 60579

_BASES = ("/mnt", "/media", "/srv", "/opt", "/run", "/var")


class Lesser:
    """See actor.Actor. The porter is started at the first request, and again if it died."""

    uid = UID

    def __init__(self) -> None:
        self.porter: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def reach(self, sources: Sequence[str]) -> list[str]:
        base = _base(sources)
        return [f"{base}/{number}" for number in range(len(sources))]

    async def start(
        self, argv: Sequence[str], *, fds: Sequence[int], out: int, sources: Sequence[str]
    ) -> Child:
        request = {
            "do": "start",
            "argv": list(argv),
            "numbers": list(fds),
            "uid": self.uid,
            "base": _base(sources),
            "sources": list(sources),
        }
        _, pidfd = await self._ask(request, [*fds, out])
        assert pidfd is not None
        return Child(pidfd)

    async def listen(self, pid: int) -> int:
        _, listener = await self._ask({"do": "listen", "pid": pid}, [])
        assert listener is not None
        return listener

    async def open(self, root: Path, path: str) -> int:
        with directory(root) as fd:
            _, opened = await self._ask({"do": "open", "path": path}, [fd])
        assert opened is not None
        return opened

    async def names(self, root: Path, path: str) -> list[str]:
        with directory(root) as fd:
            return list((await self._ask({"do": "names", "path": path}, [fd]))[0])

    async def replace(self, root: Path, path: str, source: int) -> bool:
        with directory(root) as fd:
            return bool((await self._ask({"do": "replace", "path": path}, [fd, source]))[0])

    async def remove(self, root: Path, path: str) -> None:
        with directory(root) as fd:
            await self._ask({"do": "remove", "path": path}, [fd])

    async def _ask(self, request: dict[str, Any], fds: Sequence[int]) -> tuple[Any, int | None]:
        """The answer's value and its descriptor; OSError as it happened over there."""
        with ExitStack() as stack:
            mine, theirs = (stack.enter_context(s) for s in socket.socketpair())
            body = stack.enter_context(os.fdopen(os.memfd_create("request"), "wb", buffering=0))
            body.write(json.dumps(request).encode())
            self._send([theirs.fileno(), body.fileno(), *fds])
            theirs.close()
            return await answered(mine)

    def _send(self, fds: Sequence[int]) -> None:
        try:
            socket.send_fds(self._line(), [b"?"], fds)
        except BrokenPipeError:
            self.close()
            socket.send_fds(self._line(), [b"?"], fds)

    def _line(self) -> socket.socket:
        if self._requests is None:
            self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self.porter = run_isolated(
                    "unprivileged_server", theirs.fileno(), fd=theirs.fileno()
                )
        return self._requests

    def close(self) -> None:
        """End the porter, and with it whatever still runs in a sandbox."""
        if self._requests is not None and self.porter is not None:
            self._requests.close()
            self._requests = None
            self.porter.kill()
            self.porter.wait()


@asynccontextmanager
async def lesser() -> AsyncIterator[Lesser]:
    actor = Lesser()
    try:
        yield actor
    finally:
        actor.close()


def _base(sources: Sequence[str]) -> str:
    """A directory of the host to mount over, for the porter's own view, that hides no source."""
    free = (b for b in _BASES if Path(b).is_dir() and not any(_holds(b, s) for s in sources))
    return next(free, _BASES[0])


def _holds(base: str, source: str) -> bool:
    return os.path.realpath(source).startswith(f"{os.path.realpath(base)}/")
