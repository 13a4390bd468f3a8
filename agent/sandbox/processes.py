"""What the processes of a call use, read from /proc. What has ended uses nothing."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def tree(init: int) -> Iterator[int]:
    """The init and all that descends from it; orphans become its children."""
    found = [init]
    while found:
        pid = found.pop()
        yield pid
        found += _children(pid)


def resident(pids: list[int]) -> int:
    """Bytes in memory; pages that processes share count for each."""
    fields = (_text(pid, "statm").split() for pid in pids)
    return sum(int(of_pid[1]) for of_pid in fields if of_pid) * _PAGE


def proportional(pids: list[int]) -> int:
    """Bytes in memory and swap; each page counts once."""
    names = ("Pss:", "SwapPss:")
    lines = (line for pid in pids for line in _text(pid, "smaps_rollup").splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith(names)) * 1024


def written(pids: list[int]) -> int:
    """Bytes that they gave to disks, their ended children's included."""
    lines = (line for pid in pids for line in _text(pid, "io").splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("write_bytes:"))


def deleted(pids: list[int], beside: Path) -> int:
    """Bytes of files on the filesystem of `beside` that have no name any more and that they hold open.

    Not told by st_dev: an overlay shows another one for files than for directories.
    """
    filesystem = os.statvfs(beside).f_fsid
    sizes: dict[int, int] = {}
    for pid in pids:
        for link, file in _open_files(pid):
            if not file.st_nlink and stat.S_ISREG(file.st_mode) and _is_on(link, filesystem):
                sizes[file.st_ino] = file.st_blocks * 512
    return sum(sizes.values())


def _children(pid: int) -> list[int]:
    try:
        threads = [path.name for path in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []
    return [int(c) for t in threads for c in _text(pid, f"task/{t}/children").split()]


def _is_on(path: Path, filesystem: int) -> bool:
    try:
        return os.statvfs(path).f_fsid == filesystem
    except OSError:
        return False


def _open_files(pid: int) -> Iterator[tuple[Path, os.stat_result]]:
    try:
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return
    for link in links:
        try:
            yield link, link.stat()
        except OSError:
            continue


def _text(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""
