"""The git directories in a repository of the host, found by their content and not by their name.

Their settings name programs, and their hooks are programs, which the owner's next git runs outside of the
sandbox. git takes for a repository what has HEAD and refs, or HEAD and a file commondir that leads to these;
a file .git leads to one. git also enters what its index calls a submodule, without checking whether that
was replaced or who owns it (measured with git 2.39).

`find_guard` finds them before a call, so that they are mounted read-only. `disable_new` looks again after it:
a git directory that was made meanwhile loses its HEAD, unless it has no hooks and only settings that
git init and git clone write. Directories that did not change are not read again.
"""

import os
import re
import shutil
import stat
import struct
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath

from agent.sandbox import openat2
from agent.sandbox.openat2 import closing_fd

MOST_DIRECTORIES = 100_000  # in a repository that may be written to
MOST_NAMES = 200_000  # in one directory
MOST_CLOSED = 200
SETTLED_NS = 1_000_000_000
MOST_SETTINGS_BYTES = 64 << 10

# Entries of a git directory that name or are programs, or lead to other settings.
SETTINGS = (
    *("config", "config.worktree", "commondir", "hooks"),
    *("rebase-merge", "rebase-apply"),  # their todo list may hold commands
)
# Names by which a git directory, or a working tree, is recognized.
GIT_NAMES = frozenset({".git", "HEAD", "refs", "commondir"})
# Subdirectories of a git directory in which no working tree lies.
GIT_FOLDERS = {"objects", "refs", "hooks", "info", "logs", "modules", "worktrees", "branches"}

