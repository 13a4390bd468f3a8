"""What turns changed in a workspace, and taking a turn's changes back.

Beside the workspace, where no command can reach, lie copies of its files (by inode, size and times, so that only
what changed is copied), and a record of each turn that changed something:

    history/copies/INODE-SIZE-MTIME-CTIME
    history/turns/NUMBER.json    a Record
    history/open.json            the workspace before the turn that runs; closed.json once that turn has ended
    history/undo/                the plan of an undo, `new` to put into place, `old` that was in its place

An undo first makes everything that it needs in `new`. Once its plan is on the disk, it is carried out by renames
alone, each of which shows whether it was done; a kill is followed by the rest, an error by the way back.

This runs outside of the sandbox on what commands wrote. Each folder is opened by its name in the one above,
never through a link; only regular files are read, and no more of them than was seen before.
"""

import errno
import fcntl
import filecmp
import json
import logging
import os
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from pydantic import TypeAdapter

from agent.errors import ToolError
from agent.files import replacing
from agent.sandbox.files import CLOCK_TICK_SECONDS, WorkspaceTaints
from agent.sandbox.limits import DEEPEST, DIRECTORY, names_of
from agent.sandbox.openat2 import closing_fd, copy_content, libc
from backend.protocol import Phrase

log = logging.getLogger(__name__)

HISTORY = "history"  # beside the workspace
OPEN, CLOSED = "open.json", "closed.json"
UNDO, PLAN = "undo", "plan.json"
OWN = ".voltaire"  # in the workspace: the program's own files
MOST_TURNS = 20
MOST_COPIED = 32 << 20  # bytes; larger files are kept where the filesystem can share their blocks
MOST_COMPARED = 256 << 10  # bytes of a file whose difference is shown
MOST_ENTRIES = 200_000
MODES = 0o1777  # no setuid, no setgid
FICLONE = 0x40049409
WRITE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC

Conflict = Literal["changed", "lost"]
T = TypeVar("T")


class Entry(NamedTuple):
    """What lies at a path: `size` in bytes, times in ns; `target` of a link."""

    kind: Literal["file", "folder", "link", "other"]
    mode: int
    size: int = 0
    mtime: int = 0
    ctime: int = 0
    inode: int = 0
    target: str = ""

    @property
    def copy(self) -> str:
        """The name under which a file's copy is kept; its second part is the size."""
        return f"{self.inode:x}-{self.size:x}-{self.mtime:x}-{self.ctime:x}"

    @property
    def bare(self) -> tuple[str, int, str]:
        """What has to be the same, beside the content, for a path to count as unchanged."""
        return self.kind, 0 if self.kind == "link" else self.mode, self.target


class Change(NamedTuple):
    """One path before and after a turn; None: there was nothing."""

    before: Entry | None
    after: Entry | None


class Record(NamedTuple):
    """What a turn changed, by path. `at` is when it began; `sources` are those of untrusted text that the files
    may have held."""

    number: int
    turn: str
    at: float
    changes: dict[str, Change]
    sources: list[str]
    undone: bool = False


class Opened(NamedTuple):
    """The workspace before a turn."""

    turn: str
    at: float
    entries: dict[str, Entry]
    sources: list[str]


class Plan(NamedTuple):
    """The renames of an undo: `moves` out of the way, then `puts` into place, each in order, then the modes of
    folders; `modes_now` are those before it."""

    number: int
    moves: list[str]
    puts: list[str]
    modes: dict[str, int]
    modes_now: dict[str, int]


OPENED, RECORD, PLANNED = TypeAdapter(Opened), TypeAdapter(Record), TypeAdapter(Plan)


@dataclass(frozen=True, slots=True)
class Undo:
    """How an undo went: `done`, or not, with the conflicts that stand against it, by path."""

    record: Record
    done: bool
    conflicts: Mapping[str, Conflict]


