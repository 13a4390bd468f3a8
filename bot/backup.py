"""The whole state in one file: the database, workspaces, measurements, configuration.

A backup is a gzipped tar: `voltaire.db` (a consistent copy, made while the bot runs), `state/...`,
`config.toml` without secrets unless they are asked for (then with the files that it names, in
`secrets/...`), and last `manifest.json` with a hash of each. It is written under another name, read back
and checked, and only then renamed. bot/restore.py restores it.
"""

import asyncio
import errno
import hashlib
import io
import json
import logging
import os
import re
import shutil
import sqlite3
import stat
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from agent.files import replacing
from agent.sandbox.history import HISTORY
from agent.store import open_store
from agent.store.backup import backup as copy_database
from agent.store.backup import check_copy
from agent.store.database import migrations
from bot.config_file import encoded
from bot.restore import (
    CONFIG,
    DEEPEST,
    MANIFEST,
    OWN_SECRETS,
    SECRET_FILES,
    BackupError,
    Manifest,
    is_left_out,
    listed,
    unpack,
)
from bot.secret_values import secret_files
from bot.settings import SECRETS
from bot.state import DATABASE, MATRIX

log = logging.getLogger(__name__)

DAYS, WEEKS = 7, 4  # for each of so many the newest scheduled backup is kept
NAME = re.compile(r"voltaire-(\d{4}-\d\d-\d\d)\.tar\.gz")
_SECRETS = SECRETS | {"local_key"}
_SECRET_LINE = re.compile(rf"^\s*(?:{'|'.join(sorted(_SECRETS))})\s*=.*$", re.MULTILINE)


async def backup(state: Path, target: Path, config: Path | None, *, secrets: bool) -> Manifest:
    """Write a backup of `state` to `target`, which must not exist. Raises BackupError."""
    if target.exists():
        raise BackupError(f"{target} exists already; choose another name.")
    if not (state / DATABASE).exists():
        raise BackupError(f"There is no state at {state} yet.")
    try:
        scratch = tempfile.TemporaryDirectory(dir=state, prefix="backup-")
    except OSError as error:  # a full disk
        raise BackupError(f"{state} cannot be written: {error.strerror}.") from None
    with scratch as folder, written_whole(target) as part:
        copy = Path(folder) / DATABASE
        async with open_store(state / DATABASE) as store:
            await copy_database(store, copy)
        await asyncio.to_thread(pack, state, copy, part, config, secrets)
        copy.unlink()
        manifest = await asyncio.to_thread(unpack, part, Path(folder), {DATABASE})
        await check_copy(copy, manifest.schema)
    return manifest


async def rotate(state: Path, folder: Path, config: Path | None, today: date) -> Path | None:
    """Make today's backup in `folder` and delete those that DAYS and WEEKS do not keep; None if it exists."""
    target = folder / f"voltaire-{today}.tar.gz"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if target.exists():
            return None
    except OSError as error:
        raise BackupError(f"{folder} cannot be used: {error.strerror}.") from None
    await backup(state, target, config, secrets=False)
    there = {path.name: path for path in folder.iterdir()}
    # After a moment with a wrong clock, today's may be older than others: it stays.
    for name in there.keys() - kept_names(there) - {target.name}:
        if NAME.fullmatch(name):
            there[name].unlink()
    return target


def kept_names(names: Mapping[str, object]) -> set[str]:
    days = sorted((found[1] for name in names if (found := NAME.fullmatch(name))), reverse=True)
    weeks: dict[tuple[int, int], str] = {}
    for day in days:
        with suppress(ValueError):  # no date
            weeks.setdefault(date.fromisoformat(day).isocalendar()[:2], day)
    return {f"voltaire-{day}.tar.gz" for day in {*days[:DAYS], *list(weeks.values())[:WEEKS]}}


# -- writing ------------------------------------------------------------------


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """A file to write to; it is renamed to `target` once everything is on the disk. Raises BackupError."""
    try:
        with replacing(target, sync=True) as part:
            yield part
    except OSError as error:
        raise BackupError(f"{target} cannot be written: {error.strerror or error}.") from None


def pack(state: Path, copy: Path, target: Path, config: Path | None, secrets: bool) -> None:
    with tarfile.open(target, "w:gz", compresslevel=3) as tar:
        archive = Archive(tar, target)
        archive.add(copy, DATABASE)
        if config and config.exists():
            text = readable_text(config)
            archive.add_text(CONFIG, text if secrets else without_secrets(text))
            if secrets:
                for key, path in secret_files(tomllib.loads(text)):
                    name = f"{SECRET_FILES}/{key}/{path.name}"
                    archive.add(path.resolve(), name, needed=True)  # a link would lead nowhere
        for entry in sorted(state.iterdir()):
            if not is_backed_up(entry, secrets=secrets):
                continue
            if entry.name == MATRIX:
                entry = copy_keys(entry, copy.parent / MATRIX)
            # A folder that the owner keeps on another disk is one in a backup.
            archive.add(entry.resolve(), f"state/{entry.name}")
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = Manifest(
            version("voltaire-agent"), len(migrations()), made_at, secrets, archive.files
        )
        archive.add_text(MANIFEST, json.dumps(asdict(manifest)))


