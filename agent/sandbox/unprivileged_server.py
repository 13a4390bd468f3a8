"""For a program that root runs: starts bubblewrap and opens files as somebody lesser.

A process of its own with a single thread, because only such a one may fork and
change who it is. A request comes as one datagram with descriptors: where to
answer, the request's JSON, and what the request needs. A fork does the work
after it gave up root; it acts in a workspace as the unprivileged user that owns
it, in a repository as the repository's owner. Ends when the socket closes.

Standard library only: it runs isolated and never loads the agent.
"""

import json
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from agent.sandbox import listen, mounts, openat2

MOST_FDS = 16


def main(fd: int) -> None:
    os.umask(0o022)
    os.set_inheritable(fd, False)
    with socket.socket(fileno=fd) as requests:
        while _served(requests):
            _reap()


def _served(requests: socket.socket) -> bool:
    letter, fds, _, _ = socket.recv_fds(requests, 16, MOST_FDS)
    if not letter:
        return False
    try:
        answer, body, *rest = fds
        request = json.loads(_content(body))
        with socket.socket(fileno=os.dup(answer)) as reply:
            _DOING[request.pop("do")](reply, rest, **request)
    finally:
        for fd in fds:
            os.close(fd)
    return True


def _content(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _start(
    reply: socket.socket,
    fds: Sequence[int],
    *,
    argv: list[str],
    numbers: list[int],
    uid: int,
    base: str,
    sources: list[str],
) -> None:
    """Exec `argv` with the last of `fds` as its output and the others at `numbers`."""
    shifts = [(source, mounts.shift(source, uid)) for source in sources]
    pid = os.fork()
    if not pid:
        _become(argv, fds, numbers, uid, base, shifts)
    pidfd = os.pidfd_open(pid)
    try:
        socket.send_fds(reply, [b"{}"], [pidfd])
    except BrokenPipeError:  # who asked is gone
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)


def _become(
    argv: list[str],
    fds: Sequence[int],
    numbers: list[int],
    uid: int,
    base: str,
    shifts: Sequence[tuple[str, int | None]],
) -> NoReturn:
    *passed, out = fds
    os.dup2(out, 1)
    os.dup2(out, 2)
    try:
        mounts.reachable(base, shifts)
        os.setsid()
        _drop(uid, uid)
        _place(passed, numbers)
        os.chdir("/")
        os.execve(argv[0], argv, {})  # noqa: S606 - that is what it is for
    except BaseException as error:  # noqa: BLE001 - a fork must not return
        os.write(2, f"porter: {error}".encode())
    finally:
        os._exit(1)


def _drop(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _place(fds: Sequence[int], numbers: Sequence[int]) -> None:
    """Each descriptor at its number, inherited by exec; nothing else stays open."""
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    high = max([*numbers, *fds, nothing]) + 1
    moved = [_above(fd, high + n) for n, fd in enumerate(fds)]
    os.closerange(3, high)
    for fd, number in zip(moved, numbers, strict=True):
        os.dup2(fd, number)
        os.close(fd)


def _above(fd: int, number: int) -> int:
    return os.dup2(fd, number, inheritable=False)


def _open(reply: socket.socket, fds: Sequence[int], *, path: str) -> None:
    def work() -> tuple[Any, list[int]]:
        return None, [openat2.open_file(fds[0], path)]

    _forked(reply, fds[0], work)


def _names(reply: socket.socket, fds: Sequence[int], *, path: str) -> None:
    _forked(reply, fds[0], lambda: (openat2.names(fds[0], path), []))


def _replace(reply: socket.socket, fds: Sequence[int], *, path: str) -> None:
    _forked(reply, fds[0], lambda: (openat2.replace(fds[0], path, fds[1]), []))


def _remove(reply: socket.socket, fds: Sequence[int], *, path: str) -> None:
    def work() -> tuple[Any, list[int]]:
        openat2.remove(fds[0], path)
        return None, []

    _forked(reply, fds[0], work)


def _listen(reply: socket.socket, fds: Sequence[int], *, pid: int) -> None:
    assert not fds
    if os.fork():
        return
    try:
        listener = listen.listening(pid)
        socket.send_fds(reply, [b"{}"], [listener.fileno()])
    finally:
        os._exit(0)


def _forked(reply: socket.socket, root: int, work: Callable[[], tuple[Any, list[int]]]) -> None:
    if os.fork():
        return
    try:
        owner = os.fstat(root)
        _drop(owner.st_uid, owner.st_gid)
        value, fds = work()
        socket.send_fds(reply, [json.dumps({"value": value}).encode()], fds)
    except OSError as error:
        said = {"errno": error.errno, "strerror": error.strerror}
        reply.send(json.dumps(said).encode())
    finally:
        os._exit(0)


_DOING: dict[str, Callable[..., None]] = {
    "start": _start,
    "open": _open,
    "names": _names,
    "replace": _replace,
    "remove": _remove,
    "listen": _listen,
}
