"""Each fault is made, doctor names it, the remedy that it prints is carried out, and doctor passes."""

import asyncio
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import aiohttp
import pytest

from agent.store import open_store
from bot.backup import rotate
from bot.cli.doctor import CHECKS, findings_of
from bot.settings import load
from fakes.command_line import start_voltaire
from fakes.localgram import Localgram
from fakes.patience import SECONDS, soon

CODE = Path(__file__).parents[3]
# Prints the findings of one check, as `voltaire doctor --json` does those of all.
ONE_CHECK = """
import asyncio, json, sys
from dataclasses import asdict
from bot.cli.doctor import CHECKS, findings_of
from bot.settings import load
[check] = [each for each in CHECKS if each.__name__ == sys.argv[1]]
print(json.dumps([asdict(each) for each in asyncio.run(findings_of(check, load()))]))
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make it")

Finding = tuple[str, str]  # status, remedy


def environment(home: Path, **settings: object) -> dict[str, str]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")}
    ours = {"STATE__DIR": home / "s", **settings}
    named = {f"VOLTAIRE_{key}": str(value) for key, value in ours.items()}
    return plain | {"XDG_CONFIG_HOME": str(home / "c")} | named


async def ran(*words: str, env: dict[str, str], cwd: Path = CODE) -> tuple[int | None, str, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *words, env=env, cwd=cwd, stdout=pipe, stderr=pipe
    )
    out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    return process.returncode, out.decode(), err.decode()


def worst(said: str, check: str) -> Finding:
    rows = [row for row in json.loads(said) if row["check"] == check]
    found = max(rows, key=lambda row: ("pass", "warn", "fail").index(row["status"]))
    return found["status"], found["remedy"]


async def doctor(env: dict[str, str], check: str, config: Path | None = None) -> Finding:
    """What the command finds there, without starting a process for it."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(env)
    try:
        [found] = [each for each in CHECKS if each.__name__ == check]
        rows = [asdict(row) for row in await findings_of(found, load(config))]
    finally:
        os.environ.clear()
        os.environ.update(before)
    return worst(json.dumps(rows), check)


def checking(check: str) -> str:
    """The shell command that prints the findings of one check."""
    return shlex.join([sys.executable, "-c", ONE_CHECK, check])


def carry_out(command: str) -> None:
    subprocess.run(["sh", "-c", command.replace("sudo ", "")], check=True, capture_output=True)


async def test_a_used_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        env = environment(tmp_path, BACKEND__LOCAL_PORT=port, BACKEND__LOCAL_KEY="k")
        status, remedy = await doctor(env, "ports")
    assert status == "fail" and f":{port}" in remedy and "backend.local_port" in remedy
    assert await doctor(env, "ports") == ("pass", "")