@dataclass
class WorkspaceHistory:
    """The history of one workspace. Its methods block, and one waits for another."""

    workspace: Path
    limit_mib: int
    taints: WorkspaceTaints
    _turn: str = ""  # that runs here
    _opened: Opened | None = None  # None: it is in the file
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def folder(self) -> Path:
        return self.workspace.with_name(HISTORY)

    # -- turns ------------------------------------------------------------------

    def begin(self, turn: str) -> None:
        """Note what the workspace holds, before the first call of a turn that may change it. Never fails: a turn
        whose beginning could not be noted is not recorded."""
        turn = turn.partition(".")[0]  # a sub-task's changes are its turn's
        with self._lock:
            if turn == self._turn or not self.limit_mib:
                return
            self._turn = turn
            try:
                for name in ("copies", "turns"):
                    (self.folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
                self.recover()
                if self._named(CLOSED) == turn:  # it is resumed
                    (self.folder / CLOSED).rename(self.folder / OPEN)
                if self._named(OPEN) == turn:
                    return
                self._close()
                sources = [taint.source for taint in self.taints.open()]
                self._opened = Opened(turn, time.time(), self._look(), sources)
                write(self.folder / OPEN, self._opened, turn)
            except (OSError, ValueError) as error:
                log.warning("what a turn changes cannot be recorded: %s", error)
                with suppress(OSError):
                    (self.folder / OPEN).unlink(missing_ok=True)

    def end(self, turn: str) -> int:
        """Record what the turn changed; return the record's number, 0 where it changed nothing or is not recorded."""
        with self._lock:
            self._turn = "" if self._turn == turn else self._turn
            try:
                if self._named(OPEN) == turn:
                    return self._close()
                if self._named(CLOSED) == turn:  # killed before its end was stored
                    return next((r.number for r in self.records() if r.turn == turn), 0)
            except (OSError, ValueError) as error:
                log.warning("what a turn changed cannot be recorded: %s", error)
            return 0

    def ended(self) -> list[Record]:
        """The turns that changed something, newest first; also one that was given up before its end."""
        with self._lock:
            if not self._turn:
                try:
                    self._close()
                except (OSError, ValueError) as error:
                    log.warning("what a turn changed cannot be recorded: %s", error)
            return self.records()

    def records(self) -> list[Record]:
        """The records of turns, newest first."""
        numbers = sorted(
            (int(path.stem) for path in self.folder.glob("turns/*.json")), reverse=True
        )
        found = []
        for number in numbers:
            with suppress(ValueError):  # of another version
                found.append(read(self._path(number), RECORD))
        return found

    def contents(self, change: Change) -> tuple[bytes, bytes] | None:
        """A file before and after a turn; None where there is no copy or it is too long to be compared."""
        found = [b"" if each is None else self._content(each) for each in change]
        return None if found[0] is None or found[1] is None else (found[0], found[1])

    def _content(self, entry: Entry) -> bytes | None:
        if entry.kind != "file" or entry.size > MOST_COMPARED:
            return None
        with suppress(OSError):
            return (self._copies / entry.copy).read_bytes()
        return None

    @property
    def _copies(self) -> Path:
        return self.folder / "copies"

    def _path(self, number: int) -> Path:
        return self.folder / "turns" / f"{number}.json"

    def _named(self, name: str) -> str:
        """The turn of OPEN or CLOSED; "" where there is none."""
        with suppress(FileNotFoundError), (self.folder / name).open() as file:
            return file.readline().strip()
        return ""

    def _close(self) -> int:
        """Record what has changed since the open turn began, if there is one."""
        path, opened = self.folder / OPEN, self._opened
        self._opened = None
        if not path.exists():
            return 0
        opened = opened or read(path, OPENED)
        before, number = opened.entries, 0
        after = self._look(before)
        other = [path for path in before if after.get(path) != before[path]]
        changes = {
            path: Change(before.get(path), after.get(path))
            for path in sorted([*other, *(after.keys() - before.keys())])
            if not self._same(before.get(path), after.get(path))
        }
        if changes:
            newest = next(iter(self.records()), None)
            number = newest.number if newest else 0
            if newest is None or newest.turn != opened.turn:  # else it was resumed
                number += 1
            record = Record(number, opened.turn, opened.at, changes, opened.sources)
            write(self._path(number), record)
            self._make_room(after, before)
        path.rename(self.folder / CLOSED)
        return number

    # -- copies -----------------------------------------------------------------

    def _look(self, *kept: Mapping[str, Entry], evict: bool = True) -> dict[str, Entry]:
        """What the workspace holds now. Its files are copied where that is not done and there is room, the
        smaller ones first; `kept` and `evict` are those of `_make_room`."""
        with (
            closing_fd(os.open(self.workspace, DIRECTORY)) as root,
            closing_fd(os.open(self._copies, DIRECTORY)) as copies,
        ):
            entries = scan(root)
            there = set(os.listdir(copies))  # noqa: PTH208 - a descriptor
            files = ((p, e) for p, e in entries.items() if e.kind == "file")
            wanted = sorted((e.size, p) for p, e in files if e.copy not in there)
            if not wanted:
                return entries
            # What is written from now on gets another time: a file system's clock may be a tick behind.
            newest = max(entries[path].ctime for _, path in wanted)
            time.sleep(
                min(max(newest / 1e9 + CLOCK_TICK_SECONDS - time.time(), 0), CLOCK_TICK_SECONDS)
            )
            needed = sum(size for size, _ in wanted)
            room = self._make_room(entries, *kept, more=needed, evict=evict)
            while wanted and needed > room:
                needed -= wanted.pop()[0]
            paths = sorted(path.rpartition("/") for _, path in wanted)
            for above, in_one in groupby(paths, key=itemgetter(0)):
                with opened_folder(root, above) as fd:
                    for _, slash, name in in_one:
                        path = f"{above}{slash}{name}"
                        entries[path] = self._copy(copies, fd, name, entries[path])
        return entries

    def _copy(self, copies: int, parent: int, name: str, entry: Entry) -> Entry:
        """Copy a file; return it as it is then. There is no copy where that fails, or it is changed meanwhile."""
        with (
            suppress(OSError),
            closing_fd(open_file(parent, name)) as source,
            closing_fd(os.open("new", WRITE | os.O_TRUNC, 0o600, dir_fd=copies)) as target,
        ):
            if not copied(target, source, MOST_COPIED):
                return entry
            found = entry_of(os.fstat(source))
            if (
                found._replace(ctime=entry.ctime) == entry
                and os.fstat(target).st_size == entry.size
            ):
                os.rename("new", found.copy, src_dir_fd=copies, dst_dir_fd=copies)
                return found
        return entry

    def _make_room(self, *kept: Mapping[str, Entry], more: int = 0, evict: bool = True) -> int:
        """Delete copies that neither `kept` nor a record refers to, and the oldest records until `more` bytes fit
        (unless `evict` is off); how many bytes do."""
        sizes = {n: int(n.split("-")[1], 16) for n in names_of(os.fspath(self._copies)) if "-" in n}
        records = self.records()
        current = {e.copy for entries in kept for e in entries.values() if e.kind == "file"}
        disk = os.statvfs(self._copies)
        while True:
            entries = (
                e for record in records for change in record.changes.values() for e in change
            )
            needed = current | {e.copy for e in entries if e and e.kind == "file"}
            used = sum(size for name, size in sizes.items() if name in needed)
            room = min((self.limit_mib << 20) - used, disk.f_bavail * disk.f_frsize // 2)
            if not (evict and records and (more > room or len(records) > MOST_TURNS)):
                break
            self._path(records.pop().number).unlink()
        for name in sizes.keys() - needed:
            (self._copies / name).unlink()
        return room

    def _same(self, one: Entry | None, other: Entry | None) -> bool:
        if one is None or other is None:
            return one is other
        if one.bare != other.bare or one.size != other.size:
            return False
        if one.kind != "file" or one.copy == other.copy:
            return True
        with suppress(OSError):
            return filecmp.cmp(self._copies / one.copy, self._copies / other.copy, shallow=False)
        return False

    # -- taking back --------------------------------------------------------------

    def undo(self, number: int, *, anyway: bool = False) -> Undo:
        """Take back a turn's changes, all of them or none. Where something was changed since, or cannot be brought
        back, nothing is touched unless `anyway`; without effect on a turn that was taken back already.

        Raises ToolError where it was not done.
        """
        with self._lock:
            if self._turn:
                raise ToolError(Phrase("Something is running here; /stop ends it."))
            try:
                self.recover()
                self._close()  # of a turn that was given up
                record = next((each for each in self.records() if each.number == number), None)
                if record is None:
                    raise ToolError(Phrase("What that turn changed is no longer known."))
                if record.undone:
                    return Undo(record, True, {})
                plan, puts, conflicts = self._planned(record)
                if conflicts and not anyway:
                    return Undo(record, False, conflicts)
                with closing_fd(os.open(self.workspace, DIRECTORY)) as root:
                    try:
                        self._stage(puts, os.fstat(root))
                        libc.syncfs(root)
                        self.taints.add(*record.sources)
                        write(self.folder / UNDO / PLAN, plan)
                    except OSError:
                        remove(self.folder / UNDO)
                        raise
                    self._carry_out(plan, root)
            except (OSError, ValueError) as error:
                log.warning("an undo failed: %s", error)
                why = getattr(error, "strerror", None) or str(error)
                raise ToolError(Phrase("Nothing was taken back: {why}.", why=why)) from None
            return Undo(record._replace(undone=True), True, conflicts)

    def recover(self) -> None:
        """Finish an undo that was cut off, if there is one."""
        with self._lock:
            if (self.folder / UNDO / PLAN).exists():
                with closing_fd(os.open(self.workspace, DIRECTORY)) as root:
                    self._carry_out(read(self.folder / UNDO / PLAN, PLANNED), root)
            elif (self.folder / UNDO).exists():
                remove(self.folder / UNDO)

    def _planned(self, record: Record) -> tuple[Plan, dict[str, Entry], dict[str, Conflict]]:
        """The plan of an undo, what it puts into place, and the conflicts."""
        now = self._look(evict=False)
        conflicts: dict[str, Conflict] = {}
        puts: dict[str, Entry] = {}
        goes: set[str] = set()  # from its place
        modes: dict[str, int] = {}
        for path, (before, after) in record.changes.items():
            current = now.get(path)
            if self._same(current, before):
                continue
            if not self._same(current, after):
                conflicts[path] = "changed"
            if before and not self._can_make(before):
                conflicts[path] = "lost"
                continue
            if before and before.kind == "folder":
                modes[path] = before.mode
            if before and current and before.kind == current.kind == "folder":
                continue
            if before:
                puts[path] = before
            if current:
                goes.add(path)
        for path in list(puts):
            for above in parents(path):
                there = now.get(above)
                if above not in puts and (above in goes or there is None or there.kind != "folder"):
                    puts[above], modes[above] = Entry("folder", 0o755), 0o755
                    goes |= {above} & now.keys()
                    conflicts.setdefault(above, "changed")
        stays = {above: path for path in now.keys() - goes for above in parents(path)}
        for path in goes & stays.keys():
            conflicts.setdefault(stays[path], "changed")  # made in a folder of the turn's
        goes -= stays.keys() - puts.keys()
        touched = {above for path in goes | puts.keys() for above in parents(path)} | modes.keys()
        folders = {p: e.mode for p, e in now.items() if e.kind == "folder"}
        before_it = {p: m for p, m in folders.items() if p in touched | goes}
        after_it = {p: m for p, m in before_it.items() if p not in goes} | modes
        order = sorted(puts, key=depth)
        plan = Plan(
            record.number, sorted(goes, key=depth, reverse=True), order, after_it, before_it
        )
        return plan, {path: puts[path] for path in order}, conflicts

    def _can_make(self, entry: Entry) -> bool:
        return entry.kind in ("folder", "link") or (
            entry.kind == "file" and (self._copies / entry.copy).exists()
        )

    def _stage(self, puts: Mapping[str, Entry], owner: os.stat_result) -> None:
        """Make all that is to be put into place."""
        undo = self.folder / UNDO
        if undo.exists():
            remove(undo)
        for path in (undo, undo / "new", undo / "old"):
            path.mkdir(mode=0o700)
        with (
            closing_fd(os.open(self._copies, DIRECTORY)) as copies,
            closing_fd(os.open(undo / "new", DIRECTORY)) as new,
        ):
            for number, entry in enumerate(puts.values()):
                name = str(number)
                if entry.kind == "folder":
                    os.mkdir(name, 0o700, dir_fd=new)  # its own mode is the last step
                elif entry.kind == "link":
                    os.symlink(entry.target, name, dir_fd=new)
                if entry.kind != "file":
                    if os.geteuid() == 0:
                        os.chown(
                            name, owner.st_uid, owner.st_gid, dir_fd=new, follow_symlinks=False
                        )
                    continue
                with (
                    closing_fd(
                        os.open(entry.copy, os.O_RDONLY | os.O_CLOEXEC, dir_fd=copies)
                    ) as source,
                    closing_fd(os.open(name, WRITE | os.O_EXCL, 0o600, dir_fd=new)) as target,
                ):
                    copied(target, source)
                    if os.fstat(target).st_size != entry.size:
                        raise OSError(errno.EIO, "a copy is damaged")
                    if os.geteuid() == 0:
                        os.fchown(target, owner.st_uid, owner.st_gid)
                    os.fchmod(target, entry.mode)
                    os.utime(target, ns=(entry.mtime, entry.mtime))

    def _carry_out(self, plan: Plan, root: int) -> None:
        """Do what of the plan is not done yet; all that was done is reversed where a step fails."""
        undo = self.folder / UNDO
        with (
            closing_fd(os.open(undo / "old", DIRECTORY)) as old,
            closing_fd(os.open(undo / "new", DIRECTORY)) as new,
        ):
            try:
                for number, path in enumerate(plan.moves):
                    if not exists(old, str(number)):
                        with place_of(root, path) as (fd, name):
                            rename(fd, name, old, str(number))
                for number, path in enumerate(plan.puts):
                    if exists(new, str(number)):
                        with place_of(root, path) as (fd, name):
                            rename(new, str(number), fd, name)
                set_modes(root, plan.modes)
            except OSError:
                for number, path in reversed([*enumerate(plan.puts)]):
                    if not exists(new, str(number)):
                        with place_of(root, path) as (fd, name):
                            rename(fd, name, new, str(number))
                for number, path in reversed([*enumerate(plan.moves)]):
                    if exists(old, str(number)):
                        with place_of(root, path) as (fd, name):
                            rename(old, str(number), fd, name)
                set_modes(root, plan.modes_now)
                (undo / PLAN).unlink()
                remove(undo)
                raise
        record = read(self._path(plan.number), RECORD)
        write(self._path(plan.number), record._replace(undone=True))
        (undo / PLAN).unlink()
        remove(undo)


# -- beneath a folder -----------------------------------------------------------


def scan(root: int) -> dict[str, Entry]:
    """All below an open folder, by path; no link is followed. Raises ValueError where it is too much."""
    found: dict[str, Entry] = {}

    def look(fd: int, prefix: str, level: int) -> None:
        if level > DEEPEST:
            raise ValueError("the folders are nested too deep")
        for name in os.listdir(fd):
            if not prefix and name == OWN:
                continue
            if len(found) >= MOST_ENTRIES:
                raise ValueError("there are too many files")
            try:
                entry = entry_of(os.stat(name, dir_fd=fd, follow_symlinks=False))
                if entry.kind == "link":
                    entry = entry._replace(target=os.readlink(name, dir_fd=fd))
            except FileNotFoundError:
                continue
            found[prefix + name] = entry
            if entry.kind == "folder":
                with folder(fd, name) as inner:
                    look(inner, f"{prefix}{name}/", level + 1)

    look(root, "", 1)
    return found


def entry_of(found: os.stat_result) -> Entry:
    mode = found.st_mode & MODES
    if stat.S_ISREG(found.st_mode):
        times = found.st_mtime_ns, found.st_ctime_ns
        return Entry("file", mode, found.st_size, *times, found.st_ino)
    if stat.S_ISDIR(found.st_mode):
        return Entry("folder", mode)
    return Entry("link", 0) if stat.S_ISLNK(found.st_mode) else Entry("other", mode)


@contextmanager
def folder(parent: int, name: str, mode: int | None = None) -> Iterator[int]:
    """A folder, never through a link. Its owner may use it meanwhile, whatever its mode; then it has `mode`, or the
    one that it had."""
    with closing_fd(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)) as place:  # fmt: skip
        is_now = stat.S_IMODE(os.fstat(place).st_mode)
        if os.geteuid() and is_now & stat.S_IRWXU != stat.S_IRWXU:
            Path(f"/proc/self/fd/{place}").chmod(is_now | stat.S_IRWXU)
        try:
            with closing_fd(os.open(".", DIRECTORY, dir_fd=place)) as fd:
                yield fd
        finally:
            last = is_now if mode is None else mode
            if stat.S_IMODE(os.fstat(place).st_mode) != last:
                Path(f"/proc/self/fd/{place}").chmod(last)


@contextmanager
def opened_folder(root: int, path: str) -> Iterator[int]:
    """The folder at a path beneath `root`, as `folder` gives it."""
    with ExitStack() as stack:
        fd = root
        for name in filter(None, path.split("/")):
            fd = stack.enter_context(folder(fd, name))
        yield fd


@contextmanager
def place_of(root: int, path: str) -> Iterator[tuple[int, str]]:
    """The folder that a path is in, and the name there."""
    above, _, name = path.rpartition("/")
    with opened_folder(root, above) as fd:
        yield fd, name


def open_file(parent: int, name: str) -> int:
    """Open a regular file for reading, also one whose mode forbids that; OSError for a link or anything else."""
    with closing_fd(
        os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    ) as place:
        mode, path = os.fstat(place).st_mode, f"/proc/self/fd/{place}"
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", name)
        hidden = os.geteuid() and not mode & stat.S_IRUSR
        if hidden:
            Path(path).chmod(stat.S_IMODE(mode) | stat.S_IRUSR)
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        finally:
            if hidden:
                Path(path).chmod(stat.S_IMODE(mode))


def copied(target: int, source: int, most: int | None = None) -> bool:
    """Give an empty file the content of another one: by reference where the filesystem can, else if it has no more
    than `most` bytes."""
    try:
        fcntl.ioctl(target, FICLONE, source)
    except OSError:
        if most is not None and os.fstat(source).st_size > most:
            return False
        copy_content(target, source)
    return True


def rename(source: int, name: str, target: int, new_name: str) -> None:
    found = os.stat(name, dir_fd=source, follow_symlinks=False)
    # A folder that gets another parent is written to.
    with folder(source, name) if stat.S_ISDIR(found.st_mode) else nullcontext():
        os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)


