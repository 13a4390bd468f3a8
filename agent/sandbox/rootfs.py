"""The prepared `/` and `/etc` of every sandbox, below the state directory.

`/` is a real directory on the state's disk, so that `df -h /` in the sandbox shows the real disk and nothing
can be written beside the mounts. `/etc` holds what programs need to run, and only files that are
world-readable on the host.
"""

import os
import shutil
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.files import replacing
from agent.sandbox.bubblewrap import LISTING, MADE_UP, PROGRAMS, REPORT, UID, USER, WORKSPACE

DIRECTORIES = (
    *("usr", "etc", "proc", "dev", "tmp", "run", "run/commands"),
    *("workspace", "repos", "skills", "program", "models"),
)
UNMERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
COPIED = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mime.types", "magic"),
    *("services", "protocols", "shells", "os-release", "debian_version", "lsb-release"),
    *("inputrc", "fonts", "ssl/openssl.cnf", "ssl/certs/ca-certificates.crt", "ssl/cert.pem"),
    *("pki/tls/certs/ca-bundle.crt", "perl", "gitattributes"),
)
COPIED_GLOBS = ("python3*", "java-*", "ImageMagick-*")


@dataclass(frozen=True, slots=True)
class Rootfs:
    """The sandbox's / and /etc, as paths on the host. `system` are directories to mount beside /usr."""

    root: Path
    etc: Path
    system: tuple[str, ...]


def prepare(directory: Path, zone: str, programs: Mapping[str, str]) -> Rootfs:
    """Make or refresh / and /etc below `directory`, also while a sandbox runs. `programs` are the scripts of
    /commands, by name."""
    root, etc = directory / "root", directory / "etc"
    make_etc(etc, zone)
    system = make_root(root)
    make_programs(root / PROGRAMS[1:], programs)
    return Rootfs(root, etc, system)


def refresh(rootfs: Rootfs) -> None:
    """Copy the host's linker cache again, which changes when packages are installed."""
    source, copy = Path("/etc/ld.so.cache"), rootfs.etc / "ld.so.cache"
    if source.exists() and differs(source, copy):
        copy_public(source, copy)


def make_root(root: Path) -> tuple[str, ...]:
    """Make `/`. Returns those of /bin, /lib, ... that are no links into /usr here, and are to be mounted, too."""
    for name in DIRECTORIES:
        make_directory(root / name)
    for path in (REPORT, LISTING):
        (root / path[1:]).touch(0o644)
    symlink(WORKSPACE, root / MADE_UP[1:])
    system = []
    for name in UNMERGED:
        host = Path("/", name)
        if host.is_symlink():
            symlink(str(host.readlink()).lstrip("/"), root / name)
        elif host.is_dir():
            make_directory(root / name)
            system.append(str(host))
    return tuple(system)


def make_programs(folder: Path, programs: Mapping[str, str]) -> None:
    make_directory(folder)
    for name, text in programs.items():
        write(folder / name, text, 0o755)
    for gone in {path.name for path in folder.iterdir()} - set(programs):
        (folder / gone).unlink(missing_ok=True)


def make_etc(etc: Path, zone: str) -> None:
    host = socket.gethostname()
    texts = {
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
        # Debian's matplotlib does not start without one, and its own would open windows.
        "matplotlibrc": "backend: Agg\n",
        # An empty repository, so that git applies ignore rules anywhere (tools/search.sh).
        "voltaire/empty.git/HEAD": "ref: refs/heads/none\n",
        "voltaire/empty.git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
    }
    for name, text in texts.items():
        write(etc / name, text)
    for name in ("voltaire/empty.git/objects", "voltaire/empty.git/refs", "alternatives"):
        make_directory(etc / name)
    symlink(f"/usr/share/zoneinfo/{zone}", etc / "localtime")
    copied = [Path("/etc", name) for name in COPIED if Path("/etc", name).exists()]
    copied += [path for pattern in COPIED_GLOBS for path in Path("/etc").glob(pattern)]
    for source in copied:
        copy_public(source, etc / source.relative_to("/etc"))


def copy_public(source: Path, target: Path) -> None:
    """Copy a file, or a directory with all in it, if it is world-readable."""
    if source.is_symlink() and str(source.readlink()).startswith("/usr/"):
        symlink(str(source.readlink()), target)
    elif source.is_dir():
        for child in source.iterdir():
            copy_public(child, target / child.name)
    elif is_public_file(source) and differs(source, target):
        with replacing_public(target) as partial:
            shutil.copyfile(source, partial)
            shutil.copystat(source, partial)
            partial.chmod(0o644)


def is_public_file(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:  # a dangling link
        return False
    return stat.S_ISREG(mode) and bool(mode & stat.S_IROTH)


def differs(source: Path, copy: Path) -> bool:
    try:
        ours, theirs = copy.stat(), source.stat()
    except OSError:
        return True
    return (ours.st_size, int(ours.st_mtime)) != (theirs.st_size, int(theirs.st_mtime))


def write(path: Path, text: str, mode: int = 0o644) -> None:
    if not path.is_file() or path.read_text() != text:
        with replacing_public(path) as partial:
            partial.write_text(text)
            partial.chmod(mode)


def symlink(target: str, link: Path) -> None:
    if not link.is_symlink() or str(link.readlink()) != target:
        with replacing_public(link) as partial:
            partial.unlink(missing_ok=True)
            partial.symlink_to(target)


@contextmanager
def replacing_public(path: Path) -> Iterator[Path]:
    make_directory(path.parent)
    with replacing(path, suffix=str(os.getpid())) as partial:
        yield partial


def make_directory(path: Path) -> None:
    """Make a directory with its parents, world-readable whatever the umask."""
    if not path.exists():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        path.chmod(0o755)
