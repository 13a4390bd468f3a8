"""A server process that starts bubblewrap, listens in a sandbox's network and, for a program that root runs,
opens files as an unprivileged user.

It has a single thread, because only such a process may fork and change its user. A request is one datagram
with descriptors: the socket for the answer, the request's JSON in a memfd, and those that the request needs.
A fork does the work after it has given up root: in a workspace as the unprivileged user that owns it, in a
repository as the repository's owner.

It outlives the program that it serves, however that ends: when the socket closes, it kills every process
that it has started and all their orphans, then exits.

Host directories are mounted where that user can reach them, by id-mapped mounts where they belong to somebody
else; the kernel is called directly, because mount(8) of Debian 12 cannot make these.

Standard library only: it is run by an isolated interpreter (privileges.start_server).
"""

# Importing pathlib would double the start-up time.
# ruff: noqa: PTH102, PTH116, PTH118, PTH123, PTH208

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn

from agent.sandbox import openat2

PROXY_PORT = 3128  # in the sandbox's network
BACKLOG = 64
MOST_FDS = 16
PR_SET_CHILD_SUBREAPER = 36

SYS_OPEN_TREE, SYS_MOVE_MOUNT, SYS_MOUNT_SETATTR = 428, 429, 442
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
NS_GET_USERNS = 0xB701  # linux/nsfs.h
IP_FREEBIND = 15  # binds although the loopback interface may not be up yet
MS_REC_PRIVATE, MS_BIND = 0x4000 | 0x40000, 0x1000
OPEN_TREE_CLONE, AT_EMPTY_PATH, MOVE_MOUNT_F_EMPTY_PATH = 0x1 | os.O_CLOEXEC, 0x1000, 0x4
MOUNT_ATTR_IDMAP = 0x00100000
AT_FDCWD = -100

libc = ctypes.CDLL(None, use_errno=True)


def main(fd: int) -> None:
    os.umask(0o022)
    os.set_inheritable(fd, False)
    check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    try:
        with socket.socket(fileno=fd) as requests:
            while serve_one(requests):
                with suppress(ChildProcessError):
                    while os.waitpid(-1, os.WNOHANG)[0]:
                        pass
    finally:
        end_children()
    os._exit(0)  # at once: ToolUser.close waits