def copy_keys(folder: Path, target: Path) -> Path:
    """Copy the Matrix session and its key database, while the bot may write, to a new folder; return that folder."""
    target.mkdir(mode=0o700)
    for path in folder.iterdir():
        if path.suffix == ".db":
            with (
                closing(sqlite3.connect(path)) as keys,
                closing(sqlite3.connect(target / path.name)) as kept,
            ):
                keys.backup(kept)
        elif not path.name.startswith(".") and "-journal" not in path.name:
            shutil.copy2(path, target)
    return target


def is_backed_up(entry: Path, *, secrets: bool) -> bool:
    if entry.name in OWN_SECRETS and not secrets:
        return False
    return not is_left_out(entry.name) and not holds_backups(entry)


def holds_backups(entry: Path) -> bool:
    """Whether the path is a backup or the folder of daily backups, which no backup should contain."""
    if entry.is_dir():
        return any(NAME.fullmatch(path.name) for path in entry.iterdir())
    return entry.name.endswith(".tar.gz")


def readable_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror}.") from None


def without_secrets(text: str) -> str:
    """The configuration's text without its secrets: lines are removed or, if that does not work, it is written anew."""

    def bare(values: dict[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in values.items() if key not in _SECRETS}
        return {k: bare(v) if isinstance(v, dict) else v for k, v in kept.items()}

    values = bare(tomllib.loads(text))
    text = _SECRET_LINE.sub("", text)
    with suppress(tomllib.TOMLDecodeError):
        if tomllib.loads(text) == values:
            return text
    return encoded(values).decode()


@dataclass
class Archive:
    """A tar that is being written to `target`, which is skipped where it lies among the files to add; `files` as
    in Manifest."""

    tar: tarfile.TarFile
    target: Path
    files: dict[str, str] = field(default_factory=dict)

    def add(self, path: Path, name: str, *, needed: bool = False) -> None:
        """Add a file, or a folder with all in it. What cannot be read is left out unless `needed`, as is all but
        files, folders and links: a sandbox may make sockets and pipes."""
        waiting = [(path, name)]
        while waiting:
            path, name = waiting.pop()
            file: BinaryIO | None = None
            below: list[Path] = []
            try:
                if path.name == self.target.name and path.samefile(self.target):
                    continue
                if name.split("/")[1::2] == ["chats", HISTORY]:  # state/chats/CHAT/history
                    continue
                if name.count("/") > DEEPEST:
                    raise OSError(errno.ENAMETOOLONG, "it lies too deep")
                mode = path.lstat().st_mode
                if stat.S_ISREG(mode):
                    # A sandbox may meanwhile replace it by a link or a pipe.
                    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                    file = os.fdopen(fd, "rb")
                elif stat.S_ISDIR(mode):
                    below = sorted(path.iterdir(), reverse=True)
                member = self.tar.gettarinfo(path, name, file)
            except OSError as error:
                why = error.strerror or error
                if needed:
                    raise BackupError(f"{path} cannot be read: {why}.") from None
                log.warning("left out of the backup: %s (%s)", path, why)
                continue
            with file or nullcontext():
                self._add_member(member, file)
            waiting += [(each, f"{name}/{each.name}") for each in below]

    def _add_member(self, member: tarfile.TarInfo | None, file: BinaryIO | None) -> None:
        if member is None:
            return
        if file and member.isreg():
            self._add_content(member, file)
        elif member.isdir():
            self.tar.addfile(member)
        elif member.issym() or member.islnk():
            self.tar.addfile(member)
            self.files[listed(member.name)] = listed(f"-> {member.linkname}")

    def add_text(self, name: str, text: str) -> None:
        content = text.encode()
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = len(content), int(time.time()), 0o600
        self._add_content(member, io.BytesIO(content))

    def _add_content(self, member: tarfile.TarInfo, file: BinaryIO) -> None:
        content = Content(file)
        self.tar.addfile(member, content)  # type: ignore[arg-type]
        self.files[listed(member.name)] = content.hash.hexdigest()


class Content:
    """Reads a file for a tar and hashes it; one that became shorter meanwhile is filled up with zeros."""

    def __init__(self, file: BinaryIO) -> None:
        self.hash = hashlib.sha256()
        self._file = file

    def read(self, count: int) -> bytes:
        piece = self._file.read(count).ljust(count, b"\0")
        self.hash.update(piece)
        return piece
