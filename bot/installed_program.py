"""How the program is installed, and installing another version of it.

A checkout (`make install`) follows its branch's upstream, by release tags where there are any. An
environment (uv tool, pipx, a venv) takes a wheel that is named. Imports are few, because most checks for
a new version find none.
"""

import asyncio
import difflib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email import message_from_bytes
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from urllib.parse import unquote, urlsplit
from zipfile import BadZipFile, ZipFile

ROOT = Path(__file__).resolve().parents[1]
STEP_SECONDS = 1800.0  # packages over a slow line
END_SECONDS = 10.0  # that an interrupted program is given to clear up
CHANGELOG = "CHANGELOG.md"
COMMITS = 20  # the newest that are told where the changelog has nothing new
DISTRIBUTION = "voltaire-agent"
RECEIPTS = ("uv-receipt.toml", "pipx_metadata.json")  # of the tool that made the environment
MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "ASK")  # variables of a make that runs this program


class UpgradeError(Exception):
    """A version cannot be found or installed; `str` is one sentence."""


@dataclass(frozen=True, slots=True)
class ProgramVersion:
    """A version of the program, and its origin (a commit, a wheel's path)."""

    version: str
    origin: str
    changes: str = ""  # since the version that runs: in the changelog, else the commits

    @property
    def title(self) -> str:
        """The version, with its commit in a checkout."""
        commit = re.fullmatch("[0-9a-f]{40}", self.origin)
        return f"{self.version} ({self.origin[:9]})" if commit else self.version


# -- a checkout ---------------------------------------------------------------


@dataclass(frozen=True)
class Checkout:
    """A clone in which `make install` was run; `root` follows its branch's upstream. `command` runs the
    program. Methods raise UpgradeError."""

    root: Path = ROOT

    @property
    def command(self) -> Path:
        return self.root / ".venv" / "bin" / "voltaire"

    async def current(self) -> ProgramVersion:
        return await self.release("HEAD")

    async def newest(self) -> ProgramVersion | None:
        """The newest version; None where nothing is newer."""
        # `git fetch` writes, and its error names no way on.
        if not os.access(self.root / ".git", os.W_OK, effective_ids=True):
            owner = (self.root / ".git").owner()
            raise UpgradeError(f"{self.root} is {owner}'s: run `voltaire upgrade` as {owner}.")
        try:
            upstream = await self.git("rev-parse", "--abbrev-ref", "@{upstream}")
        except UpgradeError:
            raise UpgradeError(f"{self.root} follows no branch of a remote repository.") from None
        remote = upstream.partition("/")[0]
        await self.git("fetch", "--quiet", "--tags", remote, terminal=True)  # a password
        tags = await self.git("tag", "--merged", upstream, "--sort=-v:refname", "--list", "v[0-9]*")
        target = tags.splitlines()[0] if tags else upstream
        found = await self.git("rev-parse", f"{target}^{{commit}}", "HEAD")
        commit, ours = found.split()
        if commit == ours:
            return None
        common = await self.git("merge-base", commit, ours)
        if common == commit:
            return None
        if common != ours:
            raise UpgradeError(f"{self.root} has commits of its own: merge {target} yourself.")
        if await self.git("status", "--porcelain", "--untracked-files=no"):
            raise UpgradeError(
                f"{self.root} has changes that are not committed: commit or undo them first"
                f" (`git -C {self.root} status` shows them)."
            )
        release = await self.release(commit)
        before, after = [await self.changelog(each) for each in (ours, commit)]
        changes = added_lines(before, after)
        if not changes:
            changes = await self.git("log", "--format=- %s", f"-{COMMITS}", f"{ours}..{commit}")
        return ProgramVersion(release.version, commit, changes)

    async def prepare(self, release: ProgramVersion, folder: Path) -> Path:
        """Install the release in `folder`, beside this one; return its command."""
        await self.git("worktree", "prune")
        add = ("worktree", "add", "--quiet", "--detach", "--force")
        await self.git(*add, str(folder), release.origin)
        await make_install(folder)
        return folder / ".venv" / "bin" / "voltaire"

    async def switch(self, release: ProgramVersion) -> None:
        """Install the release in the place of this one."""
        await self.git("worktree", "prune")
        await self.git("merge", "--quiet", "--ff-only", release.origin)
        await make_install(self.root)

    async def back(self, release: ProgramVersion) -> None:
        """Return to the release that was installed before the last switch."""
        await self.git("reset", "--quiet", "--hard", release.origin)
        try:
            await make_install(self.root)
        except UpgradeError as error:
            rest = f"Once that is mended: `make -C {self.root} install`, then `voltaire setup --upgrade`."
            raise UpgradeError(f"{error} {rest}") from None

    async def release(self, commit: str) -> ProgramVersion:
        project = tomllib.loads(await self.git("show", f"{commit}:pyproject.toml"))["project"]
        origin = await self.git("rev-parse", f"{commit}^{{commit}}")
        return ProgramVersion(str(project["version"]), origin)

    async def changelog(self, commit: str) -> str:
        try:
            return await self.git("show", f"{commit}:{CHANGELOG}")
        except UpgradeError:
            return ""

    async def git(self, *words: str, terminal: bool = False) -> str:
        trusted = ("-c", f"safe.directory={self.root}")  # for root in another user's clone
        return await run("git", *trusted, "-C", str(self.root), *words, terminal=terminal)


