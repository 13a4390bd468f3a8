"""`voltaire backup` and `voltaire restore` as processes: beside a running backend, and after it."""

import asyncio
import os
import re
import sys
from pathlib import Path

from agent.store import Incoming, open_store
from backend.client import BackendClient
from fakes.patience import SECONDS
from fakes.words import saying

VOLTAIRE = Path(sys.executable).with_name("voltaire")


async def start(home: Path, *words: str) -> asyncio.subprocess.Process:
    env = {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")} | {
        "XDG_CONFIG_HOME": str(home / "c"),
        "VOLTAIRE_STATE__DIR": str(home / "s"),
        "VOLTAIRE_BACKEND__SOCKET": str(home / "b.sock"),
        "VOLTAIRE_BACKEND__KIND": "external",
        "VOLTAIRE_BACKEND__URL": "http://127.0.0.1:9",
    }
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(VOLTAIRE, *words, env=env, stdout=pipe, stderr=pipe)


async def voltaire(home: Path, *words: str) -> tuple[int | None, str, str]:
    process = await start(home, *words)
    out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    return process.returncode, out.decode(), err.decode()


async def said(state: Path) -> list[str]:
    async with open_store(state / "voltaire.db") as store:
        return [row.incoming.text for row in await store.inbox.waiting("cli", {"cli"})]


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
        assert re.fullmatch(rf"{file}: [\d.]+ MiB, without secrets\.\n", out)
        config.write_text("# another\n")
        async with open_store(state / "voltaire.db") as store:
            await store.inbox.add(Incoming("cli", "cli", "2", "after"))
        refused = await voltaire(tmp_path, "restore", str(file))
        assert refused == (1, "", saying("still run", "stop them"))
        assert await said(state) == ["before", "after"]
    finally:
        backend.terminate()
        await asyncio.wait_for(backend.wait(), SECONDS)
    code, out, err = await voltaire(tmp_path, "restore", str(file))
    assert (code, err) == (0, "")
    (aside,) = tmp_path.glob("s-before-*")
    assert out == saying(str(aside), f"tar -xzOf {file} config.toml\n")
    assert config.read_text() == "# another\n"
    shown = await asyncio.create_subprocess_exec(
        *out.split(": ")[1].split(), stdout=asyncio.subprocess.PIPE
    )
    assert (await shown.communicate())[0] == b"# of the backup\n"
    assert (await said(state), await said(aside)) == (["before"], ["before", "after"])
