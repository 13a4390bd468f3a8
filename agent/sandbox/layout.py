"""What a sandbox sees, as bubblewrap's arguments. Pure.

Destinations are constants and no mount point lies below a writable one:
bubblewrap before 0.12 follows a symlink there out of the sandbox
(CVE-2026-87766) while it makes the directories on the way. The one exception are
the git directories of a repository: they are there already, the directories on the
way to them are pinned, and mountinfo.verified looks before the command starts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

WORKSPACE = "/workspace"
REPOS = "/repos"
REPORT = "/host.txt"
ALTERNATIVES = "/etc/alternatives"  # links to /usr, too many to copy
USER, UID = "voltaire", 1000

WriteAccess = Literal["look", "work", "commit"]
"""What a call may change: nothing; all that is writable but git directories; these too, but for their
settings."""

_DEVICES = ("--dev", "/dev", "--perms", "1777", "--size", str(64 << 20), "--tmpfs", "/dev/shm")  # noqa: S108 - in the sandbox


@dataclass(frozen=True, slots=True)
class MountedRepo:
    """A repository of the host where bubblewrap can reach it.

    Where it may be written to, paths in it that are `closed` all the same, and
    directories that are `pinned`: a mount point can be neither renamed nor removed.
    """

    name: str
    source: str
    write: bool = False
    pinned: Sequence[str] = ()
    closed: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Sources are paths on the host; `*_fd` are descriptors that bubblewrap inherits;
    with `block_fd` the command waits for a byte before it starts.

    `system` are directories of an unmerged host (/bin, /lib, ...) beside /usr.
    """

    root: str
    etc: str
    workspace: str
    environment: Mapping[str, str]
    seccomp_fd: int
    status_fd: int
    report_fd: int
    repos: Sequence[MountedRepo] = ()
    system: Sequence[str] = ()
    block_fd: int | None = None
    access: WriteAccess = "work"
    tmp_bytes: int = field(default=256 << 20)


def arguments(layout: Layout) -> list[str]:
    """Everything before the command, in the order in which it is mounted."""
    return [
        *_walls(layout),
        *_system(layout),
        *("--proc", "/proc", *_DEVICES, "--remount-ro", "/dev"),
        *("--perms", "1777", "--size", str(layout.tmp_bytes), "--tmpfs", "/tmp"),  # noqa: S108 - in the sandbox
        *("--ro-bind" if layout.access == "look" else "--bind", layout.workspace, WORKSPACE),
        *_repos(layout.repos),
        *(("--block-fd", str(layout.block_fd)) if layout.block_fd is not None else ()),
        *("--chdir", WORKSPACE),
        *_environment(layout.environment),
    ]


def _walls(layout: Layout) -> list[str]:
    """No --hostname: the name is the machine's own already, and a service with ProtectHostname may set none."""
    # fmt: off
    return [
        "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
        "--unshare-cgroup-try", "--disable-userns", "--uid", str(UID), "--gid", str(UID),
        "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL",
        "--seccomp", str(layout.seccomp_fd), "--json-status-fd", str(layout.status_fd),
    ]
    # fmt: on


def _system(layout: Layout) -> list[str]:
    args = ["--ro-bind", layout.root, "/", "--ro-bind", "/usr", "/usr"]
    for directory in layout.system:
        args += ["--ro-bind", directory, directory]
    args += ["--ro-bind", layout.etc, "/etc", "--ro-bind-try", ALTERNATIVES, ALTERNATIVES]
    return [*args, "--ro-bind-data", str(layout.report_fd), REPORT]


def _repos(repos: Sequence[MountedRepo]) -> list[str]:
    if not repos:
        return []
    args = ["--perms", "0755", "--size", "65536", "--tmpfs", REPOS]
    for repo in repos:
        args += _repo(repo)
    return [*args, "--remount-ro", REPOS]


def _repo(repo: MountedRepo) -> list[str]:
    """What is above comes first."""
    place = f"{REPOS}/{repo.name}"
    args = ["--bind" if repo.write else "--ro-bind", repo.source, place]
    for path in sorted(repo.pinned):
        args += ["--bind", f"{repo.source}/{path}", f"{place}/{path}"]
    for path in sorted(repo.closed):
        args += ["--ro-bind", f"{repo.source}/{path}", f"{place}/{path}"]
    return args


def inner_points(repos: Sequence[MountedRepo]) -> list[str]:
    """Mount points that lie in directories which commands may change."""
    changing = (repo for repo in repos if repo.pinned)
    return [f"{REPOS}/{r.name}/{path}" for r in changing for path in (*r.pinned, *r.closed)]


def _environment(environment: Mapping[str, str]) -> list[str]:
    return [part for name, value in environment.items() for part in ("--setenv", name, value)]
