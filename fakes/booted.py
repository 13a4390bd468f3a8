"""A real systemd as process 1, in namespaces of its own on a copy of this machine's files that goes away.

Its `/` is an overlay of ours, so that units, users and state made there are made
there alone; of our units none is started. Its network is empty. Needs root.
"""

import asyncio
import os
import secrets
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

CODE = Path(__file__).resolve().parents[1]
SHARED = Path("/run/shared")  # inside: the folder that both see
CHANGED = Path(
    "/run/changed/root"
)  # inside: what was made there, and (as devices) what was deleted
SECONDS = 300.0  # a busy machine; else two

_NAMESPACES = ("--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup")

# $1 is the shared folder, the rest are directories of ours that the overlay of / may not hold.
_BOOT = r"""
set -eu
shared=$1; shift
mount --make-rprivate /
base=$shared/base; root=$base/root
mkdir "$base"; mount -t tmpfs -o mode=755 tmpfs "$base"
mkdir "$base/upper" "$base/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" "$root"
for code in "$@"; do mkdir -p "$root$code"; mount -o bind,ro "$code" "$root$code"; done
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts" "$root/run/shared"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount --bind "$shared" "$root/run/shared"
mkdir -m 700 "$root/run/changed"; mkdir "$root/run/changed/root"
mount --bind "$base/upper" "$root/run/changed/root"
rm -rf "$root"/usr/lib/systemd/system/*.wants "$root"/etc/systemd/system/*
printf '[Unit]\n' > "$root/etc/systemd/system/alone.target"
ip link set lo up 2>/dev/null || true
cd "$root"; mkdir .ours; pivot_root . .ours; umount -l /.ours
mount --make-rshared /  # as where systemd finds no container: credentials are mounted that way
exec env -i container=voltaire NOTIFY_SOCKET=/run/shared/notify /lib/systemd/systemd \
    --system --unit=alone.target --log-target=console --show-status=no
"""


@dataclass(frozen=True, slots=True)
class Booted:
    """`init` is its process 1 as we number it; `shared` is at SHARED inside."""

    init: int
    shared: Path

    async def run(self, *words: str, seconds: float = SECONDS) -> tuple[int, str]:
        """A command as its root: exit code and what it printed."""
        inside = ["nsenter", "--target", str(self.init), *_NAMESPACES, "--wd"]
        process = await asyncio.create_subprocess_exec(
            *(*inside, "--", *words),
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(seconds):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode or 0, said.decode("utf-8", "replace")


async def lacking(*, alone: bool = False) -> str:
    """Why no systemd can be booted here; empty where one can be. `alone` as in `booted`."""
    if os.geteuid():
        return "only root can boot a systemd of its own"
    if not alone and any(code.is_relative_to("/tmp") for code in _code()):
        return "our units have a /tmp of their own, and this program lies in /tmp"
    if not Path("/lib/systemd/systemd").exists() or not shutil.which("nsenter"):
        return "systemd or util-linux is not installed"
    try:
        with _group():
            return await _refused()
    except OSError as error:
        return f"no cgroup can be made here: {error}"


async def _refused() -> str:
    trial = "mount -t tmpfs none /mnt && cd /mnt && mkdir u w r && mount -t overlay none -o lowerdir=/,upperdir=u,workdir=w r"
    process = await asyncio.create_subprocess_exec(
        *("unshare", *_NAMESPACES, "--fork", "--propagation", "private", "sh", "-c", trial),
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    return said.decode().strip() if process.returncode else ""


@asynccontextmanager
async def booted(shared: Path, *, alone: bool = False) -> AsyncIterator[Booted]:
    """Boot; on leaving, all of its processes are gone. `shared` is a folder with a short path.

    The program that runs now is at its own path inside, read-only, unless it is to be `alone`.
    """
    with _group() as group, ExitStack() as waiting:
        notified = waiting.enter_context(_notified(shared))
        async with _process(group, shared, [] if alone else _code()) as process:
            async with asyncio.timeout(SECONDS):
                while b"READY=1" not in await asyncio.get_running_loop().sock_recv(notified, 4096):
                    pass
            waiting.close()  # it says more later, and would wait for ever for somebody to read it
            yield Booted(_child(process.pid), shared)


@asynccontextmanager
async def _process(
    group: Path, shared: Path, code: Sequence[Path]
) -> AsyncIterator["asyncio.subprocess.Process"]:
    unshare = [
        *("setpriv", "--pdeathsig", "KILL", "unshare", *_NAMESPACES, "--fork", "--kill-child"),
        *("bash", "-c", _BOOT, "boot"),
    ]
    join = ["sh", "-c", 'echo 0 > "$0/cgroup.procs" && exec "$@"', str(group)]
    with (shared / "console").open("wb") as console:
        process = await asyncio.create_subprocess_exec(
            *(*join, *unshare, str(shared), *map(str, code)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=console,
            stderr=console,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # its process 1 takes all others with it
            os.kill(_child(process.pid) or process.pid, signal.SIGKILL)
        await process.wait()


def _code() -> list[Path]:
    """The program and its Python, wherever they are mounted."""
    places = {CODE, Path(sys.prefix), Path(sys.base_prefix).resolve()}
    return sorted(p for p in places if not any(p != q and p.is_relative_to(q) for q in places))


@contextmanager
def _notified(shared: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ours:
        ours.bind(str(shared / "notify"))
        ours.setblocking(False)
        yield ours


@contextmanager
def _group() -> Iterator[Path]:
    """A cgroup for all of it, at the top, where controllers are."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    roots = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    if not roots:
        raise FileNotFoundError("there is no unified cgroup hierarchy")
    path = roots[0] / f"voltaire-boot-{secrets.token_hex(4)}"
    path.mkdir()
    try:
        yield path
    finally:
        for directory, _, _ in os.walk(path, topdown=False):
            Path(directory).rmdir()


def _child(pid: int) -> int:
    """0: it has none."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else 0
