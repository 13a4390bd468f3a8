"""`voltaire backup` and `voltaire restore` as processes: beside a running backend, and after it."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from agent.store import Incoming, open_store
from backend.client import BackendClient
from fakes.command_line import start_voltaire
from fakes.patience import SECONDS
from fakes.pseudo_terminal import typing_at
from fakes.words import saying

PIPE = asyncio.subprocess.PIPE
VOLTAIRE = Path(sys.executable).with_name("voltaire")


def environment(home: Path) -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")} | {
        "XDG_CONFIG_HOME": str(home / "c"),
        "VOLTAIRE_STATE__DIR": str(home / "s"),
        "VOLTAIRE_BACKEND__SOCKET": str(home / "b.sock"),
        "VOLTAIRE_BACKEND__KIND": "external",
        "VOLTAIRE_BACKEND__URL": "http://127.0.0.1:9",
    }


async def start(
    home: Path, *words: str, stdin: int = asyncio.subprocess.DEVNULL
) -> asyncio.subprocess.Process:
    return await start_voltaire(
        *words, env=environment(home), stdin=stdin, stdout=PIPE, stderr=PIPE
    )


async def voltaire(home: Path, *words: str) -> tuple[int | None, str, str]:
    process = await start(home, *words)
    out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    return process.returncode, out.decode(), err.decode()


async def said(state: Path) -> list[str]:
    async with open_store(state / "voltaire.db") as store:
        return [row.incoming.text for row in await store.inbox.waiting("cli")]


async def test_there_and_back_but_not_under_a_running_backend(tmp_path: Path) -> None:
    state, file = tmp_path / "s", tmp_path / "b.tar.gz"
    async with open_store(state / "voltaire.db") as store:
        await store.inbox.add(Incoming("cli", "cli", "1", "before"))
    config = tmp_path / "c" / "voltaire" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("# of the backup\n")
    backend = await start(tmp_path, "backend")
    try:
        async with BackendClient(tmp_path / "b.sock") as client:
            assert await client.answers_within(SECONDS)
        code, out, err = await voltaire(tmp_path, "backup", str(file))
        assert (code, err) == (0, "")
        assert re.fullmatch(rf"{file}: [1-9]\d* KiB, without secrets\.\n", out)
        config.write_text("# another\n")
        async with open_store(state / "voltaire.db") as store:
            await store.inbox.add(Incoming("cli", "cli", "2", "after"))
        refused = await voltaire(tmp_path, "restore", str(file))
        assert refused == (1, "", saying("still run", "stop them"))
        assert await said(state) == ["before", "after"]
    finally:
        backend.terminate()
        await asyncio.wait_for(backend.wait(), SECONDS)
    asked = await start(tmp_path, "restore", str(file), stdin=PIPE)
    told, _ = await asyncio.wait_for(asked.communicate(b"n\n"), SECONDS)
    assert (asked.returncode, str(state) in told.decode()) == (1, True)
    assert await said(state) == ["before", "after"]
    refusal = f"{config} is not a backup of Voltaire, or it is damaged.\n"
    assert await voltaire(tmp_path, "restore", str(config)) == (1, "", refusal), "before it asks"
    code, out, err = await voltaire(tmp_path, "restore", "--yes", str(file))
    assert (code, err) == (0, "")
    (aside,) = tmp_path.glob("s-before-*")
    assert out == saying(str(aside), f"tar -xzOf {file} config.toml\n")
    assert config.read_text() == "# another\n"
    shown = await asyncio.create_subprocess_exec(
        *out.split(": ")[1].split(), stdout=asyncio.subprocess.PIPE
    )
    assert (await shown.communicate())[0] == b"# of the backup\n"
    assert (await said(state), await said(aside)) == (["before"], ["before", "after"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk")
async def test_at_a_terminal_both_show_what_they_do(tmp_path: Path) -> None:
    state, file = tmp_path / "s", tmp_path / "b.tar.gz"
    async with open_store(state / "voltaire.db") as store:
        await store.inbox.add(Incoming("cli", "cli", "1", "before"))
    for words, told in (
        (["backup", str(file)], "copying"),
        (["restore", "--yes", str(file)], "unpacking"),
    ):
        async with typing_at(words, environment(tmp_path)) as terminal:
            await terminal.until(f"{told}.*, \\d s")
            assert await terminal.ended() == 0
    assert await said(state) == ["before"]


async def test_a_disk_without_room_for_it_is_told(tmp_path: Path) -> None:
    """It was the backup that "cannot be read: No space left on device"."""
    state, file = tmp_path / "s", tmp_path / "b.tar.gz"
    async with open_store(state / "voltaire.db"):
        pass
    (state / "chats").mkdir()
    (state / "chats" / "file").write_bytes(os.urandom(2 << 20))
    assert (await voltaire(tmp_path, "backup", str(file)))[0] == 0
    disk = tmp_path / "disk"
    disk.mkdir()
    script = (
        f"mount -t tmpfs -o size=1m none {disk} && {VOLTAIRE} restore {file}; echo $?; ls {disk}"
    )
    process = await asyncio.create_subprocess_exec(
        *("unshare", "-m", "sh", "-c", script),
        env={**environment(tmp_path), "VOLTAIRE_STATE__DIR": str(disk / "state")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    assert out.decode() == "1\n", "nothing of it is left"
    what = f"{disk} has too little room for what is in {file}: No space left on device.\n"
    assert err.decode() == what
