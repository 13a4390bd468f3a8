"""Replaces the state by a backup, all of which is read and checked before anything is moved."""

import asyncio
import errno
import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter

from agent.files import give
from agent.mcp.servers import SIGN_INS
from agent.sandbox import limits
from agent.sandbox.output_buffer import visible
from agent.store import open_store
from agent.store.backup import check_copy, check_tables_only
from agent.store.database import migrations
from agent.store.errors import StoreError
from backend.client import default_socket
from bot import config_file, totp
from bot.secret_values import secret_files
from bot.state import DATABASE, MATRIX

MANIFEST, CONFIG, SECRET_FILES = "manifest.json", "config.toml", "secrets"
PARTS = {MANIFEST, CONFIG, SECRET_FILES, DATABASE, "state"}
# Of the state, what is made or downloaded again.
LEFT_OUT = {"run", "slots", "urgent", "cuda", "models", "sandbox", "servers", "mail"}
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
RESERVE = 16 << 20  # bytes that stay free on the disk
MANIFEST_BYTES, CONFIG_BYTES = 64 << 20, 64 << 10  # larger ones are refused
HEADER_BYTES = 1 << 20  # of a long name and what else stands before a member
DEEPEST = limits.DEEPEST + 10  # folders: a workspace's, and those above it
END_BYTES = 1 << 20  # of zeros behind the last member, at most
OWN_SECRETS = (totp.KEY_FILE, MATRIX, SIGN_INS)  # in the state; in a backup only with `secrets`


class BackupError(Exception):
    """A backup cannot be made or restored. `str` is one sentence for a person, with nothing hidden in its names."""

    def __init__(self, sentence: str) -> None:
        super().__init__(visible(sentence))


@dataclass(frozen=True, slots=True)
class Manifest:
    """The list of files in a backup. `files`: by `listed` name in the tar, a file's SHA-256, or `-> TARGET` for a link."""

    version: str
    schema: int
    made_at: str
    secrets: bool
    files: dict[str, str]


_MANIFEST = TypeAdapter(Manifest)


def listed(name: str) -> str:
    """The name in a form that JSON can hold: a file's may be bytes of no encoding."""
    return name.encode("utf-8", "backslashreplace").decode()


def is_left_out(name: str) -> bool:
    """Whether no backup holds that entry of the state: programs, keys and the like, or what lies beside the database."""
    return name in LEFT_OUT or name.startswith((DATABASE, "backup-", "voltaire.last-good"))


async def restore(source: Path, state: Path, configuration: Path | None = None) -> Path | None:
    """Replace `state` by a backup; return the path that the old state was moved to, None if there was none.

    Nothing may be running on that state. The backup is unpacked and checked beside it, and gets its owner.
    What a backup without secrets leaves out (the Matrix session, sign-ins, the second factor) is taken from
    the old state. Where `configuration` is a path, the backup's configuration is written there, adapted to
    this state, with its secret files beside it. Raises BackupError, and the state is as it was.
    """
    state = state.resolve()
    try:
        state.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{state.name}-restored-", dir=state.parent))
    except OSError as error:
        raise BackupError(f"{state.parent} cannot be written: {error.strerror}.") from None
    try:
        new = folder / "state"
        new.mkdir()
        manifest = await asyncio.to_thread(unpack, source, folder)
        try:
            await check_copy(folder / DATABASE, manifest.schema)
            for path in (*new.glob("*.db"), *new.glob(f"{MATRIX}/*.db")):
                await asyncio.to_thread(check_tables_only, path)
        except StoreError as error:
            raise BackupError(f"{source} is damaged: {error}") from None
        async with open_store(folder / DATABASE) as store:
            facts = {"act": "restore", "file": str(source), "made_at": manifest.made_at}
            await store.ledger.record("admin", **facts)
        (folder / DATABASE).rename(new / DATABASE)
        new.chmod(0o700)
        await asyncio.to_thread(keep_secrets, state, new)
        if state.exists():
            owner = state.stat()
            give(new, owner.st_uid, owner.st_gid)
        files: dict[Path, bytes] = {}
        if configuration and (folder / CONFIG).exists():
            try:
                files = configuration_files(folder, configuration, state)
            except Exception:  # noqa: BLE001 - nested too deep, or another value where a section belongs
                raise BackupError("The configuration in the backup cannot be read.") from None
        await asyncio.to_thread(os.sync)  # a power cut after the swap must find all of it
        with replaced(files, state):
            return swap(new, state)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep_secrets(state: Path, new: Path) -> None:
    """Copy the secrets that a backup may lack: without them all sessions would be lost."""
    for name in OWN_SECRETS:
        if (new / name).exists():
            continue
        try:
            if (state / name).is_dir():
                shutil.copytree(state / name, new / name, symlinks=True)
            elif (state / name).exists():
                shutil.copy2(state / name, new / name)
        except (OSError, shutil.Error) as error:
            raise BackupError(f"{state / name} cannot be copied: {error}.") from None


