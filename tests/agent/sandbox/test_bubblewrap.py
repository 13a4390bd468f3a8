"""bubblewrap's arguments, whole."""

from dataclasses import replace
from itertools import pairwise

from agent.sandbox.bubblewrap import (
    SOCKETS,
    InheritedFds,
    Layout,
    MountedRepo,
    arguments,
    nested_mount_points,
)

LAYOUT = Layout(
    root="/s/root",
    etc="/s/etc",
    workspace="/s/chats/cli/work",
    environment={"HOME": "/tmp"},
)
FDS = InheritedFds(seccomp=7, status=8, texts={"/host.txt": 9})


def test_the_whole_line() -> None:
    assert " ".join(arguments(LAYOUT, FDS)) == (
        "--unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts "
        "--unshare-cgroup-try --disable-userns --uid 1000 --gid 1000 "
        "--die-with-parent --new-session --clearenv --cap-drop ALL --seccomp 7 --json-status-fd 8 "
        "--ro-bind /s/root / --ro-bind /usr /usr --ro-bind /s/etc /etc "
        "--ro-bind-try /etc/alternatives /etc/alternatives "
        "--ro-bind-data 9 /host.txt --proc /proc --dev /dev "
        "--perms 1777 --size 67108864 --tmpfs /dev/shm --remount-ro /dev "
        "--perms 1777 --size 268435456 --tmpfs /tmp --bind /s/chats/cli/work /workspace "
        "--chdir /workspace --setenv HOME /tmp"
    )


def test_files_and_the_socket_of_a_call_come_before_what_can_be_written() -> None:
    fds = replace(FDS, texts={"/host.txt": 9, "/commands.txt": 10}, inputs={"page.pdf": 11})
    line = " ".join(arguments(replace(LAYOUT, folders={SOCKETS: "/s/calls/1"}), fds))
    assert "--ro-bind-data 10 /commands.txt --ro-bind /s/calls/1 /run/commands --proc" in line
    assert "--tmpfs /tmp --bind /s/chats/cli/work /workspace --file 11 /tmp/page.pdf " in line


def test_the_hosts_paths_are_replaced_by_reachable_ones() -> None:
    layout = replace(
        LAYOUT, folders={SOCKETS: "/s/calls/1"}, repos=[MountedRepo("site", "/srv/site")]
    )
    assert layout.sources == ["/s/root", "/s/etc", "/s/chats/cli/work", "/s/calls/1", "/srv/site"]
    moved = layout.at(["/m/0", "/m/1", "/m/2", "/m/3", "/m/4"])
    assert moved.sources == ["/m/0", "/m/1", "/m/2", "/m/3", "/m/4"] and moved.folders == {
        SOCKETS: "/m/3"
    }
    assert LAYOUT.at(["/m/0", "/m/1", "/m/2"]).folders == {}


def test_without_write_access_the_workspace_is_read_only() -> None:
    args = arguments(replace(LAYOUT, access="none"), FDS)
    assert args[args.index("/workspace") - 2] == "--ro-bind"


def test_repositories_stand_on_a_directory_that_is_closed() -> None:
    repos = [MountedRepo("site", "/srv/site"), MountedRepo("app", "/srv/app", write=True)]
    line = " ".join(arguments(replace(LAYOUT, repos=repos), FDS))
    assert (
        "--perms 0755 --size 65536 --tmpfs /repos --ro-bind /srv/site /repos/site "
        "--bind /srv/app /repos/app --remount-ro /repos"
    ) in line


def test_ways_to_git_directories_are_pinned_before_these_are_closed() -> None:
    repos = [MountedRepo("app", "/srv/app", True, ["lib/a", "lib"], ["lib/a/.git", ".git"])]
    line = " ".join(arguments(replace(LAYOUT, repos=repos), FDS))
    assert (
        "--bind /srv/app /repos/app "
        "--bind /srv/app/lib /repos/app/lib --bind /srv/app/lib/a /repos/app/lib/a "
        "--ro-bind /srv/app/.git /repos/app/.git "
        "--ro-bind /srv/app/lib/a/.git /repos/app/lib/a/.git --remount-ro /repos"
    ) in line
    assert nested_mount_points(repos) == [
        *("/repos/app/lib/a", "/repos/app/lib"),
        *("/repos/app/lib/a/.git", "/repos/app/.git"),
    ]


def test_directories_beside_usr_and_a_command_that_waits() -> None:
    line = " ".join(arguments(replace(LAYOUT, system=["/bin", "/lib"]), replace(FDS, block=5)))
    assert "--ro-bind /bin /bin --ro-bind /lib /lib" in line
    assert "--block-fd 5" in line


def test_no_mount_point_but_git_lies_below_a_writable_one() -> None:
    repos = [
        MountedRepo("app", "/srv/app", True, closed=[".git"]),
        MountedRepo("lib", "/srv/lib", write=True),
    ]
    args = arguments(replace(LAYOUT, repos=repos), FDS)
    writable = [d for verb, _, d in zip(args, args[1:], args[2:], strict=False) if verb == "--bind"]
    takes_one = ("--proc", "--dev", "--tmpfs", "--dir")
    points = [d for verb, d in pairwise(args) if verb in takes_one]
    points += [
        d
        for verb, _, d in zip(args, args[1:], args[2:], strict=False)
        if verb in ("--bind", "--ro-bind", "--ro-bind-try", "--ro-bind-data")
    ]
    assert writable == ["/workspace", "/repos/app", "/repos/lib"]
    assert [p for p in points for w in writable if p.startswith(f"{w}/")] == ["/repos/app/.git"]
