"""Files beneath a directory, whatever the path says: openat2(2) checks and opens in one step.

Standard library only, so that unprivileged_server.py can use it after it gave up root.
Every function takes the descriptor of a root directory and a path relative to
it, and raises OSError; EXDEV and ELOOP mean that the path leads out.
"""

import ctypes
import errno
import os
import secrets
import stat
import struct
from itertools import islice

SYS_OPENAT2 = 437
NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 0x01, 0x02, 0x04, 0x08
FOLLOW_SYMLINKS = BENEATH | NO_MAGICLINKS | NO_XDEV
REFUSE_SYMLINKS = FOLLOW_SYMLINKS | NO_SYMLINKS
OPEN_FLAGS = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY

libc = ctypes.CDLL(None, use_errno=True)


def open_beneath(
    root: int, path: str, flags: int, *, mode: int = 0, resolve: int = FOLLOW_SYMLINKS
) -> int:
    """A descriptor of `path` beneath `root`."""
    how = struct.pack("QQQ", flags | OPEN_FLAGS, mode, resolve)
    for _ in range(16):
        fd = libc.syscall(SYS_OPENAT2, root, os.fsencode(path or "."), how, len(how))
        if fd >= 0:
            return int(fd)
        if ctypes.get_errno() != errno.EAGAIN:  # a rename raced with the look-up
            break
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code), path)


def open_file(root: int, path: str) -> int:
    """A regular file opened for reading; IsADirectoryError, or EINVAL for a device, pipe or socket."""
    fd = open_beneath(root, path, os.O_RDONLY)
    kind = os.fstat(fd).st_mode
    if stat.S_ISREG(kind):
        return fd
    os.close(fd)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "not a regular file", path)


def list_directory(root: int, path: str, limit: int = 1000) -> list[str]:
    """Names in a directory, directories with a slash."""
    fd = open_beneath(root, path, DIRECTORY)
    try:
        with os.scandir(fd) as entries:
            # Where a link leads is not looked at: that could be outside.
            some = islice(entries, limit)
            found = [e.name + "/" * e.is_dir(follow_symlinks=False) for e in some]
    finally:
        os.close(fd)
    return sorted(found)


def replace_file(root: int, path: str, source: int) -> bool:
    """Put the bytes of `source` (a descriptor) at `path` in one step; whether it was new.

    Missing directories are made, all as bash makes them, whatever the umask of a service. No symlink
    is followed: one at `path` is replaced.
    """
    parent, name = os.path.split(path)
    directory = make_directory(root, parent)
    try:
        mode = permissions(directory, name)
        partial = f".{name[:60]}.{secrets.token_hex(4)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        target = os.open(partial, flags, 0o600, dir_fd=directory)
        try:
            copy_content(target, source, mode or 0o644)
            os.rename(partial, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            os.unlink(partial, dir_fd=directory)
            raise
    finally:
        os.close(directory)
    return mode is None


def remove_file(root: int, path: str) -> None:
    """Take a name that is no directory away; no symlink is followed."""
    parent, name = os.path.split(path)
    directory = open_beneath(root, parent, DIRECTORY, resolve=REFUSE_SYMLINKS)
    try:
        os.unlink(name, dir_fd=directory)
    finally:
        os.close(directory)


def copy_content(target: int, source: int, mode: int) -> None:
    try:
        size, done = os.fstat(source).st_size, 0
        while done < size:
            sent = os.sendfile(target, source, done, size - done)
            if not sent:
                break
            done += sent
        os.fchmod(target, mode)
        os.fsync(target)
    finally:
        os.close(target)


def permissions(directory: int, name: str) -> int | None:
    """Permissions of what is replaced; None when there is nothing."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return found & 0o777 if stat.S_ISREG(found) else 0o644


def make_directory(root: int, path: str) -> int:
    """A directory beneath `root`, made with its parents where it is missing."""
    try:
        return open_beneath(root, path, DIRECTORY, resolve=REFUSE_SYMLINKS)
    except FileNotFoundError:
        parent, name = os.path.split(path)
    above = make_directory(root, parent)
    try:
        try:
            os.mkdir(name, 0o755, dir_fd=above)
        except FileExistsError:
            return open_beneath(above, name, DIRECTORY, resolve=REFUSE_SYMLINKS)
        made = open_beneath(above, name, DIRECTORY, resolve=REFUSE_SYMLINKS)
        os.fchmod(made, 0o755)
        return made
    finally:
        os.close(above)
