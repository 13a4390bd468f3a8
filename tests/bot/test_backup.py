"""A backup is the whole state, made while it is in use; what is not whole replaces nothing."""

import asyncio
import gzip
import io
import json
import os
import random
import shutil
import sqlite3
import tarfile
import tempfile
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from agent.store import Incoming, open_store
from bot.backup import backup, pack, rotate, without_secrets
from bot.restore import BackupError, restore, unpack
from bot.settings import load
from bot.totp import KEY_FILE
from fakes.patience import SECONDS


@pytest.fixture
async def state(tmp_path: Path) -> Path:
    state = tmp_path / "state"
    work = state / "chats" / "cli" / "work"
    work.mkdir(parents=True)
    (work / "notes.txt").write_text("kept")
    (work / "link").symlink_to("notes.txt")
    (work / "second").hardlink_to(work / "notes.txt")
    (state / "models").mkdir()
    (state / "models" / "big.gguf").write_text("not in a backup")
    async with open_store(state / "voltaire.db") as store:
        await store.inbox.add(Incoming("cli", "cli", "1", "hello"))
    return state


async def waiting(state: Path) -> list[str]:
    async with open_store(state / "voltaire.db") as store:
        return [row.incoming.text for row in await store.inbox.waiting("cli")]


def content(folder: Path) -> dict[str, str]:
    """Every name below it, with what it holds."""
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in sorted(folder.rglob("*"))
    }


