"""The prepared `/` and `/etc` of every sandbox, below the state directory.

`/` is a real directory on the state's disk, so that `df -h /` in the sandbox
tells the truth and nothing can be written beside the mounts. `/etc` holds what
programs need to run, and only files that everybody on the host may read.
"""

import os
import shutil
import socket
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox.layout import UID, USER

_DIRECTORIES = ("usr", "etc", "proc", "dev", "tmp", "workspace", "repos", "run")
_UNMERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_COPIED = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mime.types", "magic"),
    *("services", "protocols", "shells", "os-release", "debian_version", "lsb-release"),
    *("inputrc", "fonts", "ssl/openssl.cnf", "ssl/certs/ca-certificates.crt", "ssl/cert.pem"),
    *("pki/tls/certs/ca-bundle.crt", "perl", "gitattributes"),
)
_COPIED_GLOBS = ("python3*", "java-*", "ImageMagick-*")
_GIT = {
    "HEAD": "ref: refs/heads/none\n",
    "config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
}
EMPTY_GIT = "/etc/voltaire/empty.git"  # a repository without a commit, for its ignore rules


@dataclass(frozen=True, slots=True)
class Rootfs:
    """Paths on the host. `system` are directories to mount beside /usr."""

    root: Path
    etc: Path
    system: tuple[str, ...]


def prepare(directory: Path, zone: str) -> Rootfs:
    """Make or refresh both below `directory`; safe beside a running sandbox."""
    root, etc = directory / "root", directory / "etc"
    system = _make_root(root)
    _make_etc(etc, zone)
    return Rootfs(root, etc, system)


def refresh(rootfs: Rootfs) -> None:
    """Follow the host's linker cache, which changes when packages are installed."""
    source, copy = Path("/etc/ld.so.cache"), rootfs.etc / "ld.so.cache"
    if source.exists() and _differs(source, copy):
        _copy(source, copy)


def _make_root(root: Path) -> tuple[str, ...]:
    for name in _DIRECTORIES:
        _directory(root, name)
    (root / "host.txt").touch(0o644)
    system = []
    for name in _UNMERGED:
        host = Path("/", name)
        if host.is_symlink():
            _symlink(str(host.readlink()).lstrip("/"), root / name)
        elif host.is_dir():
            _directory(root, name)
            system.append(str(host))
    return tuple(system)


def _make_etc(etc: Path, zone: str) -> None:
    for name, text in _written(zone).items():
        _write(etc / name, text)
    _symlink(f"/usr/share/zoneinfo/{zone}", etc / "localtime")
    for name in _GIT:
        _write(etc / "voltaire/empty.git" / name, _GIT[name])
    for name in ("objects", "refs"):
        _directory(etc, f"voltaire/empty.git/{name}")
    _directory(etc, "alternatives")
    for source in _sources():
        _copy(source, etc / source.relative_to("/etc"))


def _written(zone: str) -> dict[str, str]:
    host = socket.gethostname()
    return {
        "passwd": (
            "root:x:0:0:root:/root:/usr/sbin/nologin\n"
            f"{USER}:x:{UID}:{UID}:Voltaire:/tmp:/bin/bash\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        ),
        "group": f"root:x:0:\n{USER}:x:{UID}:\nnogroup:x:65534:\n",
        "hosts": f"127.0.0.1 localhost {host}\n::1 localhost\n",
        "hostname": f"{host}\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\n",
        "timezone": f"{zone}\n",
        "gitconfig": "",
    }


def _sources() -> Iterable[Path]:
    etc = Path("/etc")
    yield from (etc / name for name in _COPIED if (etc / name).exists())
    for pattern in _COPIED_GLOBS:
        yield from etc.glob(pattern)


def _copy(source: Path, target: Path) -> None:
    """Replace each file in one step; leave out what not everybody may read."""
    if source.is_symlink() and str(source.readlink()).startswith("/usr/"):
        _symlink(str(source.readlink()), target)
    elif source.is_dir():
        for child in source.iterdir():
            _copy(child, target / child.name)
    elif _public(source) and _differs(source, target):
        _parent(target)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copyfile(source, partial)
        shutil.copystat(source, partial)
        partial.chmod(0o644)
        partial.replace(target)


def _public(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:  # a dangling link
        return False
    return stat.S_ISREG(mode) and bool(mode & stat.S_IROTH)


def _differs(source: Path, copy: Path) -> bool:
    try:
        ours, theirs = copy.stat(), source.stat()
    except OSError:
        return True
    return (ours.st_size, int(ours.st_mtime)) != (theirs.st_size, int(theirs.st_mtime))


def _write(path: Path, text: str) -> None:
    if path.is_file() and path.read_text() == text:
        return
    _parent(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text)
    partial.chmod(0o644)
    partial.replace(path)


def _symlink(target: str, link: Path) -> None:
    if link.is_symlink() and str(link.readlink()) == target:
        return
    _parent(link)
    partial = link.with_name(f".{link.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    partial.symlink_to(target)
    partial.replace(link)


def _parent(path: Path) -> None:
    missing = [p for p in path.parents if not p.exists()]
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
        directory.chmod(0o755)


def _directory(base: Path, name: str) -> None:
    path = base / name
    _parent(path / "x")