class BoundedHeader(tarfile.TarInfo):
    """A member of a tar. Raises TarError for one whose headers alone would fill the memory, or that no backup has: of a
    sparse file tarfile passes over the size that it claims, at the end of the data, too."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) and self.size > HEADER_BYTES:
            raise tarfile.TarError
        return super()._proc_member(tar)  # type: ignore[misc, no-any-return]


def unpack(source: Path, folder: Path, wanted: Collection[str] | None = None) -> Manifest:
    """Read the whole backup and unpack it, or only the files `wanted`, into `folder`.

    Raises BackupError unless the file's own checksum and the hash of each file in it are right.
    """
    damaged = BackupError(f"{source} is not a backup of Voltaire, or it is damaged.")
    found: dict[str, str] = {}
    names = set[str]()
    manifest = None
    try:
        with gzip.open(source) as stream:
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=BoundedHeader) as tar:
                # Debian's 3.11.2 has no extraction filters; ours is asked in every version.
                tar.extraction_filter = lambda member, _path: member
                for member in tar:
                    tar.members.clear()  # type: ignore[attr-defined]  # kept otherwise
                    if member.name in names:
                        raise OutsideError(f"{member.name} is in it twice")
                    names.add(member.name)
                    if member.name == MANIFEST and (file := tar.extractfile(member)):
                        manifest = _MANIFEST.validate_json(file.read(MANIFEST_BYTES))
                        continue
                    if unpacked := wanted is None or member.name in wanted:
                        if member.size > shutil.disk_usage(folder).free - RESERVE:
                            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                        tar.extract(placed_member(member, folder), folder)
                    if member.issym() or member.islnk():
                        found[listed(member.name)] = listed(f"-> {member.linkname}")
                    elif member.isreg():
                        file = (folder / member.name).open("rb") if unpacked else None
                        with file or tar.extractfile(member) as content:  # type: ignore[union-attr]
                            digest = hashlib.file_digest(content, "sha256")  # type: ignore[arg-type]
                        found[listed(member.name)] = digest.hexdigest()
            if len(stream.read(END_BYTES)) == END_BYTES:  # read, as the checksum is at the end
                raise damaged
    except gzip.BadGzipFile:
        raise damaged from None
    except OSError as error:
        if error.errno in NO_ROOM:
            place = f"{folder.parent} has too little room for what is in {source}"
            raise BackupError(f"{place}: {error.strerror}.") from None
        raise BackupError(f"{source} cannot be read: {error.strerror or error}.") from None
    except OutsideError as error:
        raise BackupError(f"{source} is damaged: {error}.") from None
    except Exception:  # noqa: BLE001 - tarfile trusts the times, owners and links of what it unpacks
        raise damaged from None
    if manifest is None:
        raise damaged
    if manifest.schema > len(migrations()):
        made_by = f"The backup was made by version {manifest.version[:40]}"
        raise BackupError(f"{made_by}, which is newer than this one; update first.")
    if manifest.files != found:
        wrong = sorted({*manifest.files.items()} ^ {*found.items()})
        raise BackupError(f"{source} is damaged: {wrong[0][0]} is not what was backed up.")
    if DATABASE not in found:
        raise BackupError(f"{source} is damaged: it holds no database.")
    return manifest


class OutsideError(Exception):
    """A member of a tar would lie outside of the folder or too deep, is no file, folder or link, or is there twice."""


def placed_member(member: tarfile.TarInfo, folder: Path) -> tarfile.TarInfo:
    """The member as it is unpacked: owned by this user, folders writable, nothing set-uid or writable to others."""
    placed = copy(member)
    placed.mode = member.mode & 0o755 | (0o700 if member.isdir() else 0)
    placed.uid, placed.gid, placed.uname, placed.gname = os.geteuid(), os.getegid(), "", ""
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        raise OutsideError(f"{member.name} is neither a file nor a folder")
    if placed.name.count("/") > DEEPEST:
        raise OutsideError(f"{placed.name[-40:]} lies too deep")
    whole, place = folder.resolve(), (folder / placed.name).resolve()
    # What stands beside a database may be taken for its log.
    parts = place.relative_to(whole).parts if place.is_relative_to(whole) else ("",)
    if {*parts[:1]} - PARTS or (parts[:1] == ("state",) and is_left_out("".join(parts[1:2]))):
        raise OutsideError(f"{placed.name} is no part of it")
    if member.issym() or member.islnk():
        home = isolated_folder(folder, placed.name)
        if not home or (member.islnk() and home != isolated_folder(folder, placed.linkname)):
            raise OutsideError(f"{member.name} is a link")
    return placed


def isolated_folder(folder: Path, name: str) -> tuple[str, ...]:
    """The parts of the folder of a sandbox in which a member lies, where links may lead anywhere; () for a place in
    which the program itself would follow them."""
    place, state = (folder / name).parent.resolve(), folder.resolve() / "state"
    parts = place.relative_to(state).parts if place.is_relative_to(state) else ()
    return parts[:3] if parts[::2][:2] in (("chats", "work"), ("mcp", "program")) else ()


def swap(new: Path, state: Path) -> Path | None:
    """Move the state aside and `new` into its place, keeping the models, which no backup holds; all or nothing."""
    aside = state.with_name(f"{state.name}-before-{datetime.now(UTC):%Y%m%dT%H%M%S}")
    done: list[tuple[Path, Path]] = []
    moves = [(state, aside)] if state.exists() else []
    moves += [(new, state)]
    if (state / "models").is_dir() and not (new / "models").exists():
        moves += [(aside / "models", state / "models")]
    try:
        for source, target in moves:
            source.rename(target)
            done.append((source, target))
    except OSError as error:
        try:
            for source, target in reversed(done):
                target.rename(source)
        except OSError:
            raise nothing_restored(error, f"; the state before is at {aside}") from None
        raise nothing_restored(error, as_it_was(state)) from None
    return aside if (state, aside) in done else None


def nothing_restored(error: OSError, where: str) -> BackupError:
    name = f"{error.filename}: " if error.filename else ""
    return BackupError(f"Nothing was restored ({name}{error.strerror}){where}.")


def as_it_was(state: Path) -> str:
    return f"; the state before is at {state}, as it was" if state.exists() else ""


@contextmanager
def replaced(files: Mapping[Path, bytes], state: Path) -> Iterator[None]:
    """Write these files for the block; if that or the block fails, restore what was there."""
    before = {path: path.with_name(f".{path.name}.before") for path in files}
    written: list[Path] = []
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
            before[path].unlink(missing_ok=True)
            if path.exists():
                os.link(path, before[path])
            written.append(path)
            config_file.replace_file(path, content)
        yield
    except (OSError, BackupError) as error:
        for path in written:
            if before[path].exists():
                before[path].replace(path)
            else:
                path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise nothing_restored(error, as_it_was(state)) from None
        raise
    finally:
        for path in before.values():
            with suppress(OSError):
                path.unlink()


def configuration_files(folder: Path, path: Path, state: Path) -> dict[Path, bytes]:
    """The backup's configuration, adapted to this state, for `path`, and the secret files beside it.

    Keys of secret files that are not in the backup are dropped. Where two files have the same name, the
    later one is named by its key.
    """
    if (folder / CONFIG).stat().st_size > CONFIG_BYTES:
        raise ValueError
    values = tomllib.loads((folder / CONFIG).read_text("utf-8"))
    files: dict[Path, bytes] = {}
    named = {key for key, _ in secret_files(values)}
    config_file.put(values, "state.dir", str(state))
    if config_file.get(values, "backend.socket"):
        config_file.put(values, "backend.socket", str(default_socket(state)))
    forget_secret_files(values)
    taken = {path.name}
    for secret in sorted((folder / SECRET_FILES).rglob("*")):
        key = secret.parent.relative_to(folder / SECRET_FILES).parts
        if secret.is_file() and "/".join(key) in named:
            name = secret.name if secret.name not in taken else "-".join(key)
            taken.add(name)
            kept = path.parent / name
            files[kept] = secret.read_bytes()
            config_file.put(values, ".".join(key), str(kept))
    return {**files, path: config_file.encoded(values)}


def forget_secret_files(values: config_file.Values) -> None:
    for name, value in list(values.items()):
        if isinstance(value, dict):
            forget_secret_files(value)
        elif name.endswith("_file"):
            del values[name]