async def test_there_and_back(state: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[telegram]\ntoken = "123:secret"\nowners = [1]\n')
    target = tmp_path / "b.tar.gz"
    async with open_store(state / "voltaire.db") as store:  # in use meanwhile
        await store.inbox.add(Incoming("cli", "cli", "2", "again"))
        manifest = await backup(state, target, config, secrets=False)
    assert unpack(target, tmp_path, ()) == manifest and target.stat().st_mode & 0o077 == 0
    with tarfile.open(target) as tar:
        assert "state/models" not in tar.getnames()
        stored = tar.extractfile("config.toml")
        assert stored and stored.read() == b"[telegram]\n\nowners = [1]\n"
    (state / "chats" / "cli" / "work" / "notes.txt").write_text("changed since")
    aside = await restore(target, state)
    assert aside and (aside / "chats/cli/work/notes.txt").read_text() == "changed since"
    work = state / "chats" / "cli" / "work"
    assert (work / "notes.txt").read_text() == "kept" and (work / "link").is_symlink()
    assert (work / "second").read_text() == "kept"
    assert (state / "models" / "big.gguf").exists()
    assert await waiting(state) == ["hello", "again"]
    assert state.stat().st_mode & 0o777 == 0o700


async def test_what_a_sandbox_may_have_left_stops_no_backup(state: Path, tmp_path: Path) -> None:
    work = state / "chats" / "cli" / "work"
    (work / "closed").mkdir()
    (work / "closed" / "file").write_text("in a folder without w")
    (work / "closed").chmod(0o555)
    (work / "nowhere").symlink_to("/nowhere")
    names = [os.fsdecode(name) for name in (b"\xff.txt", b"\xfe.txt", b"a\nb", b"\x1b[2J", b" ")]
    for name in names:
        (work / name).write_text(repr(name))
    (work / "latin").symlink_to(names[0])
    (work / "set-uid").touch(0o600)
    (work / "set-uid").chmod(0o6777)
    deep = work / ("a/" * 150)
    deep.mkdir(parents=True)
    (deep / "file").write_text("deep")
    (deep / ("b/" * 150)).mkdir(parents=True)
    await backup(state, tmp_path / "b", None, secrets=False)
    await restore(tmp_path / "b", tmp_path / "new")
    restored = tmp_path / "new" / "chats" / "cli" / "work"
    assert (restored / "closed" / "file").read_text() == "in a folder without w"
    assert (restored / "nowhere").is_symlink()
    assert [(restored / name).read_text() for name in names] == [*map(repr, names)]
    assert (restored / "latin").read_text() == repr(names[0])
    assert (restored / "set-uid").stat().st_mode & 0o7777 == 0o755
    assert (restored / ("a/" * 150) / "file").read_text() == "deep"


async def test_what_undo_keeps_is_left_out(state: Path, tmp_path: Path) -> None:
    for name in ("history", "work/history"):
        (state / "chats" / "cli" / name).mkdir()
        (state / "chats" / "cli" / name / "file").write_text("")
    await backup(state, tmp_path / "b.tar.gz", None, secrets=False)
    with tarfile.open(tmp_path / "b.tar.gz") as tar:
        kept = [name for name in tar.getnames() if name.endswith("history/file")]
    assert kept == ["state/chats/cli/work/history/file"]


@pytest.mark.parametrize("secrets", [False, True])
async def test_what_the_backend_keeps_for_its_servers_is_in_no_backup(
    state: Path, tmp_path: Path, secrets: bool
) -> None:
    for file in ("slots/a-b-9-1.chat", "urgent/run/key"):
        (state / file).parent.mkdir(parents=True)
        (state / file).write_text("a prompt, or the key of a server that has ended")
    await backup(state, tmp_path / "b.tar.gz", None, secrets=secrets)
    with tarfile.open(tmp_path / "b.tar.gz") as tar:
        names = tar.getnames()
    assert "voltaire.db" in names and not [
        name for name in names if "slots" in name or "urgent" in name
    ]


def test_a_folder_that_a_sandbox_has_closed_is_left_out() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "state" / "chats"
        (work / "closed").mkdir(parents=True)
        (work / "closed" / "file").write_text("")
        (work / "kept").write_text("")
        (work / "closed").chmod(0)
        Path(folder).chmod(0o777)
        (Path(folder) / "copy.db").write_text("")
        target, root = Path(folder) / "b.tar.gz", os.geteuid() == 0
        try:
            if root:  # who may read everything
                os.seteuid(12345)
            pack(Path(folder) / "state", Path(folder) / "copy.db", target, None, False)
        finally:
            if root:
                os.seteuid(0)
            (work / "closed").chmod(0o700)
        with tarfile.open(target) as tar:
            names = set(tar.getnames())
    assert "state/chats/kept" in names and "state/chats/closed/file" not in names


# -- what is not whole --------------------------------------------------------


async def test_none_of_a_hundred_corruptions_replaces_the_state(
    state: Path, tmp_path: Path
) -> None:
    (state / "chats" / "cli" / "work" / "bulk").write_bytes(random.Random(1).randbytes(20_000))
    good = tmp_path / "good"
    await backup(state, good, None, secrets=False)
    (state / "chats" / "cli" / "work" / "notes.txt").write_text("since")
    before, chance = content(tmp_path), random.Random(7)
    whole = good.read_bytes()
    places = [3000, *(chance.randrange(10, len(whole) - 12) for _ in range(99))]
    bad = tmp_path / "good"
    for place in places:
        wrong = bytes(byte ^ chance.randrange(1, 256) for byte in whole[place : place + 12])
        bad.write_bytes(whole[:place] + wrong + whole[place + 12 :])
        with pytest.raises(BackupError, match="damaged|cannot be read"):
            await restore(bad, state)
    bad.write_bytes(whole)
    assert content(tmp_path) == before


def packed(good: Path, target: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """A copy of a backup whose gzip and tar are right, with other contents."""
    with tarfile.open(target, "w:gz") as new, tarfile.open(good) as old:
        for member in old:
            file = old.extractfile(member) if member.isreg() else None
            held = change(member.name, file.read()) if file else b""
            if member.isreg():
                member.size = len(held)
            new.addfile(member, io.BytesIO(held))
    return target


def changed_database(target: Path, *statements: str) -> Callable[[str, bytes], bytes]:
    """Run statements on the database, and make its hash that of the result."""
    held = b""

    def change(name: str, old: bytes) -> bytes:
        nonlocal held
        if name == "manifest.json":
            manifest = json.loads(old)
            manifest["files"]["voltaire.db"] = sha256(held).hexdigest()
            return json.dumps(manifest).encode()
        if name != "voltaire.db":
            return old
        target.write_bytes(old)
        with closing(sqlite3.connect(target, isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement)
        held = target.read_bytes()
        target.unlink()
        return held

    return change


async def test_a_database_that_is_not_sound_replaces_nothing(state: Path, tmp_path: Path) -> None:
    good, bad, scratch = tmp_path / "good", tmp_path / "bad", tmp_path / "scratch"
    await backup(state, good, None, secrets=False)
    before = content(state)
    insert = "INSERT INTO conversations (chat, created_at, active_at) VALUES ('nobody', 0, 0)"
    for change, sentence in (
        (
            lambda name, old: b"garbage" * 999 if name == "voltaire.db" else old,
            "voltaire.db is not",
        ),
        (
            lambda name, old: b"x" + old[1:] if name.endswith("notes.txt") else old,
            "notes.txt is not",
        ),
        (changed_database(scratch, "PRAGMA user_version = 999"), "schema 999, not"),
        (changed_database(scratch, "PRAGMA foreign_keys = OFF", insert), "refers to nothing"),
        (changed_database(scratch, "DROP TABLE approvals"), "other tables"),
        (changed_database(scratch, "ALTER TABLE usage DROP COLUMN cached_tokens"), "other tables"),
    ):
        with pytest.raises(BackupError, match=sentence):
            await restore(packed(good, bad, change), state)
    assert content(state) == before and [*tmp_path.glob("state-*")] == []


FOR_EVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.mark.parametrize(
    "statements",
    [
        [f"CREATE TRIGGER t AFTER INSERT ON ledger BEGIN {FOR_EVER}; END"],
        [f"CREATE TRIGGER t BEFORE UPDATE ON chats BEGIN {FOR_EVER}; END"],
        ["DROP TABLE ledger", f"CREATE VIEW ledger AS {FOR_EVER}"],
        [f"CREATE VIEW more AS {FOR_EVER}"],
        ["CREATE TABLE more (x CHECK (length(hex(zeroblob(100000000))) > 0))"],
        ["CREATE INDEX more ON inbox (length(hex(zeroblob(100000000))))"],
        ["DROP TRIGGER notes_noted"],
        [
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_master SET sql = sql || ' ' WHERE name = 'notes'",
        ],
    ],
)
async def test_a_database_brings_no_statements_of_its_own(
    state: Path, tmp_path: Path, statements: list[str]
) -> None:
    await backup(state, tmp_path / "good", None, secrets=False)
    bad = packed(tmp_path / "good", tmp_path / "bad", changed_database(tmp_path / "x", *statements))
    with pytest.raises(BackupError, match="other tables"):
        await asyncio.wait_for(restore(bad, state), SECONDS)
    assert await waiting(state) == ["hello"]


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_headers_that_would_fill_the_memory_are_refused(tmp_path: Path, kind: bytes) -> None:
    with gzip.open(tmp_path / "bad", "wb", compresslevel=1) as file:
        header = tarfile.TarInfo("x")
        header.type, header.size = kind, 64 << 20
        file.write(header.tobuf(tarfile.GNU_FORMAT) + bytes(64 << 20))
    (tmp_path / "new").mkdir()
    tracemalloc.start()
    try:
        with pytest.raises(BackupError, match="not a backup"):
            unpack(tmp_path / "bad", tmp_path / "new")
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [2 << 20, 1 << 27, 1 << 40, 1 << 62])
@pytest.mark.parametrize(
    "kind", [tarfile.GNUTYPE_SPARSE, tarfile.CONTTYPE, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE]
)
def test_a_size_that_is_only_claimed_is_not_passed_over(
    tmp_path: Path, kind: bytes, size: int
) -> None:
    """Of 1 TiB that is not there, tarfile reads nothing a hundred million times."""
    with gzip.open(tmp_path / "bad", "wb") as file:
        for name, claimed, inside in (
            ("manifest.json", None, b'{"version":"1","schema":1,"made_at":"","secrets":false,"files":{}}'),
            ("state/x", size, b""),
        ):  # fmt: skip
            header = tarfile.TarInfo(name)
            header.type = kind if claimed else tarfile.REGTYPE
            header.size = claimed or len(inside)
            file.write(header.tobuf(tarfile.GNU_FORMAT) + inside.ljust(512 * bool(inside), b"\0"))
    (tmp_path / "new").mkdir()
    with pytest.raises(BackupError, match="not a backup"):
        unpack(tmp_path / "bad", tmp_path / "new")


def test_a_backup_is_no_longer_than_what_is_in_it(state: Path, tmp_path: Path) -> None:
    """Zeros behind its end, and the same folder again and again."""
    with tarfile.open(tmp_path / "long", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("state/notes"))
    with gzip.open(tmp_path / "long", "ab", compresslevel=1) as file:
        file.write(bytes(64 << 20))
    header = tarfile.TarInfo("state")
    header.type = tarfile.DIRTYPE
    with gzip.open(tmp_path / "again", "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT) * 100_000)
    (tmp_path / "new").mkdir()
    for name, sentence in (("long", "not a backup"), ("again", "state is in it twice")):
        with pytest.raises(BackupError, match=sentence):
            unpack(tmp_path / name, tmp_path / "new")


async def test_members_are_not_kept_in_memory(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "many", "w:gz", compresslevel=1) as tar:
        for number in range(20_000):
            tar.addfile(tarfile.TarInfo(f"state/{number:x}"))
    tracemalloc.start()
    try:
        with pytest.raises(BackupError, match="not a backup"):
            unpack(tmp_path / "many", tmp_path, ())
        assert tracemalloc.get_traced_memory()[1] < 12 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["history.db", "matrix/keys.db"])
async def test_the_databases_beside_it_hold_tables_only(
    state: Path, tmp_path: Path, name: str
) -> None:
    (state / name).parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(state / name)) as other:
        other.execute(f"CREATE VIEW minutes AS {FOR_EVER}")
    await backup(state, tmp_path / "b", None, secrets=True)
    with pytest.raises(BackupError, match="holds more than tables"):
        await restore(tmp_path / "b", tmp_path / "new")
    assert not (tmp_path / "new").exists()


async def test_a_cut_newer_or_foreign_file_changes_nothing(state: Path, tmp_path: Path) -> None:
    good = tmp_path / "good"
    await backup(state, good, None, secrets=False)
    cut = tmp_path / "cut"
    cut.write_bytes(good.read_bytes()[: good.stat().st_size * 2 // 3])
    cut_checksum = tmp_path / "cut checksum"
    cut_checksum.write_bytes(good.read_bytes()[:-4])
    newer = tmp_path / "newer"
    fields = {"version": "99.0", "schema": 999, "made_at": "", "secrets": False, "files": {}}
    packed(good, newer, lambda n, old: json.dumps(fields).encode() if "manifest" in n else old)
    outside = tmp_path / "outside"
    with tarfile.open(outside, "w:gz") as tar, tarfile.open(good) as whole:
        for member in whole.getmembers():
            tar.addfile(member, whole.extractfile(member) if member.isfile() else None)
        tar.add(tmp_path / "cut", "state/../../escaped")
    late, circle = tmp_path / "late", tmp_path / "circle"
    with tarfile.open(late, "w:gz") as tar:
        member = tarfile.TarInfo("state/notes")
        member.mtime = 1 << 70
        tar.addfile(member)
    with tarfile.open(circle, "w:gz") as tar:
        member = tarfile.TarInfo("state")
        member.type, member.linkname = tarfile.SYMTYPE, "state"
        tar.addfile(member)
        tar.addfile(tarfile.TarInfo("state/notes"))
    foreign, empty = tmp_path / "foreign", tmp_path / "empty"
    foreign.write_text("no tar")
    with gzip.open(empty, "wb"):
        pass
    before = content(tmp_path)
    for file, sentence in (
        (cut, "damaged"),
        (cut_checksum, "damaged"),
        (outside, "no part of it"),
        (newer, "newer than this one"),
        (late, "not a backup"),
        (circle, "is a link"),
        (foreign, "not a backup"),
        (empty, "not a backup"),
        (tmp_path / "absent", "cannot be read"),
    ):
        with pytest.raises(BackupError, match=sentence):
            await restore(file, state)
    assert content(tmp_path) == before


LINKS = [
    ("voltaire.db", "OUTSIDE/voltaire.db"),
    ("state", "OUTSIDE"),
    ("secrets/telegram.token_file/token", "OUTSIDE/secret"),
    ("state/../voltaire.db", "OUTSIDE/voltaire.db"),
    ("other", "state"),
    ("state/chats/cli/work", "OUTSIDE"),
    ("state/chats/cli/work/../work", "OUTSIDE"),
    ("state/chats/cli/other/notes", "OUTSIDE/notes"),
    ("state/mcp/time/program", "OUTSIDE"),
    ("state/outgoing", "chats"),
]
HARD_LINKS = ["voltaire.db", "state/chats/other/work/notes"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize(("name", "target"), LINKS)
def test_a_link_takes_the_place_of_no_file_of_the_program(
    tmp_path: Path, kind: bytes, name: str, target: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    with tarfile.open(tmp_path / "bad", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("state/note"))
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, target.replace("OUTSIDE", str(outside))
        tar.addfile(member)
    (tmp_path / "new").mkdir()
    with pytest.raises(BackupError, match="is a link|no part of it"):
        unpack(tmp_path / "bad", tmp_path / "new")
    assert not [*outside.iterdir()]


@pytest.mark.parametrize("target", HARD_LINKS)
def test_a_workspace_shares_no_file_with_the_program(tmp_path: Path, target: str) -> None:
    with tarfile.open(tmp_path / "bad", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo(target))
        member = tarfile.TarInfo("state/chats/cli/work/shared")
        member.type, member.linkname = tarfile.LNKTYPE, target
        tar.addfile(member)
    (tmp_path / "new").mkdir()
    with pytest.raises(BackupError, match="is a link"):
        unpack(tmp_path / "bad", tmp_path / "new")


NUMBER = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 40)}
WORK = "state/chats/cli/work"
ADDED = {
    "a folder for the database": ("voltaire.db", tarfile.DIRTYPE, {}, "in it twice"),
    "another's log of the database": ("state/voltaire.db-wal", tarfile.REGTYPE, {}, "no part of it"),
    "a log behind a corner": ("state/chats/../voltaire.db-journal", tarfile.REGTYPE, {}, "no part of it"),
    "a database in its place": ("state/voltaire.db", tarfile.REGTYPE, {}, "no part of it"),
    "a program": ("state/servers/x/llama-server", tarfile.REGTYPE, {}, "no part of it"),
    "a library": ("state/./cuda/libcuda.so", tarfile.REGTYPE, {}, "no part of it"),
    "a key of the page": ("state/run/page.key", tarfile.REGTYPE, {}, "no part of it"),
    "a folder that lies too deep": (f"{WORK}/{'a/' * 300}", tarfile.DIRTYPE, {}, "too deep"),
    "a file that lies too deep": (f"{WORK}/{'a/' * 300}x", tarfile.REGTYPE, {}, "too deep"),
    "a character device": (f"{WORK}/null", tarfile.CHRTYPE, {}, "neither a file nor a folder"),
    "a type that is unknown": (f"{WORK}/x", b"Z", {}, "neither a file nor a folder"),
    "a folder for its shared memory": ("voltaire.db-shm", tarfile.DIRTYPE, {}, "no part of it"),
    "a folder for its log": ("voltaire.db-wal", tarfile.DIRTYPE, {}, "no part of it"),
    "its log": ("voltaire.db-wal", tarfile.REGTYPE, {}, "no part of it"),
    "its journal": ("voltaire.db-journal", tarfile.REGTYPE, {}, "no part of it"),
    "a file where attempts are kept": ("attempts", tarfile.REGTYPE, {}, "no part of it"),
    "around a corner": ("state/../attempts", tarfile.REGTYPE, {}, "no part of it"),
    "a folder for another database": ("state/history.db", tarfile.DIRTYPE, {}, "cannot be read"),
    "a file for the state": ("state", tarfile.REGTYPE, {}, "Is a directory"),
    "a file for the folder of chats": ("state/chats", tarfile.REGTYPE, {}, "in it twice"),
    "a file without a name": ("", tarfile.REGTYPE, {}, "Is a directory"),
    "a size below nothing": (f"{WORK}/n", tarfile.REGTYPE, {"size": "-1"}, "not a backup"),
    "an absolute name": ("/state/notes", tarfile.REGTYPE, {}, "no part of it"),
    "a name of Windows": ("state\\..\\notes", tarfile.REGTYPE, {}, "no part of it"),
    "no database": ("state/history.db", tarfile.REGTYPE, {}, "history.db"),
    "a pipe": (f"{WORK}/pipe", tarfile.FIFOTYPE, {}, "neither a file nor a folder"),
    "a device": (f"{WORK}/sda", tarfile.BLKTYPE, {}, "neither a file nor a folder"),
    "a terabyte of nothing": (f"{WORK}/hole", tarfile.REGTYPE, NUMBER, "too little room"),
    "an older one": (f"{WORK}/hole", tarfile.REGTYPE, {"GNU.sparse.size": str(1 << 40), "GNU.sparse.map": "0,0"}, "too little room"),
    "a time that is none": (f"{WORK}/late", tarfile.DIRTYPE, {"mtime": "nan"}, "not a backup"),
    "a name too long": (f"{WORK}/" + "a" * 300, tarfile.REGTYPE, {}, "name too long"),
    "a path too long": (f"{WORK}/" + f"{'a' * 200}/" * 25 + "x", tarfile.REGTYPE, {}, "name too long"),
    "an end within its name": (f"{WORK}/a\0b", tarfile.REGTYPE, {}, "not what was backed up"),
    "a folder as configuration": ("config.toml", tarfile.DIRTYPE, {}, "configuration in the backup"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind", "headers", "sentence"), list(ADDED.values()), ids=list(ADDED)
)
async def test_a_member_that_no_backup_has_replaces_nothing(
    state: Path, tmp_path: Path, name: str, kind: bytes, headers: dict[str, str], sentence: str
) -> None:
    """The backup is right otherwise, and lists the member with its hash."""
    held = (b"1\n0\n0\n".ljust(512, b"\0") if headers else b"junk" * 300) * (
        kind == tarfile.REGTYPE
    )
    config, new = tmp_path / "config.toml", tmp_path / "new"
    await backup(state, tmp_path / "good", None, secrets=False)
    with tarfile.open(tmp_path / "good") as old, tarfile.open(tmp_path / "bad", "w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.size, member.pax_headers = kind, len(held), headers
        tar.addfile(member, io.BytesIO(held))
        for each in old:
            file = old.extractfile(each) if each.isreg() else None
            inside = file.read() if file else b""
            if each.name == "manifest.json":
                manifest = json.loads(inside)
                if kind == tarfile.REGTYPE:
                    manifest["files"][name] = sha256(held).hexdigest()
                inside = json.dumps(manifest).encode()
                each.size = len(inside)
            tar.addfile(each, io.BytesIO(inside))
    before = content(tmp_path)
    with pytest.raises(BackupError, match=sentence):
        await asyncio.wait_for(restore(tmp_path / "bad", new, config), SECONDS)
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "first"},
        {"files": {}},
        {"files": ["voltaire.db"]},
        {"files": {"voltaire.db": ["x"]}},
        {"made_at": "\ud800"},
        {"made_at": " " * 20_000},
    ],
)
async def test_a_manifest_of_other_types_or_without_end_is_refused(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    monkeypatch.setattr("bot.restore.MANIFEST_BYTES", 10_000)
    await backup(state, tmp_path / "good", None, secrets=False)

    def changed(name: str, old: bytes) -> bytes:
        return json.dumps(json.loads(old) | change).encode() if name == "manifest.json" else old

    with pytest.raises(BackupError, match="not a backup of Voltaire|not what was backed up"):
        await restore(packed(tmp_path / "good", tmp_path / "bad", changed), state)
    assert await waiting(state) == ["hello"]


async def test_nothing_in_a_backup_moves_the_cursor(state: Path, tmp_path: Path) -> None:
    await backup(state, tmp_path / "good", None, secrets=False)
    newer = {"version": "\x1b[2J" + "9" * 10_000, "schema": 999}

    def changed(name: str, old: bytes) -> bytes:
        return json.dumps(json.loads(old) | newer).encode() if name == "manifest.json" else old

    with pytest.raises(BackupError, match="newer than this one") as error:
        await restore(packed(tmp_path / "good", tmp_path / "bad", changed), state)
    assert str(error.value).isprintable() and len(str(error.value)) < 200


@pytest.mark.parametrize(
    "config",
    [
        b"a = [[",
        b"\xff\xfe",
        b"state = 3\nbackend = []",
        b"a = " + b"[" * 20_000,
        b"[telegram]\n#" + b"x" * 70_000,
    ],
)
async def test_a_configuration_that_cannot_be_read_replaces_nothing(
    state: Path, tmp_path: Path, config: bytes
) -> None:
    (tmp_path / "config.toml").write_text("[telegram]\n")
    await backup(state, tmp_path / "good", tmp_path / "config.toml", secrets=False)

    def changed(name: str, old: bytes) -> bytes:
        if name == "manifest.json":
            manifest = json.loads(old)
            manifest["files"]["config.toml"] = sha256(config).hexdigest()
            return json.dumps(manifest).encode()
        return config if name == "config.toml" else old

    bad = packed(tmp_path / "good", tmp_path / "bad", changed)
    with pytest.raises(BackupError, match="configuration in the backup"):
        await restore(bad, tmp_path / "there", tmp_path / "other.toml")
    assert not (tmp_path / "there").exists() and not (tmp_path / "other.toml").exists()


async def test_a_folder_on_another_disk_is_backed_up(state: Path, tmp_path: Path) -> None:
    (state / "chats").rename(tmp_path / "disk")
    (state / "chats").symlink_to(tmp_path / "disk")
    await backup(state, tmp_path / "good", None, secrets=False)
    await restore(tmp_path / "good", tmp_path / "elsewhere")
    work = tmp_path / "elsewhere" / "chats" / "cli" / "work"
    assert (work / "notes.txt").read_text() == "kept" and not work.parents[1].is_symlink()


def test_what_would_fill_the_disk_is_not_unpacked(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "bomb", "wb") as packed_tar:
        member = tarfile.TarInfo("state/zeros")
        member.size = 1 << 50
        packed_tar.write(member.tobuf(tarfile.GNU_FORMAT))
    (tmp_path / "new").mkdir()
    with pytest.raises(BackupError, match="too little room"):
        unpack(tmp_path / "bomb", tmp_path / "new")


async def test_when_the_last_step_fails_the_old_state_is_back(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backup(state, tmp_path / "b", None, secrets=False)
    before = content(state)
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name == "models":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(BackupError, match=f"No space left on device.*is at {state}, as it was"):
        await restore(tmp_path / "b", state)
    assert content(state) == before and [*tmp_path.glob("state-*")] == []


async def test_when_the_configuration_cannot_be_written_nothing_is_restored(
    state: Path, tmp_path: Path
) -> None:
    """Written after the swap, it left the backup's state in place: a second try kept no configuration at all."""
    old, new, etc = tmp_path / "old.toml", tmp_path / "new", tmp_path / "etc"
    (tmp_path / "telegram-token").write_text("123:secret\n")
    old.write_text(WIZARDS.format(folder=tmp_path))
    await backup(state, tmp_path / "b", old, secrets=True)
    (etc / "config.toml").mkdir(parents=True)  # in its place
    (etc / "telegram-token").write_text("of another bot\n")
    before = content(tmp_path)
    with pytest.raises(BackupError, match=r"Nothing was restored \(.*config.toml.*\)\.$"):
        await restore(tmp_path / "b", new, etc / "config.toml")
    with pytest.raises(BackupError, match=f"Nothing was restored .* is at {state}, as it was"):
        await restore(tmp_path / "b", state, etc / "config.toml")
    assert content(tmp_path) == before
    (etc / "config.toml").rmdir()
    await restore(tmp_path / "b", new, etc / "config.toml")
    assert (etc / "telegram-token").read_text() == "123:secret\n"
    assert {path.name for path in etc.iterdir()} == {"config.toml", "telegram-token"}


# -- secrets, another place ---------------------------------------------------

WIZARDS = (
    '[telegram]\ntoken_file = "{folder}/telegram-token"\nowners = [1]\n[state]\ndir = "/old"\n'
)


async def test_secrets_move_too(state: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    (old / "telegram-token").write_text("123:secret\n")
    (old / "config.toml").write_text(WIZARDS.format(folder=old) + '[backend]\nsocket = "/old/s"\n')
    await backup(state, tmp_path / "b", old / "config.toml", secrets=True)
    shutil.rmtree(old)
    await restore(tmp_path / "b", new / "state", new / "etc" / "config.toml")
    text = (new / "etc" / "config.toml").read_text()
    assert (new / "etc" / "telegram-token").read_text() == "123:secret\n"
    for line in (
        f'token_file = "{new}/etc/telegram-token"',
        f'dir = "{new}/state"',
        f'socket = "{new}/state/run/backend.sock"',
    ):
        assert line in text
    assert all(path.stat().st_mode & 0o077 == 0 for path in (new / "etc").iterdir())


SERVERS = """\
[agent.mcp.one]
command = ["one"]
env_file = "~/one/env"
network = ["api.example.org"]
[agent.mcp.one.secrets.KEY]
file = "{folder}/key"
host = "api.example.org"
[agent.mcp.two]
command = ["two"]
env_file = "{folder}/two/env"
"""


async def test_each_mcp_server_gets_its_own_secrets_back(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, held in (("one/env", b"A=1"), ("two/env", b"B=2"), ("key", b"s3cret\xff")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(held)
    (tmp_path / "config.toml").write_text(SERVERS.format(folder=tmp_path))
    await backup(state, tmp_path / "b", tmp_path / "config.toml", secrets=True)
    await restore(tmp_path / "b", tmp_path / "new", tmp_path / "etc" / "config.toml")
    found = load(tmp_path / "etc" / "config.toml").agent.mcp
    named = (found["one"].env_file, found["two"].env_file, found["one"].secrets["KEY"].file)
    assert {Path(name).parent for name in named} == {tmp_path / "etc"}
    assert [Path(name).read_bytes() for name in named] == [b"A=1", b"B=2", b"s3cret\xff"]


async def test_a_secret_that_no_key_names_is_left_out(state: Path, tmp_path: Path) -> None:
    (tmp_path / "telegram-token").write_text("123:secret\n")
    (tmp_path / "config.toml").write_text(WIZARDS.format(folder=tmp_path))
    await backup(state, tmp_path / "good", tmp_path / "config.toml", secrets=True)
    planted = [f"secrets/{key}" for key in ("x", "telegram/owners/x", "backend/server/x")]
    with tarfile.open(tmp_path / "bad", "w:gz") as new, tarfile.open(tmp_path / "good") as old:
        for name in planted:
            new.addfile(tarfile.TarInfo(name))
        for member in old:
            file = old.extractfile(member) if member.isreg() else None
            held = file.read() if file else b""
            if member.name == "manifest.json":
                manifest = json.loads(held)
                manifest["files"] |= dict.fromkeys(planted, sha256(b"").hexdigest())
                held = json.dumps(manifest).encode()
                member.size = len(held)
            new.addfile(member, io.BytesIO(held))
    await restore(tmp_path / "bad", tmp_path / "new", tmp_path / "etc" / "config.toml")
    made = load(tmp_path / "etc" / "config.toml")
    assert (made.telegram.owners, made.backend.server) == ([1], "auto")
    assert {path.name for path in (tmp_path / "etc").iterdir()} == {"config.toml", "telegram-token"}


async def test_secrets_that_cannot_be_read_are_said(state: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(WIZARDS.format(folder="/nowhere"))
    with pytest.raises(BackupError, match="/nowhere/telegram-token cannot be read: No such file"):
        await backup(state, tmp_path / "b", tmp_path / "config.toml", secrets=True)
    assert not (tmp_path / "b").exists()


def test_no_secret_hides_within_a_line() -> None:
    text = without_secrets('telegram = { token = "123:secret", owners = [1] }\n')
    assert text == "[telegram]\nowners = [1]\n"
    assert "s3" not in without_secrets('[backend]\napi_key = """\ns3\n"""\n')


# -- on a schedule ------------------------------------------------------------


async def test_one_a_day_is_kept_seven_days_and_four_weeks(state: Path, tmp_path: Path) -> None:
    folder, day = tmp_path / "backups", date(2026, 3, 1)
    folder.mkdir()
    for number in range(60):
        (folder / f"voltaire-{day + timedelta(number)}.tar.gz").write_text("earlier")
    (folder / "mine.txt").write_text("stays")
    today = day + timedelta(60)  # 30 April, a Thursday
    made = await rotate(state, folder, None, today)
    assert made and unpack(made, tmp_path, ()).schema
    assert await rotate(state, folder, None, today) is None
    names = sorted(path.name.removeprefix("voltaire-")[:10] for path in folder.iterdir())
    week = [f"2026-04-{number}" for number in range(24, 31)]
    assert names == ["2026-04-12", "2026-04-19", *week, "mine.txt"]
    (tmp_path / "file").touch()
    with pytest.raises(BackupError, match="file cannot be used: "):
        await rotate(state, tmp_path / "file", None, today)
    # A day that fails takes none of those away.
    (state / "voltaire.db").unlink()
    with pytest.raises(BackupError):
        await rotate(state, folder, None, today + timedelta(1))
    assert len(list(folder.iterdir())) == 10


async def test_no_backup_holds_those_that_lie_in_the_state(state: Path, tmp_path: Path) -> None:
    """As `/var/lib/voltaire/backups`, where the services may write: each was larger than all before it."""
    (state / "chats" / "cli" / "work" / "bulk").write_bytes(random.Random(1).randbytes(100_000))
    sizes = []
    for number in range(3):
        made = await rotate(state, state / "backups", None, date(2026, 3, 1 + number))
        assert made
        sizes.append(made.stat().st_size)
    assert max(sizes) - min(sizes) < 10_000
    await backup(state, state / "by-hand.tar.gz", None, secrets=False)
    await backup(state, state / "chats" / "cli" / "again.tar.gz", None, secrets=False)
    with tarfile.open(state / "chats" / "cli" / "again.tar.gz") as tar:
        held = tar.getnames()
    assert not [name for name in held if "tar.gz" in name] and "state/chats/cli/work/bulk" in held


async def test_a_clock_that_was_behind_takes_no_backup_away(state: Path, tmp_path: Path) -> None:
    folder, day = tmp_path / "b", date(2026, 3, 1)
    folder.mkdir()
    for number in range(40):
        (folder / f"voltaire-{day + timedelta(number)}.tar.gz").write_text("earlier")
    made = await rotate(state, folder, None, date(2025, 1, 1))
    assert made and made.exists() and len(list(folder.iterdir())) == 10
    await rotate(state, folder, None, day + timedelta(40))
    assert not made.exists() and len(list(folder.iterdir())) == 9


async def test_what_is_there_is_not_overwritten(state: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(BackupError, match="exists already"):
        await backup(state, tmp_path / "taken", None, secrets=False)
    assert (tmp_path / "taken").read_text() == "mine"
    with pytest.raises(BackupError, match="cannot be written"):
        await backup(state, tmp_path / "no" / "folder", None, secrets=False)
    with pytest.raises(BackupError, match="no state"):
        await backup(tmp_path / "none", tmp_path / "x", None, secrets=False)


@pytest.mark.parametrize("secrets", [False, True])
async def test_the_matrix_session_and_its_keys_are_secrets(
    state: Path, tmp_path: Path, secrets: bool
) -> None:
    (state / "matrix").mkdir()
    (state / "matrix" / "session.json").write_text("{}")
    with closing(sqlite3.connect(state / "matrix" / "keys.db")) as keys:
        keys.execute("CREATE TABLE keys (key)")
        keys.commit()
        keys.execute("INSERT INTO keys VALUES ('in use meanwhile')")  # not committed
        await backup(state, tmp_path / "b.tar.gz", None, secrets=secrets)
    await restore(tmp_path / "b.tar.gz", tmp_path / "new")
    folder = tmp_path / "new" / "matrix"
    assert folder.exists() == secrets
    if secrets:
        assert {path.name for path in folder.iterdir()} == {"session.json", "keys.db"}
        with closing(sqlite3.connect(folder / "keys.db")) as keys:
            assert keys.execute("SELECT count(*) FROM keys").fetchone() == (0,)


async def test_what_only_a_backup_with_secrets_holds_stays_where_it_is(
    state: Path, tmp_path: Path
) -> None:
    """Restored in its place, as by a rollback over a migration: nobody is logged out, and the state before is whole."""
    files = ("matrix/session.json", "mcp-tokens/x.json", KEY_FILE)
    for name in files:
        (state / name).parent.mkdir(exist_ok=True)
        (state / name).write_text(name)
    await backup(state, tmp_path / "b.tar.gz", None, secrets=False)
    before = await restore(tmp_path / "b.tar.gz", state)
    assert before
    for name in files:
        assert (state / name).read_text() == (before / name).read_text() == name