# Lines of a config as git init and git clone write them. A URL with :: starts a program.
HARMLESS_LINE = re.compile(
    r"""\s*(?:[#;].*)?
    |\[(?:core|extensions|user|remote\ "[\w./-]+"|branch\ "[\w./-]+")\]
    |\s*(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|symlinks
        |precomposeunicode|objectformat|name|email|fetch|merge|remote|rebase|tagopt|pushdefault)
      \s*=[^\\"]*
    |\s*url\s*=(?:(?!::)[^\\"])*""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Guard:
    """What a repository holds, as paths below its top, "" for the top itself.

    `closed` may not change: git directories, the files that lead to them, and folders of submodules
    that do not exist yet. `git_directories` are all that exist, also within others; a git_commit
    changes them, but not their `settings`. `working_trees` are those below the top. `unchanging`
    are directories that had not changed for a while, with what was `Seen` of them.
    """

    closed: tuple[str, ...] = ()
    git_directories: frozenset[str] = frozenset()
    settings: tuple[str, ...] = ()
    working_trees: tuple[str, ...] = ()
    unchanging: Mapping[str, "Seen"] = field(default_factory=dict, repr=False, compare=False)

    @property
    def bare(self) -> bool:
        """Whether the top is a git directory: then only its working trees may change."""
        return "" in self.git_directories

    def mounts(self, *, commit: bool) -> tuple[list[str], list[str]]:
        """The paths to mount writable, and those to mount read-only, on top of the repository.

        The directories on the way to a closed path are mount points too, as these can be neither
        renamed nor removed.
        """
        closed = list(self.closed)
        if commit:
            closed = [path for path in closed if path not in self.git_directories]
            closed += self.settings
        trees = self.working_trees if self.bare and not commit else ("",)
        ways = {way for path in closed for way in parents(path)}
        pinned = {way for way in ways if any(is_within(way, tree) for tree in trees)}
        return sorted(pinned.union(trees) - {""}), sorted(closed)


@dataclass(frozen=True, slots=True)
class Seen:
    """What was read of a directory before a call: its `stamp`, its entries in GIT_NAMES, its subdirectories."""

    stamp: tuple[int, int]
    names: frozenset[str]
    folders: tuple[str, ...]


def stamp(found: os.stat_result) -> tuple[int, int]:
    """The state of a directory; while it is the same, nothing was made, renamed or removed there: the kernel sets the
    time of change, and no program can."""
    return found.st_ino, found.st_ctime_ns


def find_guard(top: Path, earlier: Guard | None = None) -> Guard:
    """Find what to protect in a repository; directories that have not changed since `earlier` are not read again.
    Raises UnguardedError where commands must not write to it."""
    try:
        return GuardScan(top, earlier.unchanging if earlier else {}).run()
    except OSError as error:
        raise UnguardedError(f"{top} cannot be read: {error}") from error


class GuardScan:
    """Looks through a repository before a call."""

    def __init__(self, top: Path, earlier: Mapping[str, Seen]) -> None:
        self.top = top
        self.earlier = earlier
        self.closed: set[str] = set()
        self.git_directories: set[str] = set()
        self.working_trees: list[str] = []
        self.unchanging: dict[str, Seen] = {}

    def run(self) -> Guard:
        if (self.top / ".git").is_symlink():
            raise UnguardedError(f"{self.top}/.git is a symbolic link")
        for path, names in self.directories():
            if ".git" in names:
                self.add_working_tree(path)
            if is_git_directory(names):
                self.add_git_directory(path)
        self.add_submodules()
        outermost = [path for path in self.closed if not self.closed.intersection(parents(path))]
        if len(outermost) > MOST_CLOSED:
            raise UnguardedError(f"{self.top} holds more than {MOST_CLOSED} repositories")
        for path in outermost:
            self.check_mount_point(path)
        return Guard(
            closed=tuple(sorted(outermost)),
            git_directories=frozenset(self.git_directories),
            settings=tuple(
                join(path, name)
                for path in sorted(self.git_directories)
                for name in SETTINGS
                if os.path.lexists(self.top / path / name)
            ),
            working_trees=tuple(sorted(self.working_trees)),
            unchanging=self.unchanging,
        )

    def directories(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield each directory's path with its entries in GIT_NAMES; enters neither links nor git directories."""
        unread, looked = [""], 0
        # The kernel's clock has steps: what changed just now could change again with the same time.
        settled = time.time_ns() - SETTLED_NS
        while unread:
            path = unread.pop()
            looked += 1
            if looked > MOST_DIRECTORIES:
                raise UnguardedError(f"{self.top} has more than {MOST_DIRECTORIES} directories")
            try:
                before = os.stat(f"{self.top}/{path}")  # noqa: PTH116 - of each directory
                seen = self.earlier.get(path)
                if seen and seen.stamp == stamp(before):
                    self.unchanging[path] = seen
                    yield path, seen.names
                    unread += [join(path, name) for name in seen.folders]
                    continue
                with os.scandir(self.top / path) as entries:
                    found = list(islice(entries, MOST_NAMES + 1))
            except OSError:  # git cannot read it either
                continue
            if len(found) > MOST_NAMES:
                raise UnguardedError(f"{self.top / path} holds more than {MOST_NAMES} files")
            names = GIT_NAMES.intersection(entry.name for entry in found)
            yield path, names
            folders = {e.name for e in found if e.is_dir(follow_symlinks=False)}
            if is_git_directory(names):
                folders = set() if path else folders - GIT_FOLDERS
            elif before.st_ctime_ns < settled:
                self.unchanging[path] = Seen(stamp(before), names, tuple(folders))
            unread += [join(path, name) for name in folders]

    def add_working_tree(self, path: str) -> None:
        git = self.top / path / ".git"
        if path and git.is_dir() and not git.is_symlink() and not is_git_directory(names_in(git)):
            return  # disable_new, or a command, has made it one that git ignores
        # A link cannot be mounted over, so its folder is closed.
        self.closed.add(path if git.is_symlink() else join(path, ".git"))
        if path:
            self.working_trees.append(path)
        if git.is_dir():
            self.add_git_directory(join(path, ".git"))
        else:
            self.add_git_directory(resolve(self.top, path, gitfile_target(git)))

    def add_git_directory(self, path: str | None) -> None:
        """Close a git directory, those to which it leads and those within it."""
        if path is None or path in self.git_directories or not (self.top / path).is_dir():
            return
        self.git_directories.add(path)
        if path:
            self.closed.add(path)
        git = self.top / path
        self.add_git_directory(resolve(self.top, path, read_bounded(git / "commondir").strip()))
        for line in read_bounded(git / "objects/info/alternates").split(b"\n"):
            shared = resolve(self.top, join(path, "objects"), line.strip())
            if shared and (self.top / shared).is_dir():
                self.closed.add(shared)
        for folder in ("modules", "worktrees"):
            for head in sorted((git / folder).rglob("HEAD")):
                if is_git_directory(names_in(head.parent)):
                    self.add_git_directory(str(head.parent.relative_to(self.top)))

    def add_submodules(self) -> None:
        """Close all submodules at any depth, also those that do not exist yet: git enters them."""
        unread = ["", *self.working_trees]
        known = set(unread)
        while unread:
            tree = unread.pop()
            git = self.top / tree / ".git"
            if git.is_file():
                git = git.parent / os.fsdecode(gitfile_target(git))
            for path in submodule_paths(git):
                name = join(tree, path)
                if name not in known:
                    known.add(name)
                    unread.append(name)
                    self.closed.add(name)
            if len(known) > 10 * MOST_CLOSED:
                raise UnguardedError(f"{self.top} names too many submodules")

    def check_mount_point(self, path: str) -> None:
        """Raise UnguardedError unless the path exists, free of symbolic links, on the filesystem of the top."""
        steps = [self.top, *(self.top / way for way in reversed(parents(path))), self.top / path]
        if any(step.is_symlink() for step in steps[1:]) or not steps[-1].exists():
            raise UnguardedError(f"{self.top / path}, a submodule, is no directory")
        # Directories only: on overlayfs a file shows the device of the layer below.
        if len({step.stat().st_dev for step in steps if step.is_dir()}) > 1:
            raise UnguardedError(f"{self.top / path}, a repository, is on another filesystem")


def disable_new(top: Path, known: Guard, *, commit: bool = False) -> list[str]:
    """Remove what a call has made that the owner's git would run; return its paths.

    `commit`: the call could write to the git directories in `known`.
    """
    with closing_fd(os.open(top, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as root:
        return sorted(AfterCall(root, top, known, commit=commit).run())


class AfterCall:
    """Looks through a repository after a call. It opens everything by descriptors from the top, as another call
    may put symbolic links in the way."""

    def __init__(self, root: int, top: Path, known: Guard, *, commit: bool) -> None:
        self.root = root
        self.top = top
        self.known = known
        self.commit = commit
        self.disabled: list[str] = []
        self.gitfiles: list[str] = []
        self.harmless: set[str] = set()

    def run(self) -> list[str]:
        everywhere = self.commit or not self.known.bare
        unread = [""] if everywhere else list(self.known.working_trees)
        writable = self.known.git_directories
        while unread:
            path = unread.pop()
            if path in self.known.closed and (path not in writable or not self.commit):
                continue
            with self.directory(path) as fd:
                seen = self.known.unchanging.get(path)
                if fd is not None and seen and seen.stamp == stamp(os.fstat(fd)):
                    unread += [join(path, name) for name in seen.folders]
                elif fd is not None:
                    with os.scandir(fd) as found:
                        entries = {e.name: e.is_dir(follow_symlinks=False) for e in found}
                    self.check_directory(fd, path, entries)
                    unread += [join(path, name) for name, is_folder in entries.items() if is_folder]
        for path in self.gitfiles:
            with self.directory(path) as fd:
                if fd is not None and not self.leads_to_harmless(path):
                    self.take_away(fd, path, ".git")
        return self.disabled

    def check_directory(self, fd: int, path: str, entries: dict[str, bool]) -> None:
        """Remove new settings; note a new file .git, and judge a new git directory. `entries` maps names to
        whether they are directories."""
        if not entries.get(".git", True) and join(path, ".git") not in self.known.closed:
            self.gitfiles.append(path)
        if path in self.known.git_directories:
            for name in entries.keys() & set(SETTINGS):
                if join(path, name) not in self.known.settings:
                    self.take_away(fd, path, name)
        elif is_git_directory(set(entries)):
            if is_harmless(fd, entries):
                self.harmless.add(path)
            elif not entries["HEAD"]:
                self.take_away(fd, path, "HEAD")

    def leads_to_harmless(self, path: str) -> bool:
        """Whether the file .git in `path` leads to a git directory that was known, or was found harmless."""
        try:
            target = resolve(self.top, path, gitfile_target(self.top / path / ".git"))
        except (UnguardedError, OSError):
            return False
        if target is None:
            return False
        if target in self.known.git_directories | self.harmless:
            return True
        # The owner has made a working tree meanwhile: commands cannot write there.
        return not self.commit and any(is_within(target, closed) for closed in self.known.closed)

    @contextmanager
    def directory(self, path: str) -> Iterator[int | None]:
        """Open a directory, made readable where a command hid its content; None where it is gone."""
        fd = None
        with suppress(OSError):
            try:
                fd = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
            except PermissionError:
                self.unlock(path)
                fd = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield fd
        finally:
            if fd is not None:
                os.close(fd)

    def open(self, path: str, flags: int) -> int:
        resolved = openat2.BENEATH | openat2.NO_SYMLINKS | openat2.NO_MAGICLINKS
        return openat2.open_beneath(self.root, path, flags, resolve=resolved)

    def unlock(self, path: str) -> None:
        with closing_fd(self.open(path, os.O_PATH | os.O_DIRECTORY)) as fd:
            Path(f"/proc/self/fd/{fd}").chmod(0o700)

    def take_away(self, fd: int, path: str, name: str) -> None:
        self.disabled.append(join(path, name))
        for attempt in range(2):
            try:
                if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                    shutil.rmtree(name, dir_fd=fd)
                else:
                    os.unlink(name, dir_fd=fd)
            except FileNotFoundError:
                return
            except PermissionError:
                if attempt:
                    raise
                self.unlock(path)
            else:
                return


def is_harmless(fd: int, entries: dict[str, bool]) -> bool:
    """Whether a new git directory holds only what git init and git clone write there."""
    if entries.keys() & set(SETTINGS) - {"config", "hooks"}:
        return False
    for folder in {"hooks", "modules", "worktrees"} & entries.keys():
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            with closing_fd(os.open(folder, flags, dir_fd=fd)) as inner:
                names = os.listdir(inner)  # noqa: PTH208 - a descriptor
        except OSError:
            return False
        if any(folder != "hooks" or not name.endswith(".sample") for name in names):
            return False
    if "config" not in entries:
        return True
    try:
        config = os.open("config", os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=fd)
    except OSError:
        return False
    with os.fdopen(config, "rb") as file:
        found = os.fstat(config)
        # A hard link elsewhere would stay writable when this directory is closed.
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            return False
        content = file.read(MOST_SETTINGS_BYTES + 1)
    lines = re.split(r"\r?\n", content.decode("utf-8", "replace"))
    return len(content) <= MOST_SETTINGS_BYTES and all(map(HARMLESS_LINE.fullmatch, lines))


def in_git_directory(top: Path, path: str) -> bool:
    """Whether the owner's git would find `path` in a git directory, and not in a working tree."""
    for folder in [*parents(path), ""]:
        names = names_in(top / folder)
        git = top / folder / ".git"
        # Where .git is a directory but no git directory, git looks at the folder itself.
        if ".git" in names and (not git.is_dir() or is_git_directory(names_in(git))):
            return False
        if is_git_directory(names):
            return True
    return False


def names_in(folder: Path) -> set[str]:
    """The names in a folder; none where it cannot be read."""
    try:
        return set(os.listdir(folder))  # noqa: PTH208 - names are enough
    except OSError:
        return set()


def is_git_directory(names: Collection[str]) -> bool:
    """Whether a folder of these names is a git directory, as git decides, which also reads HEAD.

    Objects may be elsewhere: GIT_OBJECT_DIRECTORY.
    """
    return "HEAD" in names and ("refs" in names or "commondir" in names)


def gitfile_target(git: Path) -> bytes:
    """The path in a file .git; empty for anything else."""
    content = b"" if git.is_symlink() else read_bounded(git)
    return content.removeprefix(b"gitdir:").strip() if content.startswith(b"gitdir:") else b""


def resolve(top: Path, folder: str, target: bytes) -> str | None:
    """Where a path in a file of `folder` leads; None where that is outside of the repository.

    UnguardedError where a symbolic link in the repository is on the way, as a command could change it.
    """
    if not target:
        return None
    real = Path(os.path.realpath(top))
    at = real / folder
    for part in Path(os.fsdecode(target)).parts:
        at = at.parent if part == ".." else at / part
        if not at.is_relative_to(real):
            at = Path(os.path.realpath(at))
        elif at.is_symlink():
            raise UnguardedError(f"{at}, on the way to a git directory, is a symbolic link")
    if not at.is_relative_to(real):
        return None
    return "" if at == real else str(at.relative_to(real))


def join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def parents(path: str) -> list[str]:
    """The directories above a path, without the top, the innermost first."""
    return [str(way) for way in PurePosixPath(path).parents][:-1]


def is_within(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


MOST_BYTES = 256 << 20
GITLINK, SPARSE_DIRECTORY = 0o160000, 0o040000
MODE, FLAGS, NAME = 24, 60, 62  # offsets in an entry with SHA-1
EXTENDED = 0x4000
SHA256 = re.compile(
    rb'^\s*objectformat\s*=\s*"?sha256"?\s*(?:[;#]|$)', re.IGNORECASE | re.MULTILINE
)


class UnguardedError(Exception):
    """The git directories of a repository cannot be protected; `str(error)` says why."""


def submodule_paths(git: Path) -> Iterator[str]:
    """The submodules in the index of a git directory; UnguardedError where it cannot be read."""
    for index in (git / "index", *git.glob("sharedindex.*")):
        content = read_bounded(index)
        # A quick check first: few repositories have submodules.
        if struct.pack(">I", GITLINK) in content or b"sdir\0\0\0\0" in content:
            try:
                yield from gitlinks(content, git)
            except (ValueError, IndexError, struct.error) as error:
                raise UnguardedError(f"{index} cannot be read: {error}") from error


def gitlinks(content: bytes, git: Path) -> Iterator[str]:
    version, count = struct.unpack_from(">4xII", content)
    wide = 12 * bool(SHA256.search(configuration(git)))
    name, at = b"", 12
    for _ in range(count):
        (mode,) = struct.unpack_from(">I", content, at + MODE)
        (flags,) = struct.unpack_from(">H", content, at + FLAGS + wide)
        start = at + NAME + wide + 2 * bool(flags & EXTENDED)
        dropped, start = prefix_length(content, start) if version == 4 else (len(name), start)
        end = content.index(b"\0", start)
        name = name[: len(name) - dropped] + content[start:end]
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
        if mode == SPARSE_DIRECTORY:
            raise UnguardedError(f"{git}/index is sparse")
        if mode == GITLINK and name:
            path = os.fsdecode(name)
            if any(part in ("", ".", "..", ".git") for part in path.split("/")):
                raise UnguardedError(f"the index names a submodule {path!r}")
            yield path


def configuration(git: Path) -> bytes:
    """The configuration of a git directory; a linked worktree has that of the repository."""
    common = os.fsdecode(read_bounded(git / "commondir").strip())
    return read_bounded(git / common / "config")


def prefix_length(content: bytes, at: int) -> tuple[int, int]:
    """How many bytes to drop from the end of the previous name (version 4), and the offset of what follows."""
    byte = content[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = content[at]
        value = (value + 1 << 7) | byte & 0x7F
    return value, at + 1


def read_bounded(path: Path) -> bytes:
    """The content of a file of git, empty without one; UnguardedError for a pipe or a huge file, which a command
    may have put there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise UnguardedError(f"{path} cannot be read: {error.strerror}") from error
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise UnguardedError(f"{path} is no file of git")
        return file.read(MOST_BYTES)