def set_modes(root: int, modes: Mapping[str, int]) -> None:
    for path, mode in modes.items():
        with place_of(root, path) as (fd, name), folder(fd, name, mode):
            pass


def exists(parent: int, name: str) -> bool:
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=parent, follow_symlinks=False)
        return True
    return False


def remove(path: Path) -> None:
    """Delete a folder of the program's own with all in it; what cannot be deleted is left for the next time."""

    def empty(fd: int) -> None:
        for name in os.listdir(fd):
            if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                with folder(fd, name) as inner:
                    empty(inner)
                os.rmdir(name, dir_fd=fd)
            else:
                os.unlink(name, dir_fd=fd)

    try:
        with closing_fd(os.open(path, DIRECTORY)) as fd:
            empty(fd)
        path.rmdir()
    except (OSError, RecursionError) as error:
        log.warning("%s was not deleted: %s", path, error)


def parents(path: str) -> list[str]:
    """The folders that a path is in."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


def depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def write(path: Path, value: NamedTuple, head: str = "") -> None:
    """Replace a file by the line `head` and a value in JSON, which holds names that are no UTF-8 too."""
    with replacing(path, sync=True) as new:
        new.write_text(f"{head}\n{json.dumps(value)}")


def read(path: Path, kind: TypeAdapter[T]) -> T:
    return kind.validate_python(json.loads(path.read_text().partition("\n")[2]))
