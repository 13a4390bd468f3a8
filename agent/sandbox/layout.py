"""What a sandbox sees, as bubblewrap's arguments. Pure.

Destinations are constants and no mount point lies below a writable one:
bubblewrap before 0.12 follows a symlink there out of the sandbox
(CVE-2026-87766) while it makes the directories on the way. The one exception is
the .git of a repository: nothing on the way to it is the agent's, and it is
there already, a file or a directory and no symlink.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

WORKSPACE = "/workspace"
REPOS = "/repos"
REPORT = "/host.txt"
ALTERNATIVES = "/etc/alternatives"  # links to /usr, too many to copy
USER, UID = "voltaire", 1000

Access = Literal["look", "work", "commit"]
"""What a call may change: nothing; all that is writable but a repository's .git; that as well."""

_DEVICES = ("--dev", "/dev", "--perms", "1777", "--size", str(64 << 20), "--tmpfs", "/dev/shm")  # noqa: S108 - in the sandbox


@dataclass(frozen=True, slots=True)
class Mounted:
    """A repository of the host where bubblewrap can reach it; `git`: it has a .git of its own."""

    name: str
    source: str
    write: bool = False
    git: bool = False


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
    access: Access = "work"
    tmp_bytes: int = field(default=256 << 20)


def arguments(layout: Layout) -> list[str]:
    """Everything before the command, in the order in which it is mounted."""
    return [
        *_walls(layout),
        *_system(layout),
        *("--proc", "/proc", *_DEVICES, "--remount-ro", "/dev"),
        *("--perms", "1777", "--size", str(layout.tmp_bytes), "--tmpfs", "/tmp"),  # noqa: S108 - in the sandbox
        *("--ro-bind" if layout.access == "look" else "--bind", layout.workspace, WORKSPACE),
        *_repos(layout.repos, layout.access),
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


def _repos(repos: Sequence[Mounted], access: Access) -> list[str]:
    if not repos:
        return []
    args = ["--perms", "0755", "--size", "65536", "--tmpfs", REPOS]
    for repo in repos:
        args += _repo(repo, access)
    return [*args, "--remount-ro", REPOS]


def _repo(repo: Mounted, access: Access) -> list[str]:
    """Hooks and settings in a .git run programs when its owner next uses git there."""
    place = f"{REPOS}/{repo.name}"
    if access == "look" or not repo.write:
        return ["--ro-bind", repo.source, place]
    whole = ["--bind", repo.source, place]
    guarded = repo.git and access == "work"
    return [*whole, "--ro-bind", f"{repo.source}/.git", f"{place}/.git"] if guarded else whole


def _environment(environment: Mapping[str, str]) -> list[str]:
    return [part for name, value in environment.items() for part in ("--setenv", name, value)]
