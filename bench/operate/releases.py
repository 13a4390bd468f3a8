"""Two versions to install without a network: this commit, and one after it with a migration."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHEELS = ROOT / ".cache" / "operate-wheels"  # what the locks name, kept for the next run
LOCKS = (
    "requirements.lock",
    "requirements-build.lock",
    "requirements-matrix.lock",
    "requirements-voice.lock",
)
PIPX = ("pipx", "pip")  # and the pip that it gives to its environments
NEXT = "9.0.0"
MIGRATION = "CREATE TABLE operated (id INTEGER PRIMARY KEY) STRICT;\n"
CHANGE = "- The version after this one, of a bench."
_BUILD = "import setuptools.build_meta as b, sys; print(b.build_wheel(sys.argv[1]))"
_AUTHOR = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost")


@dataclass(frozen=True)
class Releases:
    """`folder` holds `voltaire.git` (branch main; `next` after it), `wheels/`, `this/` and `next/`."""

    folder: Path

    def make(self) -> None:
        repository, tree = self.folder / "voltaire.git", self.folder / "tree"
        _run("git", "init", "-q", "--bare", "--initial-branch=main", repository)
        _run("git", "-C", ROOT, "push", "-q", repository, "HEAD:refs/heads/main")
        _run("git", "clone", "-q", repository, tree)
        self._wheel(tree, "this")
        advance(tree)
        _run("git", "-C", tree, *_AUTHOR, "commit", "-qam", f"Version {NEXT}")
        _run("git", "-C", tree, "push", "-q", "origin", "HEAD:refs/heads/next")
        self._wheel(tree, "next")
        shutil.rmtree(tree)
        _link(fetched(self.folder / self.wheel("this")), self.folder / "wheels")

    def publish(self) -> None:
        """From now on the next version is the newest of the repository, with a tag."""
        repository = self.folder / "voltaire.git"
        _run("git", "-C", repository, "update-ref", "refs/heads/main", "next")
        _run("git", "-C", repository, "tag", f"v{NEXT}", "next")

    def wheel(self, which: str) -> Path:
        """`this` or `next`, below `folder`."""
        (found,) = (self.folder / which).glob("*.whl")
        return found.relative_to(self.folder)

    def _wheel(self, tree: Path, which: str) -> None:
        sources, target = self.folder / "sources", self.folder / which
        target.mkdir()
        shutil.copytree(tree, sources, ignore=shutil.ignore_patterns(".git"))
        _run(sys.executable, "-c", _BUILD, target, cwd=sources)
        shutil.rmtree(sources)


def advance(tree: Path) -> None:
    """Make the next version of a checkout: its number, a line of the changelog, one more migration."""
    project, log = tree / "pyproject.toml", tree / "CHANGELOG.md"
    text = project.read_text("utf-8")
    number = re.compile(r'^version = ".*"$', re.MULTILINE)
    project.write_text(number.sub(f'version = "{NEXT}"', text, count=1), "utf-8")
    log.write_text(log.read_text("utf-8") + f"\n{CHANGE}\n", "utf-8")
    migrations = tree / "agent" / "store" / "migrations"
    newest = max(int(path.stem) for path in migrations.glob("*.sql"))
    (migrations / f"{newest + 1:04}.sql").write_text(MIGRATION, "utf-8")
    _run("git", "-C", tree, "add", migrations)


def fetched(wheel: Path) -> Path:
    """The wheels that the locks name and that `wheel` asks for; downloaded where a lock has changed since."""
    locks = b"".join([*((ROOT / name).read_bytes() for name in LOCKS), *map(str.encode, PIPX)])
    folder = WHEELS / sha256(locks).hexdigest()[:16]
    with _alone(WHEELS):  # a bench that runs beside this one waits for what this one fetches
        if not folder.exists():
            for earlier in WHEELS.iterdir():
                shutil.rmtree(earlier)
            part = WHEELS / "part"
            pip = (
                *(sys.executable, "-m", "pip", "download"),
                *("--quiet", "--disable-pip-version-check"),
            )
            locked = [word for name in LOCKS for word in ("-r", ROOT / name)]
            _run(*pip, "--no-deps", "--require-hashes", "-d", part, *locked)
            # A person's installer follows no override of ours.
            _run(*pip, "--find-links", part, "-d", part, f"{wheel}[matrix,voice]", *PIPX)
            for ours in part.glob(wheel.name):
                ours.unlink()
            part.rename(folder)
    return folder


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else is in the folder's block meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _link(source: Path, target: Path) -> None:
    def linked(path: str, into: str) -> None:
        try:
            os.link(path, into)
        except OSError:  # another file system
            shutil.copyfile(path, into)

    shutil.copytree(source, target, copy_function=linked)


def _run(*words: "str | Path", cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()