async def make_install(root: Path) -> None:
    """Run `make install`, with the target of each optional part that is installed here."""
    known = (root / "Makefile").read_text("utf-8")  # another version may lack a part
    extras = [
        e for e in installed_extras() if re.search(rf"^[\w ]*\b{e}\b.*:", known, re.MULTILINE)
    ]
    await run("make", "--no-print-directory", "-C", str(root), "install", *extras)


# -- an environment of its own -------------------------------------------------


@dataclass(frozen=True)
class Environment:
    """A venv into which uv, pipx or pip installed a wheel; `wheel` is the new version's."""

    wheel: Path | None = None
    prefix: Path = Path(sys.prefix)

    @property
    def command(self) -> Path:
        return self.prefix / "bin" / "voltaire"

    @property
    def aside(self) -> Path:
        return self.prefix.with_name(f"{self.prefix.name}-before-upgrade")

    async def current(self) -> ProgramVersion:
        """Return this version; its origin is the wheel's path, or "" if it came from a package index."""
        came = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
        return ProgramVersion(version(DISTRIBUTION), unquote(urlsplit(came.get("url", "")).path))

    async def newest(self) -> ProgramVersion | None:
        if self.wheel is None:
            raise UpgradeError("Name the new version's wheel: voltaire upgrade --from FILE.")
        try:
            with ZipFile(self.wheel) as opened:
                names = opened.namelist()
                metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
                fields = message_from_bytes(opened.read(metadata))
                if fields["Name"] != DISTRIBUTION:
                    raise UpgradeError(f"{self.wheel} is a wheel of {fields['Name']}.")
                new = str(fields["Version"])
                log = next((name for name in names if name.endswith(f"/{CHANGELOG}")), "")
                after = opened.read(log).decode() if log else ""
        except (OSError, BadZipFile, StopIteration):
            raise UpgradeError(f"{self.wheel} is no wheel that can be read.") from None
        ours = self.prefix / "share" / "voltaire" / CHANGELOG
        before = ours.read_text("utf-8") if ours.exists() else ""
        if new == version(DISTRIBUTION) and after == before:
            return None
        return ProgramVersion(new, str(self.wheel.resolve()), added_lines(before, after))

    async def prepare(self, release: ProgramVersion, folder: Path) -> Path:
        await filled(folder, release.origin, installed_extras())
        return folder / "bin" / "voltaire"

    async def switch(self, release: ProgramVersion) -> None:
        """Rename the old environment and keep it, and return to it where the new one cannot be made."""
        extras = installed_extras()  # read before the environment moves
        if self.aside.exists():  # left of an earlier switch; `back` must not find it
            gone = Path(tempfile.mkdtemp(dir=self.prefix.parent, prefix=f"{self.aside.name}-"))
            self.aside.rename(gone / "prefix")
            shutil.rmtree(gone, ignore_errors=True)
        self.prefix.rename(self.aside)
        try:
            await filled(self.prefix, release.origin, extras)
        except BaseException:
            await self.back(release)
            raise
        for name in RECEIPTS:
            if (self.aside / name).exists():
                shutil.copy2(self.aside / name, self.prefix / name)

    async def back(self, release: ProgramVersion) -> None:
        if self.aside.exists():
            shutil.rmtree(self.prefix, ignore_errors=True)
            self.aside.rename(self.prefix)


