"""A backup is the whole state, made while it is in use; a damaged or newer one changes nothing."""

import json
import tarfile
from pathlib import Path

import pytest

from agent.store import Incoming, open_store
from bot.backup import BackupError, backup, inspect, restore


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
        return [row.incoming.text for row in await store.inbox.waiting("cli", {"cli"})]


async def test_there_and_back(state: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[telegram]\ntoken = "123:secret"\nowners = [1]\n')
    target = tmp_path / "b.tar.gz"
    async with open_store(state / "voltaire.db") as store:  # in use meanwhile
        await store.inbox.add(Incoming("cli", "cli", "2", "again"))
        manifest = await backup(state, target, config, secrets=False)
    assert inspect(target) == manifest and target.stat().st_mode & 0o077 == 0
    with tarfile.open(target) as tar:
        assert "state/models" not in tar.getnames()
        stored = tar.extractfile("config.toml")
        assert stored and stored.read() == b"[telegram]\n\nowners = [1]\n"
    (state / "chats" / "cli" / "work" / "notes.txt").write_text("changed since")
    aside = restore(target, state)
    assert aside and (aside / "chats/cli/work/notes.txt").read_text() == "changed since"
    work = state / "chats" / "cli" / "work"
    assert (work / "notes.txt").read_text() == "kept" and (work / "link").is_symlink()
    assert (work / "second").read_text() == "kept"
    assert (state / "models" / "big.gguf").exists()
    assert await waiting(state) == ["hello", "again"]
    assert state.stat().st_mode & 0o777 == 0o700


async def test_onto_a_machine_without_state(state: Path, tmp_path: Path) -> None:
    await backup(state, tmp_path / "b", None, secrets=False)
    assert restore(tmp_path / "b", tmp_path / "new" / "state") is None
    assert await waiting(tmp_path / "new" / "state") == ["hello"]


async def test_a_damaged_newer_or_foreign_file_changes_nothing(state: Path, tmp_path: Path) -> None:
    good = tmp_path / "good"
    await backup(state, good, None, secrets=False)
    cut = tmp_path / "cut"
    cut.write_bytes(good.read_bytes()[: good.stat().st_size * 2 // 3])
    newer = tmp_path / "newer"
    with tarfile.open(newer, "w:gz") as tar:
        fields = {"version": "99.0", "schema": 999, "made_at": "", "secrets": False}
        (tmp_path / "manifest.json").write_text(json.dumps(fields))
        tar.add(tmp_path / "manifest.json", "manifest.json")
    outside = tmp_path / "outside"
    with tarfile.open(outside, "w:gz") as tar, tarfile.open(good) as whole:
        for member in whole.getmembers():
            tar.addfile(member, whole.extractfile(member) if member.isfile() else None)
        tar.add(tmp_path / "cut", "state/../../escaped")
    foreign = tmp_path / "foreign"
    foreign.write_text("no tar")
    before = sorted(path.name for path in tmp_path.iterdir())
    for file, sentence in (
        (cut, "damaged"),
        (outside, "points out of it"),
        (newer, "newer than this one"),
        (foreign, "not a backup"),
        (tmp_path / "absent", "cannot be read"),
    ):
        with pytest.raises(BackupError, match=sentence):
            restore(file, state)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert await waiting(state) == ["hello"]


async def test_what_is_there_is_not_overwritten(state: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(BackupError, match="exists already"):
        await backup(state, tmp_path / "taken", None, secrets=False)
    assert (tmp_path / "taken").read_text() == "mine"
    with pytest.raises(BackupError, match="cannot be written"):
        await backup(state, tmp_path / "no" / "folder", None, secrets=False)
    with pytest.raises(BackupError, match="no state"):
        await backup(tmp_path / "none", tmp_path / "x", None, secrets=False)
