"""Mounts for the porter: host directories where an unprivileged user can reach them.

Standard library only. Calls the kernel directly, as mount(8) of Debian 12 knows
no id-mapped mounts.
"""

# pathlib would double the start of the porter.
# ruff: noqa: PTH102, PTH116, PTH118, PTH123

import ctypes
import os
import signal
import struct
from collections.abc import Sequence
from functools import cache

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_REC_PRIVATE, _BIND = 0x4000 | 0x40000, 0x1000
_TREE_CLONE, _EMPTY_PATH, _FROM_EMPTY_PATH = 0x1 | os.O_CLOEXEC, 0x1000, 0x4
_IDMAP = 0x00100000
_AT_FDCWD = -100

_libc = ctypes.CDLL(None, use_errno=True)


def shift(source: str, uid: int) -> int | None:
    """A user namespace that shows the owner of `source` as `uid`; None where they are the same."""
    owner = os.stat(source)
    return None if owner.st_uid == uid else _shifting(owner.st_uid, owner.st_gid, uid)


def reachable(base: str, sources: Sequence[tuple[str, int | None]]) -> None:
    """Give this process mounts of its own, with the n-th source at `base`/n, below nothing private."""
    _checked(_libc.unshare(_CLONE_NEWNS))
    _mount("none", "/", "", _REC_PRIVATE, "")
    _mount("voltaire", base, "tmpfs", 0, "mode=0755,size=64k")
    for number, (source, namespace) in enumerate(sources):
        target = os.path.join(base, str(number))
        os.mkdir(target)
        if namespace is None or not _shifted(source, target, namespace):
            _mount(source, target, "", _BIND, "")


def _shifted(source: str, target: str, namespace: int) -> bool:
    """False where the filesystem has no id-mapped mounts."""
    tree = _libc.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(source), _TREE_CLONE)
    _checked(tree)
    attributes = struct.pack("QQQQ", _IDMAP, 0, 0, namespace)
    if _libc.syscall(_MOUNT_SETATTR, tree, b"", _EMPTY_PATH, attributes, len(attributes)):
        os.close(tree)
        return False
    _checked(
        _libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _FROM_EMPTY_PATH)
    )
    os.close(tree)
    return True


@cache
def _shifting(owner: int, group: int, uid: int) -> int:
    """A descriptor of a user namespace; made by a child that lives just as long as that takes."""
    ready, tell = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(tell, bytes([_libc.unshare(_CLONE_NEWUSER) != 0]))
        signal.pause()
    try:
        if os.read(ready, 1) != b"\0":
            raise OSError("no user namespaces")
        for name, inner in (("uid_map", owner), ("gid_map", group)):
            with open(f"/proc/{pid}/{name}", "w") as map_:
                map_.write(f"{inner} {uid} 1")
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ready)
        os.close(tell)


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    strings = [os.fsencode(text) for text in (source, target, kind)]
    _checked(_libc.mount(*strings, flags, os.fsencode(options)), target)


def _checked(result: int, path: str = "") -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