InstalledProgram = Checkout | Environment


async def filled(prefix: Path, wheel: str, extras: Sequence[str]) -> None:
    """Make an environment with the wheel, its dependencies, and these optional parts."""
    python = str(prefix / "bin" / "python")
    if extras:
        wheel = f"{DISTRIBUTION}[{','.join(extras)}] @ {Path(wheel).as_uri()}"
    if uv := shutil.which("uv"):
        await run(uv, "venv", "--quiet", "--allow-existing", "--python", base_python(), str(prefix))
        await run(uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, wheel)
    else:
        await run(base_python(), "-m", "venv", str(prefix))
        quiet = ("--quiet", "--disable-pip-version-check")
        await run(python, "-m", "pip", "install", *quiet, wheel)


def installed_extras() -> list[str]:
    """The optional parts (calendar, mail, matrix, mcp, voice) whose packages are all installed."""
    packages: dict[str, list[str]] = {}
    for line in distribution(DISTRIBUTION).requires or ():
        if found := re.match(r"([\w.-]+).*;.*\bextra == [\"'](\w+)", line):
            packages.setdefault(found[2], []).append(found[1])
    return sorted(extra for extra, names in packages.items() if all(map(is_installed, names)))


def is_installed(name: str) -> bool:
    try:
        return bool(distribution(name))
    except PackageNotFoundError:
        return False


def base_python() -> str:
    return str(getattr(sys, "_base_executable", "") or sys.executable)


# -- running ------------------------------------------------------------------


def added_lines(before: str, after: str) -> str:
    compared = difflib.ndiff(before.splitlines(), after.splitlines())
    return "\n".join(line[2:] for line in compared if line.startswith("+ ")).strip()


async def run(
    *argv: str,
    environment: Mapping[str, str] = {},
    codes: tuple[int, ...] = (0,),
    seconds: float = STEP_SECONDS,
    terminal: bool = False,
) -> str:
    """Run a program and return its output. Raises UpgradeError, with the reason, for an exit code not in `codes`.

    A Ctrl-C of the terminal reaches it, and it may ask there, only if `terminal`.
    """
    inherited = {key: value for key, value in os.environ.items() if key not in MAKE}
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=inherited | dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=not terminal,
    )
    name = " ".join([Path(argv[0]).name, *argv[1:]])
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
    except TimeoutError:
        raise UpgradeError(f"`{name}` did not end within {seconds:.0f} s.") from None
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL) if process.returncode is None else ():
            with suppress(ProcessLookupError, TimeoutError):
                process.send_signal(number) if terminal else os.killpg(process.pid, number)
                await asyncio.wait_for(process.wait(), END_SECONDS)
    if process.returncode not in codes:
        lines = (err.decode("utf-8", "replace").strip() or out.decode("utf-8", "replace")).split(
            "\n"
        )
        # git's reason is followed by advice.
        why = next((line for line in lines if line.startswith("fatal: ")), lines[-1].strip())
        why = why.removeprefix("fatal: ").rstrip(".") or "no reason given"
        raise UpgradeError(f"`{name}` failed: {why}.")
    return out.decode("utf-8", "replace").strip()
