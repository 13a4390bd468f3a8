"""The bubblewrap of this machine: whether it can be used, and what its complaints mean."""

import asyncio
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox import seccomp

OLDEST = (0, 8)  # the first with --disable-userns
VERSION_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """`problem` is one sentence when no tool may run, with what to do; else empty."""

    path: str
    problem: str = ""


async def find(places: str = "/usr/bin:/bin:/usr/local/bin") -> Bubblewrap:
    """The first in `places`; a vendored one would lack the exceptions that systems make for theirs."""
    path = shutil.which("bwrap", path=places)
    if path is None:
        return Bubblewrap("", "bubblewrap is not installed; install the package bubblewrap.")
    if Path(path).stat().st_mode & stat.S_ISUID:
        problem = f"{path} is setuid root, which widens an attack; remove the bit with chmod u-s."
        return Bubblewrap(path, problem)
    version = await version_of(path)
    if version < OLDEST:
        name = ".".join(map(str, version)) or "of unknown version"
        problem = (
            f"bubblewrap {name} is too old; it must be 0.8 or newer (Debian 12, Ubuntu 24.04)."
        )
        return Bubblewrap(path, problem)
    try:
        seccomp.program()
    except LookupError:
        problem = "There is no system call filter for this processor; x86_64 and aarch64 have one."
        return Bubblewrap(path, problem)
    return Bubblewrap(path)


async def version_of(path: str) -> tuple[int, ...]:
    """Major and minor number; empty where it does not say."""
    process = await asyncio.create_subprocess_exec(
        path, "--version", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    async with asyncio.timeout(VERSION_SECONDS):
        output, _ = await process.communicate()
    return tuple(int(n) for n in re.findall(rb"\d+", output)[:2])


DOCKER = (
    "A container forbids it: start it with --security-opt seccomp=unconfined "
    "--security-opt systempaths=unconfined."
)
APPARMOR = (
    "AppArmor forbids user namespaces: install the profile bwrap-userns-restrict "
    "(package apparmor-profiles), or one with `userns,` for /usr/bin/bwrap."
)
REMEDIES = {
    "setting up uid map: Permission denied": APPARMOR,
    "Failed RTM_NEWADDR": APPARMOR,
    "Failed to make / slave": "The service's SystemCallFilter must allow @mount.",
    "NETLINK_ROUTE socket": "The service's RestrictAddressFamilies must allow AF_NETLINK.",
    "Can't mount proc": (
        "Something masks parts of /proc: in a systemd unit leave out ProtectKernelTunables, "
        f"ProtectKernelLogs and ProcSubset. {DOCKER}"
    ),
    "max_user_namespaces": (
        "User namespaces are off: set the sysctls user.max_user_namespaces above 0 and, on "
        "Debian, kernel.unprivileged_userns_clone to 1."
    ),
    "No permissions to creat": (
        "User namespaces are off: in a systemd unit leave out RestrictNamespaces; else set the "
        "sysctls user.max_user_namespaces above 0 and, on Debian, kernel.unprivileged_userns_clone "
        f"to 1. {DOCKER}"
    ),
    "unprivileged server: [Errno 1]": (
        "Root of this container may not make mounts; run as an ordinary user, or give it "
        f"CAP_SYS_ADMIN. {DOCKER}"
    ),
    "Creating new namespace failed": (
        "Namespaces are used up or off: look at the sysctls user.max_user_namespaces, "
        "user.max_pid_namespaces and user.max_net_namespaces."
    ),
}


def remedy(message: str) -> str:
    """What to do about bubblewrap's message; empty where it is not a known one."""
    return next((advice for part, advice in REMEDIES.items() if part in message), "")
