"""The submodules that a git index names, read without running git.

The format is that of git's Documentation/gitformat-index.txt, versions 2 to 4.
"""

import os
import re
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 256 << 20
GITLINK, SPARSE_DIRECTORY = 0o160000, 0o040000
MODE, FLAGS, NAME = 24, 60, 62  # offsets in an entry with SHA-1
EXTENDED = 0x4000
SHA256 = re.compile(
    rb'^\s*objectformat\s*=\s*"?sha256"?\s*(?:[;#]|$)', re.IGNORECASE | re.MULTILINE
)


class UnguardedError(Exception):
    """The git directories of a repository cannot be protected; `str(error)` says why."""


def submodule_paths(git: Path) -> Iterator[str]:
    """The submodules in the index of a git directory; UnguardedError where it cannot be read."""
    for index in (git / "index", *git.glob("sharedindex.*")):
        content = read_bounded(index)
        # A quick check first: few repositories have submodules.
        if struct.pack(">I", GITLINK) in content or b"sdir\0\0\0\0" in content:
            try:
                yield from gitlinks(content, git)
            except (ValueError, IndexError, struct.error) as error:
                raise UnguardedError(f"{index} cannot be read: {error}") from error


def gitlinks(content: bytes, git: Path) -> Iterator[str]:
    version, count = struct.unpack_from(">4xII", content)
    wide = 12 * bool(SHA256.search(configuration(git)))
    name, at = b"", 12
    for _ in range(count):
        (mode,) = struct.unpack_from(">I", content, at + MODE)
        (flags,) = struct.unpack_from(">H", content, at + FLAGS + wide)
        start = at + NAME + wide + 2 * bool(flags & EXTENDED)
        dropped, start = prefix_length(content, start) if version == 4 else (len(name), start)
        end = content.index(b"\0", start)
        name = name[: len(name) - dropped] + content[start:end]
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
        if mode == SPARSE_DIRECTORY:
            raise UnguardedError(f"{git}/index is sparse")
        if mode == GITLINK and name:
            path = os.fsdecode(name)
            if any(part in ("", ".", "..", ".git") for part in path.split("/")):
                raise UnguardedError(f"the index names a submodule {path!r}")
            yield path


def configuration(git: Path) -> bytes:
    """The configuration of a git directory; a linked worktree has that of the repository."""
    common = os.fsdecode(read_bounded(git / "commondir").strip())
    return read_bounded(git / common / "config")


def prefix_length(content: bytes, at: int) -> tuple[int, int]:
    """How many bytes to drop from the end of the previous name (version 4), and the offset of what follows."""
    byte = content[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = content[at]
        value = (value + 1 << 7) | byte & 0x7F
    return value, at + 1


def read_bounded(path: Path) -> bytes:
    """The content of a file of git, empty without one; UnguardedError for a pipe or a huge file, which a command
    may have put there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise UnguardedError(f"{path} cannot be read: {error.strerror}") from error
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise UnguardedError(f"{path} is no file of git")
        return file.read(MOST_BYTES)
