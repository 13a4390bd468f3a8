"""A process that was started, by its descriptor: no signal can reach a stranger that took its id."""

import asyncio
import os
import signal
import subprocess


class Child:
    """Owns the pidfd; `process` is there when it is a child of ours, to be reaped."""

    def __init__(self, pidfd: int, process: "subprocess.Popen[bytes] | None" = None) -> None:
        self._fd = pidfd
        self._process = process

    def kill(self) -> None:
        try:
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)
        except ProcessLookupError:
            pass

    async def wait(self) -> None:
        """Return once it has ended (and, for an init, its whole process namespace with it)."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        fd = os.dup(self._fd)  # several may wait
        loop.add_reader(fd, _resolve, ended)
        try:
            await ended
        finally:
            loop.remove_reader(fd)
            os.close(fd)
        if self._process is not None:
            self._process.wait()

    def close(self) -> None:
        os.close(self._fd)


def _resolve(ended: "asyncio.Future[None]") -> None:
    if not ended.done():
        ended.set_result(None)
