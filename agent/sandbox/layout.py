"""What a sandbox sees, as bubblewrap's arguments. Pure.

Destinations are constants and no mount point lies below a writable one:
bubblewrap before 0.12 follows a symlink there out of the sandbox
(CVE-2026-87766) while it makes the directories on the way. The one exception are
the git directories of a repository: they are there already, the directories on the
way to them are pinned, and mountinfo.verify_mounts looks before the command starts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

WORKSPACE = "/workspace"
REPOS = "/repos"
REPORT = "/host.txt"
ALTERNATIVES = "/etc/alternatives"  # links to /usr, too many to copy
USER, UID = "voltaire", 1000

WriteAccess = Literal["none", "files", "commit"]
"""What a call may change: nothing; all that is writable but git directories; these too, but not
their settings and hooks."""

SHM_BYTES = 64 << 20
TMP_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class MountedRepo:
    """A repository of the host, `source`, at /repos/`name`.

    Where it may be written to: paths in it that are `closed` all the same, and
    directories that are `pinned`: a mount point can be neither renamed nor removed.
    """

    name: str
    source: str
    write: bool = False
    pinned: Sequence[str] = ()
    closed: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """`system` are directories of an unmerged host (/bin, /lib, ...) beside /usr."""

    root: str
    etc: str
    workspace: str
    environment: Mapping[str, str]
    repos: Sequence[MountedRepo] = ()
    system: Sequence[str] = ()
    access: WriteAccess = "files"

    @property
    def sources(self) -> list[str]:
        """The host's paths that bubblewrap has to reach, besides those of the system."""
        return [self.root, self.etc, self.workspace, *(repo.source for repo in self.repos)]

    def at(self, reachable: Sequence[str]) -> "Layout":
        """The same with another path for each of `sources`."""
        root, etc, workspace, *repos = reachable
        moved = [replace(r, source=path) for r, path in zip(self.repos, repos, strict=True)]
        return replace(self, root=root, etc=etc, workspace=workspace, repos=moved)


@dataclass(frozen=True, slots=True)
class InheritedFds:
    """Descriptors of bubblewrap; with `block` the command waits for a byte before it starts."""

    seccomp: int
    status: int
    report: int
    block: int | None = None


def arguments(layout: Layout, fds: InheritedFds) -> list[str]:
    """Everything before the command, in the order in which it is mounted."""
    # No --hostname: the name is the machine's own already, and a service with ProtectHostname may set none.
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
        "--ro-bind-data", str(fds.report), REPORT,
        "--proc", "/proc", "--dev", "/dev",
        "--perms", "1777", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev",  # noqa: S108 - in the sandbox
        "--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", "/tmp",  # noqa: S108 - in the sandbox
        "--ro-bind" if layout.access == "none" else "--bind", layout.workspace, WORKSPACE,
    ]
    # fmt: on
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
    """A directory comes before what is mounted in it."""
    target = f"{REPOS}/{repo.name}"
    args = ["--bind" if repo.write else "--ro-bind", repo.source, target]
    for path in sorted(repo.pinned):
        args += ["--bind", f"{repo.source}/{path}", f"{target}/{path}"]
    for path in sorted(repo.closed):
        args += ["--ro-bind", f"{repo.source}/{path}", f"{target}/{path}"]
    return args


def nested_mount_points(repos: Sequence[MountedRepo]) -> list[str]:
    """Mount points that lie in directories which commands may change."""
    changing = (repo for repo in repos if repo.pinned)
    return [f"{REPOS}/{r.name}/{path}" for r in changing for path in (*r.pinned, *r.closed)]
