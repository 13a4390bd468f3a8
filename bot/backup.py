"""The whole state in one file, and back: the database, workspaces, measurements, configuration.

A backup is a gzipped tar: `manifest.json`, `voltaire.db` (a consistent copy made
while everything runs), `chats/...`, `backend/...`, `config.toml` without secrets
unless they are asked for. It is written beside its name first, never in part.
"""

import asyncio
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from agent.store import open_store
from agent.store.backup import backup as copy_database
from agent.store.database import migrations
from bot.settings import SECRETS
from bot.state import DATABASE

MANIFEST, CONFIG = "manifest.json", "config.toml"
LEFT_OUT = {"run", "slots", "models", "sandbox", "servers"}  # made anew, or pulled again
_SECRET_LINE = re.compile(
    rf"^\s*(?:{'|'.join(sorted(SECRETS | {'local_key'}))})\s*=.*$", re.MULTILINE
)


class BackupError(Exception):
    """`str` is one sentence."""


@dataclass(frozen=True, slots=True)
class Manifest:
    version: str
    schema: int
    made_at: str
    secrets: bool


async def backup(state: Path, target: Path, config: Path | None, *, secrets: bool) -> Manifest:
    """Write a backup of `state` to `target`; what is there already is not overwritten."""
    if target.exists():
        raise BackupError(f"{target} exists already; choose another name.")
    if not (state / DATABASE).exists():
        raise BackupError(f"There is no state at {state} yet.")
    with tempfile.TemporaryDirectory(dir=state, prefix="backup-") as folder:
        copy = Path(folder) / DATABASE
        async with open_store(state / DATABASE) as store:
            await copy_database(store, copy)
        manifest = Manifest(version("voltaire"), len(migrations()), now(), secrets)
        await asyncio.to_thread(pack, state, copy, target, config, manifest)
    return manifest


def pack(state: Path, copy: Path, target: Path, config: Path | None, manifest: Manifest) -> None:
    with whole(target) as part, tarfile.open(part, "w:gz", compresslevel=3) as tar:
        add_text(tar, MANIFEST, json.dumps(asdict(manifest)))
        tar.add(copy, DATABASE)
        if config and config.exists():
            text = config.read_text("utf-8")
            add_text(tar, CONFIG, text if manifest.secrets else _SECRET_LINE.sub("", text))
        for entry in sorted(state.iterdir()):
            if is_backed_up(entry):
                tar.add(entry, f"state/{entry.name}", filter=plain)


def is_backed_up(entry: Path) -> bool:
    ours = entry.name.startswith((DATABASE, "backup-", "voltaire.last-good"))
    return not ours and entry.name not in LEFT_OUT


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Files, folders and links; what else a sandbox may have made is of no use elsewhere."""
    kept = member.isfile() or member.isdir() or member.issym() or member.islnk()
    return member if kept else None


def add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    content = text.encode()
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = len(content), int(time.time()), 0o600
    tar.addfile(member, io.BytesIO(content))


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A name to write to; it becomes `target` when everything is written."""
    part = target.with_name(target.name + ".part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
        yield part
        part.replace(target)
    except OSError as error:
        raise BackupError(f"{target} cannot be written: {error.strerror or error}.") from None
    finally:
        part.unlink(missing_ok=True)


# -- and back -----------------------------------------------------------------


def inspect(source: Path) -> Manifest:
    """What a backup says of itself; BackupError when it is none, or newer than this program."""
    try:
        with tarfile.open(source) as tar:
            file = tar.extractfile(MANIFEST)
            fields = json.loads(file.read()) if file else {}
        manifest = Manifest(**fields)
    except OSError as error:
        raise BackupError(f"{source} cannot be read: {error.strerror or error}.") from None
    except (tarfile.TarError, KeyError, TypeError, ValueError, EOFError):
        raise BackupError(f"{source} is not a backup of Voltaire, or it is damaged.") from None
    if manifest.schema > len(migrations()):
        raise BackupError(
            f"The backup was made by version {manifest.version}, which is newer than this one; update first."
        )
    return manifest


def restore(source: Path, state: Path) -> Path | None:
    """Put a backup in the place of `state`; the old state, moved aside, or None where there was none.

    Nothing may run on that state. The backup is unpacked and checked beside it
    first, so that a damaged one changes nothing. The present configuration stays.
    """
    inspect(source)
    state.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f"{state.name}-restored-", dir=state.parent))
    try:
        unpack(source, new)
        return swap(new, state)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def holds_configuration(source: Path) -> bool:
    """Whether there is one in the backup; `restore` leaves it there."""
    with tarfile.open(source) as tar:
        return any(member.name == CONFIG for member in tar)


def unpack(source: Path, new: Path) -> None:
    try:
        with tarfile.open(source) as tar:
            # Debian's 3.11.2 has no extraction filters; ours is asked in every version.
            tar.extraction_filter = lambda member, _path: member
            for member in tar:
                if member.name == DATABASE or member.name.startswith("state/"):
                    tar.extract(placed_member(member, new), new)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise BackupError(f"{source} is damaged: {error}.") from None
    if not (new / DATABASE).is_file():
        raise BackupError(f"{source} is damaged: it holds no database.")
    new.chmod(0o700)


def placed_member(member: tarfile.TarInfo, new: Path) -> tarfile.TarInfo:
    """The member as it lies in the state; TarError where that would be outside of `new`."""
    placed = copy(member)
    placed.name = member.name.removeprefix("state/")
    placed.mode = member.mode & 0o755
    if member.islnk():
        placed.linkname = member.linkname.removeprefix("state/")
    for name in (placed.name, placed.linkname if member.islnk() else ""):
        if not (new / name).resolve().is_relative_to(new.resolve()):
            raise tarfile.TarError(f"{name} points out of it")
    return placed


def swap(new: Path, state: Path) -> Path | None:
    aside = state.with_name(f"{state.name}-before-{datetime.now(UTC):%Y%m%dT%H%M%S}")
    existed = state.exists()
    if existed:
        carry_over(state, new)
        state.rename(aside)
    new.rename(state)
    return aside if existed else None


def carry_over(state: Path, new: Path) -> None:
    """Models are not in backups: those that are here stay."""
    models = state / "models"
    if models.is_dir() and not (new / "models").exists():
        models.rename(new / "models")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
