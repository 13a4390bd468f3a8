"""The files of a chat, by their paths in the sandbox (/workspace, /repos/NAME, /skills, /host.txt), and the record of
whose text they may hold: a small file beside the workspace, which no command can reach."""

import asyncio
import errno
import fcntl
import io
import os
import posixpath
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from pydantic import ConfigDict, TypeAdapter

from agent.errors import ToolError
from agent.files import replacing
from agent.sandbox import openat2
from agent.sandbox.bubblewrap import HOME, MADE_UP, REPORT, REPOS, SKILLS, WORKSPACE
from agent.sandbox.gitdirs import in_git_directory
from agent.sandbox.limits import DiskQuota
from agent.sandbox.observer import Observer
from agent.sandbox.openat2 import closing_fd
from agent.sandbox.sandbox_config import SandboxConfig
from agent.trust import Taint, named

_UNREADABLE = Taint("files of which nothing is known", 0.0, 1 << 53)


@dataclass
class TaintRecord:
    """A workspace's taints: `open` are those not cleared, oldest first; `next` is the number of the next one."""

    next: int = 1
    open: list[Taint] = field(default_factory=list)
    __pydantic_config__ = ConfigDict(defer_build=True)


RECORD = TypeAdapter(TaintRecord)


@dataclass(frozen=True)
class WorkspaceTaints:
    """The record of one workspace. Every change is on the disk when its method returns."""

    path: Path
    clock: Callable[[], float] = time.time

    def open(self) -> list[Taint]:
        """The taints that were not cleared, oldest first. A record that cannot be read counts as one."""
        return self._read().open

    def add(self, *sources: str) -> list[int]:
        """Record sources; return the numbers of the new ones."""
        with self._changing() as record:
            known = {one.source for one in record.open}
            new = [name for name in dict.fromkeys(map(named, sources)) if name not in known]
            record.open += [Taint(one, self.clock(), n) for n, one in enumerate(new, record.next)]
            record.next += len(new)
            return list(range(record.next - len(new), record.next))

    def withdraw(self, numbers: list[int]) -> None:
        """Remove what was recorded in advance and did not happen."""
        with self._changing() as record:
            record.open = [one for one in record.open if one.number not in numbers]

    def clear(self, upto: int) -> int:
        """Clear the sources up to that number, because an owner vouches for the files; return how many."""
        with self._changing() as record:
            before = len(record.open)
            record.open = [one for one in record.open if one.number > upto]
            return before - len(record.open)

    def _read(self) -> TaintRecord:
        try:
            return RECORD.validate_json(self.path.read_bytes(), strict=True)
        except FileNotFoundError:
            return TaintRecord()
        except (ValueError, OSError):
            return TaintRecord(_UNREADABLE.number + 1, [_UNREADABLE])

    @contextmanager
    def _changing(self) -> Iterator[TaintRecord]:
        """The record, written back in one step if it was changed; other threads wait meanwhile."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        with closing_fd(os.open(self.path.parent, flags)) as folder:
            fcntl.flock(folder, fcntl.LOCK_EX)
            record = self._read()
            before = RECORD.dump_json(record)
            yield record
            after = RECORD.dump_json(record)
            if after != before or not self.path.exists():
                with replacing(self.path, sync=True) as new:
                    new.write_bytes(after)
                os.fsync(folder)


RECEIVED = "received"  # in the workspace: files that came with messages or from the web
TAINTS = "strangers.json"  # beside the workspace (agent.sandbox.files)
OUTPUTS = ".voltaire/out"  # in the workspace: whole outputs that were too long for a model
OUTPUTS_KEPT = 20
KEPT_OUTPUT = re.compile(r"[0-9]{1,9}\.txt")  # commands may put other files beside them
WEB = "In bash, web read ADDRESS reads a page, and web search WORDS searches the web."
CLOCK_REALTIME_COARSE = 5  # for clock_gettime(2): the clock of file times
CLOCK_TICK_SECONDS = 0.02  # twice the coarsest of Linux (CONFIG_HZ=100)


QUOTED = re.compile(r"""(?s)(["'`])(.*)\1|“(?P<curly>.*)”|<(?P<angled>.*)>""")
AT_WORKSPACE = re.compile(
    r"(?i)(file|sandbox):(//(localhost(?=/))?)?|(\"?)(\$\{?(PWD|WORKSPACE)\}?|\$\(pwd\)|~\+)\4/+"
)
AT_HOME = re.compile(
    r"(?i)(\"?)(\\?[~～][\w-]*|\$(HOME|TE?MP|TMPDIR)|\$\{(HOME|TE?MP|TMPDIR)\W?[^}]*\}|%(USERPROFILE|TE?MP)%)\1([/\\]|$)"
)


@dataclass(frozen=True, slots=True)
class SandboxPath:
    """A file on the host: `path` beneath `root`. `name` is its path for the model, `repo` its repository."""

    root: Path
    path: str
    name: str
    repo: str = ""

    @property
    def top(self) -> str:
        """The root as the sandbox sees it."""
        return f"{REPOS}/{self.repo}" if self.repo else WORKSPACE


class Files:
    """Reads and writes a chat's files, and records whose text they hold. Failures are ToolErrors that name the path."""

    def __init__(
        self, config: SandboxConfig, workspace: Path, quota: DiskQuota, observer: Observer
    ) -> None:
        self._config = config
        self._observer = observer
        self._workspace = workspace
        self._quota = quota
        self._taints = WorkspaceTaints(workspace.with_name(TAINTS))

    def resolve(self, path: str, *, reading: bool = False) -> SandboxPath:
        """A path in /workspace, to which relative ones belong, or in /repos.

        Where it is only to be read, any other absolute path counts as one in the workspace: small
        models write /notes.txt for notes.txt.
        """
        if "\0" in path:
            raise ToolError("A path cannot hold a NUL character.")
        path = unquoted(path)
        if re.match(r"https?:/", path):
            raise ToolError(f"{path} is an address, not a file. {WEB}")
        full = posixpath.normpath(posixpath.join(WORKSPACE, path))
        if full == HOME or full.startswith(f"{HOME}/"):
            raise ToolError(
                f"{path} does not last: {HOME}, which is ~, is emptied after each command. "
                f"Use {WORKSPACE}/{full[len(HOME) + 1 :]}, in bash too."
            )
        if full == MADE_UP or full.startswith(f"{MADE_UP}/"):
            full = f"{WORKSPACE}{full[len(MADE_UP) :]}"
        if reading and not f"{full}/".startswith((f"{WORKSPACE}/", f"{REPOS}/")):
            full = f"{WORKSPACE}{full}"
        if full == WORKSPACE or full.startswith(f"{WORKSPACE}/"):
            inner = full[len(WORKSPACE) + 1 :]
            return SandboxPath(self._workspace, inner, inner or WORKSPACE)
        if not full.startswith(f"{REPOS}/"):
            raise ToolError(
                f"{path} is outside of /workspace, this chat's folder. Paths begin there: leave out the slash;"
                " other places only bash can see."
            )
        name, _, inner = full[len(REPOS) + 1 :].partition("/")
        repo = self._config.repos.get(name)
        if repo is None:
            known = ", ".join(self._config.repos) or "none"
            raise ToolError(f"There is no repository {name} in /repos. There are: {known}.")
        return SandboxPath(repo.path, inner, full, name)

    async def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading."""
        if posixpath.normpath(path) == REPORT:
            return io.BytesIO(self._config.report().encode())
        place = self._skill(path) or self.resolve(path, reading=True)
        with explained(place):
            fd = await self._config.user.beneath(openat2.open_file, place.root, place.path)
        return os.fdopen(fd, "rb")

    def place(self, path: str) -> SandboxPath | None:
        """Resolve as `resolve` does, but to None for /host.txt and /skills, whose text is the program's or owner's."""
        own = posixpath.normpath(path) == REPORT or self._skill(path)
        return None if own else self.resolve(path, reading=True)

    def _skill(self, path: str) -> SandboxPath | None:
        full = posixpath.normpath(posixpath.join(WORKSPACE, path))
        if not full.startswith(f"{SKILLS}/") or "\0" in path:
            return None
        return SandboxPath(self._config.rootfs.root, full[1:], full)

    async def names(self, path: str) -> list[str]:
        """The names in a directory, at most 1,000; directories end with a slash."""
        place = self.resolve(path, reading=True)
        with explained(place):
            return await self._config.user.beneath(openat2.list_directory, place.root, place.path)

    async def write(self, path: str, content: bytes) -> bool:
        """Create or replace a file in one step, with missing directories; return whether it is new."""
        place = self._writable(path)
        if not place.repo:
            await self._quota.admit(len(content))
        fd = os.memfd_create("content", os.MFD_CLOEXEC)
        with os.fdopen(fd, "wb") as file, explained(place):
            file.write(content)
            file.flush()
            new = await self._config.user.beneath(openat2.replace_file, place.root, place.path, fd)
            if place.repo and in_git_directory(place.root, place.path):
                await self._config.user.beneath(openat2.remove_file, place.root, place.path)
                raise ToolError(
                    f"{place.name} would make a git directory of its folder, so it was not written."
                )
            return new

    async def remove(self, path: str) -> None:
        place = self._writable(path)
        with explained(place):
            await self._config.user.beneath(openat2.remove_file, place.root, place.path)

    def _writable(self, path: str) -> SandboxPath:
        place = self.resolve(path)
        if not place.path:
            raise ToolError(f"{place.name} is a directory.")
        if place.repo and not self._config.repos[place.repo].write:
            raise ToolError(
                f"/repos/{place.repo} is read-only; the owner can allow writing in the configuration. "
                "Work on a copy in /workspace."
            )
        if place.repo and (
            ".git" in place.path.split("/") or in_git_directory(place.root, place.path)
        ):
            raise ToolError(
                f"{place.name} is read-only: only git_commit changes a git directory there."
            )
        return place

    async def save_output(self, raw: bytes) -> str:
        """Save a whole output where commands can search it; return its path in the sandbox, empty where it could not
        be saved. The newest OUTPUTS_KEPT are kept."""
        try:
            names = await self.names(OUTPUTS)
        except ToolError:
            names = []
        numbers = sorted(int(name[:-4]) for name in names if KEPT_OUTPUT.fullmatch(name))
        try:
            path = f"{OUTPUTS}/{max(numbers, default=0) + 1}.txt"
            await self.write(".voltaire/.gitignore", b"*\n")
            await self.write(path, raw)
            for old in numbers[: 1 - OUTPUTS_KEPT]:
                await self.remove(f"{OUTPUTS}/{old}.txt")
        except ToolError:  # the workspace is full, or something else has that name
            return ""
        return f"{WORKSPACE}/{path}"

    async def taints(self) -> list[Taint]:
        """The strangers' text that may be in the workspace, oldest first."""
        return self._taints.open()

    async def settle(self) -> None:
        """Wait two ticks of the clock, so that later changes have other times than the making of the workspace."""
        with suppress(OSError):
            age = time.time() - self._workspace.stat().st_ctime
            if 0 <= age < 2 * CLOCK_TICK_SECONDS:
                await asyncio.sleep(2 * CLOCK_TICK_SECONDS - age)

    async def mark(self, *sources: str) -> None:
        """Record that the workspace is about to hold text of these sources; without any, that all are recorded
        from now on. ToolError where that fails."""
        await self._tell(await self.mark_for_now(*sources))

    async def mark_for_now(self, *sources: str) -> list[int]:
        """Mark as `mark` does, to be followed by `unmark`; return the numbers of the sources that are new."""
        try:
            return await asyncio.to_thread(self._taints.add, *sources)
        except OSError as error:
            raise ToolError(
                f"Where files come from cannot be recorded: {error.strerror}."
            ) from None

    async def unmark(self, numbers: list[int], since: float) -> None:
        """Withdraw what was marked for now, if nothing in the workspace has changed since then."""
        if numbers and not await asyncio.to_thread(changed_since, self._workspace, since):
            with suppress(OSError):
                await asyncio.to_thread(self._taints.withdraw, numbers)
        elif numbers:
            await self._tell(numbers)

    async def _tell(self, numbers: list[int]) -> None:
        for taint in self._taints.open() if numbers else ():
            if taint.number in numbers:
                await self._observer.tainted(taint.source)

    async def count_changed(self, since: float) -> int:
        """How many files of the workspace were made or changed since then."""
        return await asyncio.to_thread(count_changed, self._workspace, since)

    async def vouch(self, upto: int) -> int:
        """Clear the files' taints up to a number, because an owner vouches for them; return how many."""
        await self.mark()
        return await asyncio.to_thread(self._taints.clear, upto)


def changed_since(folder: Path, at: float) -> bool:
    """Whether anything below a folder was made, changed or removed since then; what cannot be read counts as
    changed.

    The time of change is compared, which no command can set. A file system's clock may be a tick behind.
    """
    earliest = at - CLOCK_TICK_SECONDS
    try:
        for _, _, names, fd in os.fwalk(folder, onerror=_fail):
            if os.fstat(fd).st_ctime >= earliest:
                return True
            for name in names:
                if os.stat(name, dir_fd=fd, follow_symlinks=False).st_ctime >= earliest:
                    return True
    except (OSError, RecursionError):  # a thousand folders deep
        return True
    return False


def count_changed(folder: Path, at: float) -> int:
    """How many files below a folder were made or changed since then, by CLOCK_REALTIME_COARSE; those
    that cannot be read do not count."""
    count = 0
    with suppress(RecursionError):  # a thousand folders deep; the quota ends what made them
        for _, _, names, fd in os.fwalk(folder):
            for name in names:
                with suppress(OSError):
                    changed = os.stat(name, dir_fd=fd, follow_symlinks=False).st_ctime
                    count += changed >= at
    return count


def _fail(error: OSError) -> None:
    raise error


MESSAGES = {
    errno.ENOENT: "There is no file {}.",
    errno.ENOTDIR: "A part of {} is a file, not a directory.",
    errno.EISDIR: "{} is a directory.",
    errno.EINVAL: "{} is not a regular file but a device, pipe or socket.",
    errno.ENXIO: "{} is not a regular file but a device, pipe or socket.",
    errno.EXDEV: "{} leads outside of the sandbox.",
    errno.ELOOP: "{} is or passes a symbolic link, through which nothing is written.",
    errno.EACCES: "The permissions of {} forbid it.",
    errno.EPERM: "The permissions of {} forbid it.",
    errno.ENAMETOOLONG: "The path is too long.",
    errno.ENOSPC: "The disk is full.",
    errno.ENOSYS: "File tools need Linux 5.6 or newer, and a service without RestrictSUIDSGID.",
}


@contextmanager
def explained(place: SandboxPath) -> Iterator[None]:
    """Turn an OSError into a ToolError with advice."""
    try:
        yield
    except OSError as error:
        message = MESSAGES.get(error.errno or 0, "{}: " + str(error.strerror))
        raise ToolError(message.format(place.name)) from error


def unquoted(path: str) -> str:
    """A path without what a shell or an address puts around it, with its home and temporary folder as HOME."""
    path = path.strip(" \t\r\n\u200b\ufeff")
    if quoted := QUOTED.fullmatch(path):
        path = next(filter(None, quoted.groups()[1:]), "")
    if at := AT_WORKSPACE.match(path):
        path = path[at.end() :]
    at = AT_HOME.match(path)
    return f"{HOME}/{path[at.end() :]}" if at else path