def end_children() -> None:
    """Kill all children and wait for them, until no orphan of theirs is left either.

    --die-with-parent is not enough: bubblewrap requests it only after it has made the sandbox's first
    process. If bubblewrap dies before it wakes that process, by this signal or because nobody reads its
    status, the process sleeps for ever.
    """
    with suppress(ChildProcessError):
        while True:
            for pid in children():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def children() -> list[int]:
    """The pids of this process's children. Not every kernel has /proc/self/task/TID/children."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stat:
            if int(stat.read().rpartition(b")")[2].split()[1]) == os.getpid():
                found.append(int(pid))
    return found


def serve_one(requests: socket.socket) -> bool:
    """Answer one request; False when the other side is gone."""
    datagram, fds, _, _ = socket.recv_fds(requests, 16, MOST_FDS)
    if not datagram:
        return False
    try:
        answer, body, *rest = fds
        request = json.loads(os.pread(body, os.fstat(body).st_size, 0))
        with socket.socket(fileno=os.dup(answer)) as reply:
            name = request.pop("name")
            if name == "start":
                start(reply, rest, **request)
            elif not os.fork():
                try:
                    if name == "listen":
                        listen(reply, **request)
                    else:
                        file_operation(reply, rest, name, **request)
                finally:
                    os._exit(0)
    finally:
        for fd in fds:
            os.close(fd)
    return True


FILE_OPERATIONS: dict[str, Any] = {
    "open_file": openat2.open_file,
    "list_directory": openat2.list_directory,
    "replace_file": openat2.replace_file,
    "remove_file": openat2.remove_file,
}


def file_operation(reply: socket.socket, fds: Sequence[int], name: str, path: str) -> None:
    """Answer with the result of a function of openat2, as the owner of the directory that is the first of `fds`.
    Gives up root, so only in a fork."""
    try:
        root, *source = fds
        owner = os.fstat(root)
        become_user(owner.st_uid, owner.st_gid)
        value = FILE_OPERATIONS[name](root, path, *source)
        opened = name == "open_file"
        text = json.dumps({"value": None if opened else value})
        socket.send_fds(reply, [text.encode()], [value] if opened else [])
    except OSError as error:
        reply.send(json.dumps({"errno": error.errno, "strerror": error.strerror}).encode())


def listen(reply: socket.socket, pid: int) -> None:
    """Answer with a listening socket in the network namespace of `pid`, which this process enters, so only in a
    fork.

    So the proxy is all that a sandbox with network can reach: no socket file is mounted, and no program
    of ours runs inside.
    """
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    if os.geteuid():
        check(libc.setns(fcntl.ioctl(network, NS_GET_USERNS), CLONE_NEWUSER))
    check(libc.setns(network, CLONE_NEWNET))
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_IP, IP_FREEBIND, 1)
        listener.bind(("127.0.0.1", PROXY_PORT))
        listener.listen(BACKLOG)
        socket.send_fds(reply, [b"{}"], [listener.fileno()])


def start(
    reply: socket.socket,
    fds: Sequence[int],
    *,
    argv: list[str],
    numbers: list[int],
    uid: int,
    base: str,
    sources: list[str],
) -> None:
    """Exec `argv` in a fork, with the last of `fds` as its output and the others at `numbers`; answer with its pidfd.

    Where `base` is given, `sources` are mounted below it, so that the user can reach them.
    """
    mapped: list[tuple[str, int | None]] = []
    for source in sources if base else []:
        owner, namespace = os.stat(source), None
        if owner.st_uid != uid:
            with suppress(OSError):  # bubblewrap reports why there are no user namespaces
                namespace = mapping_namespace(owner.st_uid, owner.st_gid, uid)
        mapped.append((source, namespace))
    pid = os.fork()
    if not pid:
        become_program(argv, fds, numbers, uid, base, mapped)
    pidfd = os.pidfd_open(pid)
    try:
        socket.send_fds(reply, [b"{}"], [pidfd])
    except BrokenPipeError:  # the program that asked is gone
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)


def become_program(
    argv: list[str],
    fds: Sequence[int],
    numbers: list[int],
    uid: int,
    base: str,
    mapped: Sequence[tuple[str, int | None]],
) -> NoReturn:
    *passed, out = fds
    os.dup2(out, 1)
    os.dup2(out, 2)
    try:
        if base:
            mount_reachable(base, mapped)
        os.setsid()
        if uid != os.geteuid():
            become_user(uid, uid)
        place_fds(passed, numbers)
        os.chdir("/")
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python has set them to be ignored
            signal.signal(number, signal.SIG_DFL)
        os.execve(argv[0], argv, {})  # noqa: S606 - without a shell
    except BaseException as error:  # noqa: BLE001 - a fork must not return
        os.write(2, f"unprivileged server: {error}".encode())
    finally:
        os._exit(1)


def become_user(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def place_fds(fds: Sequence[int], numbers: Sequence[int]) -> None:
    """Put each descriptor at its number, inherited by exec; close all others but 1 and 2."""
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    high = max([*numbers, *fds, null]) + 1
    moved = [os.dup2(fd, high + n, inheritable=False) for n, fd in enumerate(fds)]
    os.closerange(3, high)
    for fd, number in zip(moved, numbers, strict=True):
        os.dup2(fd, number)
        os.close(fd)


def mount_reachable(base: str, sources: Sequence[tuple[str, int | None]]) -> None:
    """Give this process a mount namespace with the n-th source at `base`/n, a path that every user may enter."""
    check(libc.unshare(CLONE_NEWNS))
    mount("none", "/", "", MS_REC_PRIVATE, "")
    mount("voltaire", base, "tmpfs", 0, "mode=0755,size=64k")
    for number, (source, namespace) in enumerate(sources):
        target = os.path.join(base, str(number))
        os.mkdir(target)
        if namespace is None or not mount_id_mapped(source, target, namespace):
            mount(source, target, "", MS_BIND, "")


@cache
def mapping_namespace(owner: int, group: int, uid: int) -> int:
    """A descriptor of a user namespace that shows files of `owner` as those of `uid`. A short-lived child
    makes it."""
    ready, report = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(report, bytes([libc.unshare(CLONE_NEWUSER) != 0]))
        signal.pause()
    try:
        if os.read(ready, 1) != b"\0":
            raise OSError("no user namespaces")
        for name, inner in (("uid_map", owner), ("gid_map", group)):
            with open(f"/proc/{pid}/{name}", "w") as mapping:
                mapping.write(f"{inner} {uid} 1")
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ready)
        os.close(report)


def mount_id_mapped(source: str, target: str, namespace: int) -> bool:
    """Mount a directory through a user namespace; False where the filesystem has no id-mapped mounts."""
    tree = libc.syscall(SYS_OPEN_TREE, AT_FDCWD, os.fsencode(source), OPEN_TREE_CLONE)
    check(tree)
    attributes = struct.pack("QQQQ", MOUNT_ATTR_IDMAP, 0, 0, namespace)
    if libc.syscall(SYS_MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, attributes, len(attributes)):
        os.close(tree)
        return False
    place = os.fsencode(target)
    check(libc.syscall(SYS_MOVE_MOUNT, tree, b"", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH))
    os.close(tree)
    return True


def mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    strings = [os.fsencode(text) for text in (source, target, kind)]
    check(libc.mount(*strings, flags, os.fsencode(options)), target)


def check(result: int, path: str = "") -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