@pytest.mark.slow
async def test_a_damaged_pocket(tmp_path: Path) -> None:
    copy = tmp_path / "program"
    for package in ("bot", "agent", "backend"):
        shutil.copytree(CODE / package, copy / package)
    git = ["git", "-C", str(copy), "-c", "user.name=a", "-c", "user.email=a@b"]
    pocket = "backend/embedded/pocket.gguf"
    for words in (["init", "-q"], ["add", pocket], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    with (copy / pocket).open("r+b") as file:
        file.seek(3_000_000)
        file.write(b"damaged here")
    env = environment(tmp_path, BACKEND__KIND="managed") | {"PYTHONPATH": str(copy)}
    command = (sys.executable, "-c", ONE_CHECK, "model")
    status, remedy = worst((await ran(*command, env=env, cwd=copy))[1], "model")
    assert status == "fail"
    carry_out(remedy)
    assert worst((await ran(*command, env=env, cwd=copy))[1], "model") == ("pass", "")


@needs_root
@pytest.mark.slow
async def test_blocked_namespaces(tmp_path: Path) -> None:
    script = f"{checking('sandbox')}; read remedy; eval $remedy >/dev/null; {checking('sandbox')}"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fakes.no_namespaces", "sysctl", "/bin/sh", "-c", script),
        env=environment(tmp_path),
        cwd=CODE,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    before = (await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode()
    status, remedy = worst(before, "sandbox")
    found = re.search(r"sudo (sysctl \S+=\d+)", remedy)
    assert status == "fail" and found
    out, _ = await asyncio.wait_for(process.communicate(f"{found[1]}\n".encode()), SECONDS)
    assert worst(out.decode(), "sandbox") == ("pass", "")


@needs_root
@pytest.mark.slow
async def test_a_full_disk(tmp_path: Path) -> None:
    async with open_store(tmp_path / "elsewhere" / "voltaire.db"):
        pass
    state, moved = tmp_path / "s", tmp_path / "moved"
    state.mkdir()
    script = (
        f"mount -t tmpfs -o size=32m none {state} && cp -a {tmp_path}/elsewhere/. {state} &&"
        f"{checking('disk')}; cp -a {state} {moved} && VOLTAIRE_STATE__DIR={moved} {checking('disk')}"
    )
    _, out, _ = await ran("unshare", "-m", "sh", "-c", script, env=environment(tmp_path))
    before, after = out.splitlines()
    status, remedy = worst(before, "disk")
    assert status == "fail" and "state.dir" in remedy
    if shutil.disk_usage(tmp_path).free > 2 << 30:
        assert worst(after, "disk") == ("pass", "")


@asynccontextmanager
async def bot(env: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    quiet = asyncio.subprocess.DEVNULL
    process = await start_voltaire("bot", env=env, stdout=quiet, stderr=quiet)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def test_a_second_poller(tmp_path: Path) -> None:
    async with Localgram("1000001:abc") as gram:
        settings = {
            "TELEGRAM__TOKEN": gram.token,
            "TELEGRAM__BASE_URL": gram.url,
            "BACKEND__KIND": "external",
            "BACKEND__URL": "http://127.0.0.1:9",
        }
        env = environment(tmp_path, **settings)
        here = tmp_path / "s" / "run" / "bot.json"

        def problem() -> str:
            return json.loads(here.read_text())["problem"] or "" if here.exists() else "not yet"

        async with bot(env):
            await soon(lambda: not problem())
            other = asyncio.create_task(poll(f"{gram.url}/bot{gram.token}/getUpdates?timeout=9"))
            await soon(lambda: "same token" in problem())
            assert (await doctor(env, "telegram"))[0] == "fail"
            other.cancel()  # "stop one of them"
            await asyncio.wait([other])
            await soon(lambda: not problem())
            assert (await doctor(env, "telegram"))[0] != "fail"


async def poll(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(url) as answer:
                await answer.read()


async def test_secrets_of_an_mcp_server_that_others_can_read(tmp_path: Path) -> None:
    """Its variables, and a secret that it never sees."""
    config, files = tmp_path / "config.toml", [tmp_path / "env file", tmp_path / "key"]
    for file in files:
        file.write_text("secret")
        file.chmod(0o644)
    config.write_text(
        f'[agent.mcp.x]\ncommand = ["x"]\nenv_file = "{files[0]}"\nnetwork = ["example.org"]\n'
        f'[agent.mcp.x.secrets.KEY]\nfile = "{files[1]}"\nhost = "example.org"\n'
    )
    env = environment(tmp_path)
    status, remedy = await doctor(env, "secrets", config)
    assert status == "fail"
    carry_out(remedy)
    assert await doctor(env, "secrets", config) == ("pass", "")
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]


async def test_a_backup_of_each_day_that_is_not_made(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    env = environment(tmp_path, STATE__BACKUP_DIR=folder)
    folder.mkdir()
    (folder / "voltaire-2026-01-01.tar.gz").touch()
    status, remedy = await doctor(env, "backups")
    assert status == "warn" and "voltaire setup --upgrade" in remedy
    async with open_store(tmp_path / "s" / "voltaire.db"):
        pass
    await rotate(
        tmp_path / "s", folder, None, datetime.now().astimezone().date()
    )  # the bot, once it may write there
    assert await doctor(env, "backups") == ("pass", "")
