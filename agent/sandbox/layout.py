"""What a sandbox sees, as bubblewrap's arguments. Pure.

Destinations are constants and no mount point lies below a writable one:
bubblewrap before 0.12 follows a symlink there out of the sandbox
(CVE-2026-87766).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

WORKSPACE = "/workspace"
REPOS = "/repos"
REPORT = "/host.txt"
ALTERNATIVES = "/etc/alternatives"  # links to /usr, too many to copy
USER, UID = "voltaire", 1000

_DEVICES = ("--dev", "/dev", "--perms", "1777", "--size", str(64 << 20), "--tmpfs", "/dev/shm")  # noqa: S108 - in the sandbox


@dataclass(frozen=True, slots=True)
class Mounted:
    """A repository of the host where bubblewrap can reach it."""

    name: str
    source: str
    write: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """Sources are paths on the host; `*_fd` are descriptors that bubblewrap inherits;
    with `block_fd` the command waits for a byte before it starts.

    `system` are directories of an unmerged host (/bin, /lib, ...) beside /usr.
    """

    root: str
    etc: str
    workspace: str
    hostname: str
    environment: Mapping[str, str]
    seccomp_fd: int
    status_fd: int
    report_fd: int
    repos: Sequence[Mounted] = ()
    system: Sequence[str] = ()
    block_fd: int | None = None
    read_only: bool = False
    tmp_bytes: int = field(default=256 << 20)


def arguments(layout: Layout) -> list[str]:
    """Everything before the command, in the order in which it is mounted."""
    return [
        *_walls(layout),
        *_system(layout),
        *("--proc", "/proc", *_DEVICES, "--remount-ro", "/dev"),
        *("--perms", "1777", "--size", str(layout.tmp_bytes), "--tmpfs", "/tmp"),  # noqa: S108 - in the sandbox
        *("--ro-bind" if layout.read_only else "--bind", layout.workspace, WORKSPACE),
        *_repos(layout.repos),
        *(("--block-fd", str(layout.block_fd)) if layout.block_fd is not None else ()),
        *("--chdir", WORKSPACE),
        *_environment(layout.environment),
    ]


def _walls(layout: Layout) -> list[str]:
    # fmt: off
    return [
        "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
        "--unshare-cgroup-try", "--disable-userns", "--uid", str(UID), "--gid", str(UID),
        "--hostname", layout.hostname, "--die-with-parent", "--new-session", "--clearenv",
        "--cap-drop", "ALL", "--seccomp", str(layout.seccomp_fd),
        "--json-status-fd", str(layout.status_fd),
    ]
    # fmt: on


def _system(layout: Layout) -> list[str]:
    args = ["--ro-bind", layout.root, "/", "--ro-bind", "/usr", "/usr"]
    for directory in layout.system:
        args += ["--ro-bind", directory, directory]
    args += ["--ro-bind", layout.etc, "/etc", "--ro-bind-try", ALTERNATIVES, ALTERNATIVES]
    return [*args, "--ro-bind-data", str(layout.report_fd), REPORT]


def _repos(repos: Sequence[Mounted]) -> list[str]:
    if not repos:
        return []
    args = ["--perms", "0755", "--size", "65536", "--tmpfs", REPOS]
    for repo in repos:
        args += ["--bind" if repo.write else "--ro-bind", repo.source, f"{REPOS}/{repo.name}"]
    return [*args, "--remount-ro", REPOS]


def _environment(environment: Mapping[str, str]) -> list[str]:
    return [part for name, value in environment.items() for part in ("--setenv", name, value)]
