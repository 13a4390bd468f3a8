"""A host worth attacking, in a temporary directory: the secret is in every place that must not leak."""

import asyncio
import os
import secrets
import signal
import socket
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

# Repositories that commands may write to, one in each layout that git recognises, and what in them may not
# change: plain, with another in it; bare, with a working tree in it; .git a file that leads to a bare one; a bare
# one in depth; settings elsewhere, by commondir; a submodule; objects of another, by alternates.
WRITABLE = {
    "app": (".git", "lib/.git"),
    "hub": ("hooks", "config", "tree/.git"),
    "dot": (".git", ".bare", "tree/.git"),
    "deep": (".git", "in/er/.mirror"),
    "apart": (".git", "own", "common"),
    "whole": (".git", "tree/.git"),
    "lent": (".git", "tree/.git"),
}
UPSTREAM = "upstream"  # the repository to which the owner pushes


@dataclass(frozen=True)
class Stage:
    """`outside` holds what nobody may change; `marker` is in the command line of survivors."""

    base: Path
    secret: str
    marker: str
    port: int
    udp_port: int
    abstract: str
    victim: int
    blob: str
    before: tuple[str, ...]

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def state(self) -> Path:
        return self.base / "state"

    @property
    def repo(self) -> Path:
        return self.base / "site"

    def owner_looks(self, repo: str) -> None:
        """`git status` by the owner in every folder of a repository that commands may write to."""
        for folder, _ in self._folders(repo):
            _git(folder, "status", check=False)

    def owner_pushes(self, repo: str) -> None:
        """`git push` by the owner in every repository and working tree of it."""
        for folder, names in self._folders(repo):
            if names & {".git", "HEAD"}:
                where = str(self.base / UPSTREAM)
                _git(folder, "push", "-q", where, "+HEAD:refs/heads/pushed", check=False)

    def _folders(self, repo: str) -> Iterator[tuple[Path, set[str]]]:
        """Those in which somebody may stand, with the names in each."""
        for folder, folders, files in os.walk(self.base / repo):
            if not {"objects", "hooks", "logs", "refs", "info"} & set(Path(folder).parts):
                yield Path(folder), {*folders, *files}

    def places(self) -> dict[str, object]:
        """What the text of an attack may name in braces."""
        return {
            "outside": self.outside,
            "state": self.state,
            "other": self.state / "chats/other/work",
            "repo": self.repo,
            "project": self.base / "app",
            "hidden": self.outside / "repo",
            "socket": self.state / "run/backend.sock",
            "abstract": self.abstract,
            "port": self.port,
            "udp": self.udp_port,
            "victim": self.victim,
            "marker": self.marker,
            "blob": self.blob,
        }

    @property
    def ran(self) -> bool:
        """Whether there is what attackers let others make."""
        return (self.outside / "new.txt").exists()

    def harm(self) -> str:
        """What an attack changed on the host; empty when nothing."""
        if self.ran:
            return "a program of an attacker ran on the host, or wrote there"
        if snapshot(self) != self.before:
            return "files outside changed"
        if not _alive(self.victim):
            return "a process outside was killed"
        if left := survivors(self.marker):
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            return "processes survived"
        return _odd_files(self.state / "chats/attacker/work")


def snapshot(stage: Stage) -> tuple[str, ...]:
    """Names, sizes and times of all that attacks may not touch."""
    closed = [stage.base / name / path for name, each in WRITABLE.items() for path in each]
    roots = (stage.outside, stage.repo, *closed, stage.state / "chats/other")
    paths = [p for root in roots for p in (root, *sorted(root.rglob("*")))]
    paths += [stage.state / "config.toml"]
    return tuple(f"{p} {p.lstat().st_size} {p.lstat().st_mtime_ns}" for p in paths if p.is_file())


def survivors(marker: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in command and int(path.name) != os.getpid():
            found.append(int(path.name))
    return found


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]
    except OSError:
        return False


def _odd_files(workspace: Path) -> str:
    for path, mode in _below(workspace):
        if mode & 0o6000 and stat.S_ISREG(mode):
            path.unlink()
            return "a set-id file is on the host"
        if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
            path.unlink()
            return "a device file is on the host"
    return ""


