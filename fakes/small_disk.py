"""A small disk for the state, which can be full: a tmpfs that this process and its children see alone."""

import ctypes
import os
from contextlib import suppress
from pathlib import Path

NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000
REC_PRIVATE = 0x4000 | 0x40000
MIB = 1 << 20
SIZE_MIB = 128

_libc = ctypes.CDLL(None, use_errno=True)


class Disk:
    """At `folder`, made on entering; entered before any thread is started, as the kernel wants it.

    `missing` says why there is none; the folder is then an ordinary one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"
        folder.mkdir(mode=0o700)
        self.missing = _mounted(folder)

    def fill(self) -> None:
        """To the last byte, and whatever is freed meanwhile at the next call."""
        with suppress(OSError), self._ballast.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(MIB if _free(self.folder) >= MIB else 4096))

    def empty(self) -> None:
        self._ballast.unlink(missing_ok=True)


def _free(folder: Path) -> int:
    told = os.statvfs(folder)
    return told.f_bavail * told.f_frsize


def _mounted(folder: Path) -> str:
    """Mount; an ordinary user does so in a user namespace in which they stay who they are."""
    try:
        _unshare()
        _called(_libc.mount(b"none", b"/", b"", REC_PRIVATE, None))
        options = f"mode=0700,size={SIZE_MIB}m".encode()
        _called(_libc.mount(b"campaign", os.fsencode(folder), b"tmpfs", 0, options))
    except OSError as error:
        return f"needs a mount of its own: {error.strerror}"
    return ""


def _unshare() -> None:
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        return _called(_libc.unshare(NEW_MOUNTS))
    _called(_libc.unshare(NEW_MOUNTS | NEW_USER))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return None


def _called(result: int) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
