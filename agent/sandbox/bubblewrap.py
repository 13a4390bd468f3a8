"""bubblewrap: its arguments, which decide what a tool's process sees of the file system; whether the
installed program can be used; and remedies for its error messages.

Destinations are constants, and no mount point lies below a writable one: before 0.12 bubblewrap follows
a symlink there out of the sandbox while it makes the directories on the way (CVE-2026-87766). The git
directories of a repository are the one exception: they exist already, the directories on the way to them
are pinned, and verify_mounts checks before the command starts.
"""

import asyncio
import re
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from agent.aio import output_of
from agent.errors import ToolError
from agent.sandbox import seccomp

WORKSPACE = "/workspace"
MADE_UP = "/home/user"  # a link to it: where small models believe that they are
REPOS = "/repos"
HOME = "/tmp"  # noqa: S108 - in the sandbox; empty at the start of each call
REPORT = "/host.txt"
PROGRAMS = "/commands"  # clients of commands that are answered outside (bwrap_process)
LISTING = "/commands.txt"
SKILLS = "/skills"  # in the prepared root (agent.skills)
SOCKETS = "/run/commands"
MODELS = "/models"  # for speech (agent.voice)
PROGRAM = "/program"  # the files of a long-running program
ALTERNATIVES = "/etc/alternatives"  # links to /usr, too many to copy
USER, UID = "voltaire", 1000

WriteAccess = Literal["none", "files", "commit"]
"""What a call may change: nothing; what is writable, except git directories; git directories too, except
their settings and hooks."""

SHM_BYTES = 64 << 20
TMP_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class MountedRepo:
    """A repository of the host, `source`, at /repos/`name`.

    In one that may be written to, `closed` paths are read-only all the same, and `pinned` directories are
    mount points, which can be neither renamed nor removed.
    """

    name: str
    source: str
    write: bool = False
    pinned: Sequence[str] = ()
    closed: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """What a sandbox shows of the host. `system` are directories of an unmerged host (/bin, /lib, ...) beside
    /usr. `folders` are shown read-only, by their paths in the sandbox."""

    root: str
    etc: str
    workspace: str
    environment: Mapping[str, str]
    repos: Sequence[MountedRepo] = ()
    system: Sequence[str] = ()
    access: WriteAccess = "files"
    folders: Mapping[str, str] = field(default_factory=dict)

    @property
    def sources(self) -> list[str]:
        """The host's paths that bubblewrap must be able to reach, besides those of the system."""
        repos = (repo.source for repo in self.repos)
        return [self.root, self.etc, self.workspace, *self.folders.values(), *repos]

    def at(self, reachable: Sequence[str]) -> "Layout":
        """Replace the path of each of `sources` in this layout."""
        root, etc, workspace, *others = reachable
        folders = {place: others.pop(0) for place in self.folders}
        repos = [replace(r, source=path) for r, path in zip(self.repos, others, strict=True)]
        return replace(self, root=root, etc=etc, workspace=workspace, repos=repos, folders=folders)


@dataclass(frozen=True, slots=True)
class InheritedFds:
    """Descriptors that bubblewrap reads. With `block` the command waits for a byte before it starts.

    `texts` are read-only files by their paths, `inputs` files in /tmp by name.
    """

    seccomp: int
    status: int
    texts: Mapping[str, int]
    inputs: Mapping[str, int] = field(default_factory=dict)
    block: int | None = None


def arguments(layout: Layout, fds: InheritedFds) -> list[str]:
    """All arguments before the command, in the order of the mounts."""
    # No --hostname: the name is already the machine's, and a service with ProtectHostname may not set it.
    # fmt: off
    args = [
        "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
        "--unshare-cgroup-try", "--disable-userns", "--uid", str(UID), "--gid", str(UID),
        "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL",
        "--seccomp", str(fds.seccomp), "--json-status-fd", str(fds.status),
        "--ro-bind", layout.root, "/", "--ro-bind", "/usr", "/usr",
    ]
    for directory in layout.system:
        args += ["--ro-bind", directory, directory]
    args += [
        "--ro-bind", layout.etc, "/etc", "--ro-bind-try", ALTERNATIVES, ALTERNATIVES,
        *(part for path, fd in fds.texts.items() for part in ("--ro-bind-data", str(fd), path)),
        *(part for place, path in layout.folders.items() for part in ("--ro-bind", path, place)),
        "--proc", "/proc", "--dev", "/dev",
        "--perms", "1777", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev",  # noqa: S108 - in the sandbox
        "--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", "/tmp",  # noqa: S108 - in the sandbox
        "--ro-bind" if layout.access == "none" else "--bind", layout.workspace, WORKSPACE,
    ]
    # fmt: on
    for name, fd in fds.inputs.items():
        args += ["--file", str(fd), f"/tmp/{name}"]  # noqa: S108 - in the sandbox
    if layout.repos:
        args += ["--perms", "0755", "--size", "65536", "--tmpfs", REPOS]
        for repo in layout.repos:
            args += repo_arguments(repo)
        args += ["--remount-ro", REPOS]
    if fds.block is not None:
        args += ["--block-fd", str(fds.block)]
    args += ["--chdir", WORKSPACE]
    for name, value in layout.environment.items():
        args += ["--setenv", name, value]
    return args


