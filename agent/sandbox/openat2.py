"""Files beneath a directory, whatever the path says: openat2(2) checks and opens in one step.

Standard library only, so that unprivileged_server.py can use it after it has given up root.
Every file function takes the descriptor of a root directory and a path relative to
it, and raises OSError; EXDEV and ELOOP mean that the path leads outside.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

SYS_OPENAT2 = 437
NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 0x01, 0x02, 0x04, 0x08
FOLLOW_SYMLINKS = BENEATH | NO_MAGICLINKS | NO_XDEV
REFUSE_SYMLINKS = FOLLOW_SYMLINKS | NO_SYMLINKS
OPEN_FLAGS = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY
MOST_NAMES = 1000

libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def closing_fd(fd: int) -> Iterator[int]:
    """Close a descriptor on leaving."""
    try:
        yield fd
    finally:
        os.close(fd)


def open_beneath(root: int, path: str, flags: int, *, resolve: int = FOLLOW_SYMLINKS) -> int:
    """A descriptor of `path` beneath `root`."""
    how = struct.pack("QQQ", flags | OPEN_FLAGS, 0, resolve)
    for _ in range(16):
        fd = libc.syscall(SYS_OPENAT2, root, os.fsencode(path or "."), how, len(how))
        if fd >= 0:
            return int(fd)
        if ctypes.get_errno() != errno.EAGAIN:  # EAGAIN: a rename raced with the lookup
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


def list_directory(root: int, path: str) -> list[str]:
    """List at most MOST_NAMES names in a directory, directories with a slash. Links are not followed: they may lead
    outside."""
    with closing_fd(open_beneath(root, path, DIRECTORY)) as fd, os.scandir(fd) as entries:
        some = islice(entries, MOST_NAMES)
        return sorted(e.name + "/" * e.is_dir(follow_symlinks=False) for e in some)


def replace_file(root: int, path: str, source: int) -> bool:
    """Put the bytes of `source` (a descriptor) at `path` in one step; return whether it was new.

    Missing directories are made. Modes are those that bash gives, whatever the umask of a service. No
    symlink is followed: one at `path` is replaced.
    """
    parent, name = os.path.split(path)
    with closing_fd(make_directory(root, parent)) as directory:
        mode = permissions(directory, name)
        partial = f".{name[:60]}.{os.urandom(4).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        target = os.open(partial, flags, 0o600, dir_fd=directory)
        try:
            with closing_fd(target):
                copy_content(target, source)
                os.fchmod(target, mode or 0o644)
                os.fsync(target)
            os.rename(partial, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            os.unlink(partial, dir_fd=directory)
            raise
    return mode is None


def remove_file(root: int, path: str) -> None:
    """Unlink anything except a directory; no symlink is followed."""
    parent, name = os.path.split(path)
    with closing_fd(open_beneath(root, parent, DIRECTORY, resolve=REFUSE_SYMLINKS)) as directory:
        os.unlink(name, dir_fd=directory)


def copy_content(target: int, source: int) -> None:
    """Copy from the start of `source`, wherever its offset stands."""
    size, done = os.fstat(source).st_size, 0
    while done < size:
        sent = os.sendfile(target, source, done, size - done)
        if not sent:
            break
        done += sent


def permissions(directory: int, name: str) -> int | None:
    """Permissions of the file that is replaced; None when there is none."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return found & 0o777 if stat.S_ISREG(found) else 0o644


def make_directory(root: int, path: str) -> int:
    """A descriptor of a directory beneath `root`, which is made, with its parents, where it is missing."""
    try:
        return open_beneath(root, path, DIRECTORY, resolve=REFUSE_SYMLINKS)
    except FileNotFoundError:
        parent, name = os.path.split(path)
    with closing_fd(make_directory(root, parent)) as above:
        try:
            os.mkdir(name, 0o755, dir_fd=above)
        except FileExistsError:
            return open_beneath(above, name, DIRECTORY, resolve=REFUSE_SYMLINKS)
        made = open_beneath(above, name, DIRECTORY, resolve=REFUSE_SYMLINKS)
        os.fchmod(made, 0o755)
        return made
