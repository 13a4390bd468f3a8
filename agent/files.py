"""Files that are replaced atomically, files that are given to another user, what they take, their media types, and which are documents."""

import errno
import mimetypes
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path, *, sync: bool = False, suffix: str = "new") -> Iterator[Path]:
    """An empty private file beside `path`, which replaces it when the block ends; after an error it is removed.

    `sync` flushes it to disk first, for content that must survive a power cut; `suffix` separates
    processes that write at the same time. Raises OSError, also where `path` is a device or a pipe: as root,
    /dev/null would be a file from then on.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "Not a file that can be replaced", str(path))
    fresh = path.with_name(f".{path.name}.{suffix}")
    try:
        fresh.unlink(missing_ok=True)
        fresh.touch(0o600, exist_ok=False)
        yield fresh
        if sync:
            with fresh.open("rb") as file:
                os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        with suppress(OSError):
            fresh.unlink()


def give(folder: Path, uid: int, gid: int) -> None:
    """Make that user the owner of everything in the folder; links that a sandbox swaps in are not followed."""
    for _parent, folders, files, fd in os.fwalk(folder):
        for name in (".", *folders, *files):
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if (found.st_uid, found.st_gid) != (uid, gid):
                    os.chown(name, uid, gid, dir_fd=fd, follow_symlinks=False)


def bytes_below(path: Path) -> int:
    """Count the bytes of a file, or of all files in a folder. Blocks."""
    total = 0
    below = (Path(parent, name) for parent, _, names in os.walk(path) for name in names)
    for each in below if path.is_dir() else (path,):
        with suppress(OSError):  # renamed meanwhile
            total += each.lstat().st_size
    return total


def media_type(name: str) -> str:
    """The media type of a file by its name; that of any bytes where it is unknown, or packed as "a.csv.gz" is."""
    known, packed = mimetypes.guess_type(name)
    return known if known and not packed else "application/octet-stream"


PACKED = frozenset("pdf docx xlsx pptx odt ods odp epub".split())  # not plain text
SUFFIXES = PACKED | frozenset(
    "html htm xhtml md markdown txt text rst adoc org tex csv tsv log c h cc cpp hpp cs css go java js jsx "
    "json kt lua php pl py r rb rs sh sql swift toml ts tsx xml yaml yml".split()
)


def is_document(name: str, kinds: Collection[str] = SUFFIXES) -> bool:
    """Whether a file of that name is read as a document: by its suffix, which is one of `kinds`."""
    return name.rpartition(".")[2].lower() in kinds and not name.startswith(".")