def repo_arguments(repo: MountedRepo) -> list[str]:
    """The mounts of a repository, a directory before those in it."""
    target = f"{REPOS}/{repo.name}"
    args = ["--bind" if repo.write else "--ro-bind", repo.source, target]
    for path in sorted(repo.pinned):
        args += ["--bind", f"{repo.source}/{path}", f"{target}/{path}"]
    for path in sorted(repo.closed):
        args += ["--ro-bind", f"{repo.source}/{path}", f"{target}/{path}"]
    return args


def nested_mount_points(repos: Sequence[MountedRepo]) -> list[str]:
    """Mount points inside directories that commands may change."""
    changing = (repo for repo in repos if repo.pinned)
    return [f"{REPOS}/{r.name}/{path}" for r in changing for path in (*r.pinned, *r.closed)]


OLDEST = (0, 8)  # the first with --disable-userns
VERSION_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """The installed program. `problem` says in a sentence why no tool may run, and what to do; else empty."""

    path: str
    problem: str = ""


async def find(places: str = "/usr/bin:/bin:/usr/local/bin") -> Bubblewrap:
    """The first bwrap in `places`. Only the system's own has the exceptions of its AppArmor profiles."""
    path = shutil.which("bwrap", path=places) or ""
    return Bubblewrap(path, await problem_of(path))


async def problem_of(path: str) -> str:
    """Why the program at `path` ("": there is none) cannot be used; empty when it can."""
    if not path:
        return "bubblewrap is not installed; install the package bubblewrap."
    if Path(path).stat().st_mode & stat.S_ISUID:
        return f"{path} is setuid root, which widens an attack; remove the bit with chmod u-s."
    _, output = await output_of(path, "--version", seconds=VERSION_SECONDS)
    version = tuple(int(n) for n in re.findall(rb"\d+", output)[:2])
    if version < OLDEST:
        name = ".".join(map(str, version)) or "of unknown version"
        return f"bubblewrap {name} is too old; it must be 0.8 or newer (Debian 12, Ubuntu 24.04)."
    try:
        seccomp.program()
    except LookupError:
        return "There is no system call filter for this processor; x86_64 and aarch64 have one."
    return ""


DOCKER = (
    "A container forbids it: start it with --security-opt seccomp=unconfined "
    "--security-opt systempaths=unconfined."
)
APPARMOR = (
    "AppArmor forbids user namespaces: install the profile bwrap-userns-restrict "
    "(package apparmor-profiles: sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict "
    "/etc/apparmor.d/ && sudo systemctl reload apparmor), or one with `userns,` for /usr/bin/bwrap."
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
        "User namespaces are off: sudo sysctl user.max_user_namespaces=65536 and, on Debian, "
        "kernel.unprivileged_userns_clone=1."
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
        "Namespaces are used up or off: sudo sysctl user.max_user_namespaces=65536; if that is "
        "no help, the same with user.max_pid_namespaces and user.max_net_namespaces."
    ),
}


def remedy(message: str) -> str:
    """What to do about a message of bubblewrap; empty for an unknown one."""
    return next((advice for part, advice in REMEDIES.items() if part in message), "")


READY_SECONDS = 10.0  # bubblewrap takes milliseconds
POLL_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo; `device` and `root` identify what is mounted."""

    device: str
    root: str
    options: Sequence[str]
    filesystem: str


def mounts_of(pid: int | str) -> dict[str, Mount]:
    """The topmost mount at each mount point; none when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return {}
    found = {}
    for line in text.splitlines():
        fields, _, source = line.partition(" - ")
        _, _, device, root, point, options = fields.split(" ")[:6]
        filesystem = source.partition(" ")[0]
        found[unescape(point)] = Mount(device, unescape(root), options.split(","), filesystem)
    return found


def unescape(path: str) -> str:
    """Decode the octal escapes of blanks and the like."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), path)


async def verify_mounts(pid: int, ended: "asyncio.Future[str]", points: Sequence[str]) -> None:
    """Wait until everything is mounted or the call `ended`; ToolError where one of `points` shows another path."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            while not ended.done():
                mounts = mounts_of(pid)
                if REPOS in mounts and "ro" in mounts[REPOS].options:
                    break
                await asyncio.sleep(POLL_SECONDS)
            else:
                return
    except TimeoutError:
        raise ToolError("The sandbox was not ready in time, so nothing was run.") from None
    for point in points:
        name, _, path = point.removeprefix(f"{REPOS}/").partition("/")
        top, inner = mounts.get(f"{REPOS}/{name}"), mounts.get(point)
        expected = top and (top.device, f"{top.root.rstrip('/')}/{path}")
        if not inner or (inner.device, inner.root) != expected:
            raise ToolError(f"{point} was changed in this moment, so nothing was run. Try again.")
