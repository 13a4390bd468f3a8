"""Whether the walls that the unit of the bot asks for stand around this process.

python -m tests.attacks.hardening    prints each that does not, and "N of N stand"

What is tried succeeds for any ordinary user without the unit, so a wall that was
not built is seen. Numbers of system calls are those of x86_64 and aarch64.
"""

import ctypes
import errno
import os
import platform
import resource
import socket
import sys
from collections.abc import Callable
from pathlib import Path

_ADDR_NO_RANDOMIZE = 0x0040000
_PTRACE, _PERSONALITY = (101, 135) if platform.machine() == "x86_64" else (117, 92)
_PEEK = 2  # for a process that is not traced: no such process

_libc = ctypes.CDLL(None, use_errno=True)


def _status(name: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def _refused(number: int, *arguments: int) -> bool:
    return _libc.syscall(number, *arguments) == -1 and ctypes.get_errno() == errno.EPERM


def _family(family: int) -> bool:
    try:
        socket.socket(family, socket.SOCK_DGRAM).close()
    except OSError as error:
        return error.errno == errno.EAFNOSUPPORT
    return False


def _read_only(path: str) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _own_mount(path: str) -> bool:
    return Path(path).stat().st_dev != Path("/").stat().st_dev


def _private_tmp() -> bool:
    mounts = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return any("systemd-private-" in m[3] and m[4] == "/tmp" for m in mounts)


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


WALLS: dict[str, Callable[[], bool]] = {
    "User": lambda: os.geteuid() != 0,
    "UMask": lambda: _mask() == 0o077,
    "LimitCORE": lambda: resource.getrlimit(resource.RLIMIT_CORE) == (0, 0),
    "NoNewPrivileges": lambda: _status("NoNewPrivs") == "1",
    "CapabilityBoundingSet": lambda: not int(_status("CapBnd"), 16),
    "SystemCallFilter": lambda: _refused(_PTRACE, _PEEK, os.getpid(), 0, 0),
    "LockPersonality": lambda: _refused(_PERSONALITY, _ADDR_NO_RANDOMIZE),
    "RestrictAddressFamilies": lambda: _family(socket.AF_VSOCK),
    "ProtectSystem": lambda: all(map(_read_only, ("/usr", "/etc", "/"))),
    "ProtectHome": lambda: all(map(_own_mount, ("/home", "/root"))),
    "PrivateTmp": _private_tmp,
    "PrivateDevices": lambda: bool(os.statvfs("/dev").f_flag & os.ST_NOEXEC),
}  # fmt: skip


def main() -> int:
    missing = [name for name, stands in WALLS.items() if not stands()]
    for name in missing:
        print(f"{name}: not in force")
    print(f"{len(WALLS) - len(missing)} of {len(WALLS)} walls of the unit stand", flush=True)
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