def _below(root: Path) -> Iterator[tuple[Path, int]]:
    """All below it with its mode, without recursion: an attack nests folders deeper than rglob can go.
    What lies beyond the longest path that there may be is left out."""
    folders = [str(root)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                yield Path(entry.path), entry.stat(follow_symlinks=False).st_mode
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


@asynccontextmanager
async def staged(base: Path) -> AsyncIterator[Stage]:
    """Build it below `base`, an empty directory that the running user owns."""
    secret, marker = f"s3cr3t{secrets.token_hex(6)}", f"mark{secrets.token_hex(5)}"
    blob = _files(base, secret)
    async with AsyncExitStack() as stack:
        abstract = f"voltaire-{secrets.token_hex(6)}"
        await stack.enter_async_context(_unix(base / "state/run/backend.sock", secret))
        await stack.enter_async_context(_unix(f"\0{abstract}", secret))
        port = await stack.enter_async_context(_tcp(secret))
        udp_port = await stack.enter_async_context(_udp(secret))
        victim = stack.enter_context(_Victim(secret))
        os.environ["VOLTAIRE_TELEGRAM__TOKEN"] = secret
        stack.callback(os.environ.pop, "VOLTAIRE_TELEGRAM__TOKEN")
        fd = os.open(base / "outside/secret.txt", os.O_RDONLY)
        os.set_inheritable(fd, True)
        stack.callback(os.close, fd)
        pid = victim.pid
        stage = Stage(base, secret, marker, port, udp_port, abstract, pid, blob, ())
        yield Stage(base, secret, marker, port, udp_port, abstract, pid, blob, snapshot(stage))


def _files(base: Path, secret: str) -> str:
    for name in ("outside/repo", "state/run", "state/chats/other/work"):
        (base / name).mkdir(parents=True)
    (base / "outside/secret.txt").write_text(secret)
    (base / "outside/canary.txt").write_text("sings")
    (base / "state/config.toml").write_text(f'token = "{secret}"')
    (base / "state/chats/other/work/notes.txt").write_text(secret)
    (base / "outside/repo/private.txt").write_text(secret)
    _committed(base / "outside/repo")
    for name in ("site", "app", "app/lib", "deep", "apart", "whole", "lent"):
        (base / name).mkdir()
        (base / name / "index.html").write_text("<p>hello\n")
        _committed(base / name)
    _git(base, "init", "-q", "--bare", UPSTREAM)
    _layouts(base)
    return _git(base / "outside/repo", "rev-parse", "HEAD:private.txt")


def _committed(repo: Path) -> None:
    _git(repo, "init", "-q", "-b", "main")
    _git(repo, "add", ".")
    _git(repo, "commit", "-q", "-m", "first")


def _layouts(base: Path) -> None:
    """Those of WRITABLE. Ways are relative: a sandbox sees them at another place."""
    _git(base, "clone", "-q", "--bare", "app", "hub")
    _git(base, "clone", "-q", "--bare", "app", "dot/.bare")
    (base / "dot/.git").write_text("gitdir: ./.bare\n")
    for name, git in (("hub", ".."), ("dot", "../.bare")):
        _git(base / name, "worktree", "add", "-q", "tree", "-b", "other")
        (base / name / "tree/.git").write_text(f"gitdir: {git}/worktrees/tree\n")
    _git(base / "deep", "clone", "-q", "--bare", ".", "in/er/.mirror")
    apart = base / "apart"
    (apart / ".git").rename(apart / "common")
    (apart / "own").mkdir()
    for name in ("HEAD", "index"):
        (apart / "common" / name).rename(apart / "own" / name)
    (apart / "own/commondir").write_text("../common\n")
    (apart / ".git").write_text("gitdir: own\n")
    source = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"{base}/site"]
    _git(base / "whole", *source, "tree")
    _git(base / "whole", "commit", "-q", "-m", "with a submodule")
    _git(base / "lent", "clone", "-q", "--shared", ".", "tree")
    (base / "lent/tree/.git/objects/info/alternates").write_text("../../../.git/objects\n")


def _git(repo: Path, *arguments: str, check: bool = True) -> str:
    own = ["-c", "user.name=o", "-c", "user.email=o@localhost", "-c", "safe.directory=*"]
    done = subprocess.run(
        ["git", "-C", str(repo), *own, *arguments],
        check=check,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "GIT_OPTIONAL_LOCKS": "0"},
    )
    return done.stdout.strip()


@asynccontextmanager
async def _unix(path: Path | str, secret: str) -> AsyncIterator[None]:
    async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(secret.encode())
        writer.close()

    async with await asyncio.start_unix_server(tell, path):
        yield


@asynccontextmanager
async def _tcp(secret: str) -> AsyncIterator[int]:
    async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(secret.encode() + b"\n")
        writer.close()

    async with await asyncio.start_server(tell, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


class _Teller(asyncio.DatagramProtocol):
    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._transport.sendto(self._secret, addr)


@asynccontextmanager
async def _udp(secret: str) -> AsyncIterator[int]:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: _Teller(secret), ("127.0.0.1", 0), family=socket.AF_INET
    )
    try:
        yield transport.get_extra_info("sockname")[1]
    finally:
        transport.close()


class _Victim:
    """A process of the same user that knows the secret."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def __enter__(self) -> "subprocess.Popen[bytes]":
        self._process = subprocess.Popen(
            [f"sleep-{self._secret}", "infinity"],
            executable="/usr/bin/sleep",
            env={"TOKEN": self._secret},
            start_new_session=True,
        )
        return self._process

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
