"""The commands shown in README.md and docs/ can be run as they stand; many are run for real."""

import asyncio
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from bot.cli import cli
from bot.localgram import Localgram
from bot.settings import Settings
from bot.setup.units import COMPILE
from bot.texts import Texts
from fakes.patience import soon

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
VOLTAIRE = str(Path(sys.executable).with_name("voltaire"))
PROGRAMS = (
    r"(?:voltaire|make|git|systemctl|journalctl|apt|apt-get|python|pip|curl|sh|llama-server) \S"
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
SECONDS = 120


@dataclass(frozen=True)
class Run:
    """A command, what it must print, its exit code, and what is typed into it."""

    typed: str
    prints: str
    code: int = 0
    stdin: bytes = b""


RUNS = [
    Run("voltaire ask 'what time is it?'", r"\d"),
    Run("voltaire ask --json 'what time is it?'", "turn.finished"),
    Run("voltaire backend history", "The backend was started"),
    Run("voltaire backup {home}/b.tar", "without secrets"),
    Run("voltaire chat", r"\w", stdin=b"hello\n"),
    Run("voltaire context", "In no prompt, but in /commands.txt"),
    Run("voltaire doctor", "disk"),
    Run(
        'voltaire jobs add --chat tg:111 "every day at 7 send me the health digest"',
        "Health digest, every day at 07:00; next: ",
        stdin=b"y\n",
    ),
    Run("voltaire jobs list --chat tg:111", r"\w"),
    Run("voltaire jobs edit --chat tg:111 --catch-up missed 1", "it says so and does not run"),
    Run("voltaire model fit pocket", "yes"),
    Run("voltaire model fit pocket --vram 16", "yes"),
    Run("voltaire model list", "pocket"),
    Run("voltaire model pull pocket", "Here: "),
    Run("voltaire model use pocket", "pocket is in use"),
    Run("voltaire replay gone", "There is no turn gone", code=1),
    Run("voltaire sandbox -- ls -la", "total"),
    Run("voltaire status", "jobs: "),
]


def documented() -> set[str]:
    """Every command: the lines of plain blocks, and code in running text that begins with a program."""
    found = set()
    for page in PAGES:
        text = page.read_text()
        blocks = [body for language, body in BLOCK.findall(text) if language in ("", "sh")]
        joined = [re.sub(r"\\\n\s*", "", body) for body in blocks]
        lines = [line.partition("  #")[0].strip() for body in joined for line in body.splitlines()]
        spans = [" ".join(s.split()) for s in re.findall(r"`([^`]+)`", BLOCK.sub("", text))]
        found |= {line.removeprefix(".venv/bin/") for line in lines + spans}
    parts = {part.strip() for command in found for part in command.split("&&")}
    return {part for part in parts if re.match(PROGRAMS, part)}


@pytest.mark.parametrize("command", sorted(c for c in documented() if c.startswith("voltaire ")))
def test_commands_and_their_options_are_there(command: str) -> None:
    """Parsed as it stands, and not run; FILE, NAME and "..." are words like others.

    A text may name a command without its argument.
    """
    found: click.Command | None = cli
    words = shlex.split(command)[1:]
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        found = found.get_command(click.Context(found), words.pop(0))
    assert found is not None, "no such command"
    with suppress(click.exceptions.Exit, click.MissingParameter):  # Exit: of --version
        found.make_context(found.name, words)


@pytest.mark.parametrize("command", sorted(c for c in documented() if c.startswith("make ")))
def test_targets_of_make_are_there(command: str) -> None:
    """Dry: they would install into, or test, the checkout that this runs in."""
    words = shlex.split(command)
    done = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr


@pytest.mark.parametrize("command", sorted(c for c in documented() if "ctl " in c.split("&&")[0]))
def test_units_that_are_named_are_ours(command: str) -> None:
    """systemd is not process 1 where tests run; their units are verified in tests/bot/test_units.py."""
    unit = command.split()[-1]
    if unit == "daemon-reload":
        return
    names = {path.name for path in (ROOT / "systemd" / "system").iterdir()}
    names.add(f"{COMPILE}.service")  # transient: the wizard's compilation
    names |= {
        path.with_suffix(".service").name for path in (ROOT / "container").glob("*.container")
    }
    assert {unit, f"{unit}.service"} & names


@pytest.mark.parametrize("command", sorted(c for c in documented() if c.startswith("python -m ")))
def test_modules_say_what_they_do(command: str) -> None:
    words = [sys.executable, *shlex.split(command)[1:3], "--help"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0 and "usage" in done.stdout, done.stderr


# -- run for real, beside a backend of their own --------------------------------


@dataclass
class Home:
    path: Path

    @property
    def environment(self) -> dict[str, str]:
        mine = {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")}
        folders = {"XDG_STATE_HOME": f"{self.path}/s", "XDG_CONFIG_HOME": f"{self.path}/x"}
        return {**mine, **folders, "VOLTAIRE_BACKEND__SOCKET": f"{self.path}/b.sock"}

    @asynccontextmanager
    async def started(self, *words: str, **more: str) -> AsyncIterator[asyncio.subprocess.Process]:
        with (self.path / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                VOLTAIRE, *words, env={**self.environment, **more}, stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            process.terminate()
            assert await asyncio.wait_for(process.wait(), SECONDS) == 0

    async def run(self, typed: str, stdin: bytes = b"") -> tuple[int, str]:
        words = shlex.split(typed.replace("{home}", str(self.path)))[1:]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            VOLTAIRE, *words, env=self.environment, stdin=pipe, stdout=pipe,
            stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        out, _ = await asyncio.wait_for(process.communicate(stdin), SECONDS)
        assert process.returncode is not None
        return process.returncode, out.decode()


async def test_commands_do_what_the_pages_say(tmp_path: Path) -> None:
    home = Home(tmp_path)
    wrong = []
    async with home.started("backend") as backend:
        await soon(lambda: (tmp_path / "b.sock").exists(), SECONDS)
        for run in RUNS:
            code, out = await home.run(run.typed, run.stdin)
            if code != run.code or not re.search(run.prints, out):
                wrong.append((run.typed, code, out[-500:]))
        assert backend.returncode is None
    assert wrong == []


async def test_a_backup_is_restored(tmp_path: Path) -> None:
    home = Home(tmp_path)
    await home.run("voltaire jobs add --yes 'every day at 9 stretch'")
    assert (await home.run("voltaire backup {home}/b.tar"))[0] == 0
    await home.run("voltaire jobs rm 1")
    code, out = await home.run("voltaire restore {home}/b.tar", b"y\n")
    assert code == 0, out
    assert "stretch" in (await home.run("voltaire jobs list"))[1]


async def test_a_move_as_the_page_says(tmp_path: Path) -> None:
    """To another user's folders, at another path: jobs, token and configuration are there."""
    old = Home(tmp_path / "old")
    folder = old.path / "x" / "voltaire"
    folder.mkdir(parents=True)
    (folder / "token").write_text("123:abc")
    (folder / "config.toml").write_text(
        f'[telegram]\ntoken_file = "{folder}/token"\nowners = [7]\n'
    )
    await old.run("voltaire jobs add --yes 'every day at 9 stretch'")
    assert (await old.run(f"voltaire backup --secrets {tmp_path}/moved.tar.gz"))[0] == 0
    old.path.rename(tmp_path / "gone")
    new = Home(tmp_path / "new")
    new.path.mkdir()
    code, out = await new.run(f"voltaire restore {tmp_path}/moved.tar.gz")
    assert code == 0, out
    assert f"State: {new.path}/s/voltaire. Configuration: {new.path}/x/voltaire/config.toml" in out
    kept = tomllib.loads((new.path / "x/voltaire/config.toml").read_text())
    assert kept["telegram"]["owners"] == [7] and kept["state"]["dir"] == f"{new.path}/s/voltaire"
    assert Path(kept["telegram"]["token_file"]).read_text() == "123:abc"
    assert "stretch" in (await new.run("voltaire jobs list"))[1]


async def test_the_services_start(tmp_path: Path) -> None:
    """backend and bot in two processes; run, both in one."""
    home = Home(tmp_path)
    async with Localgram("77:pages") as gram:
        olga = gram.user("Olga", id=1, started=True)
        bot = {
            "VOLTAIRE_TELEGRAM__TOKEN": gram.token,
            "VOLTAIRE_TELEGRAM__BASE_URL": gram.url,
            "VOLTAIRE_TELEGRAM__OWNERS": "1",
        }
        async with home.started("backend"), home.started("bot", **bot):
            await olga.send("/status")
            assert "pocket" in (await olga.next_message(seconds=SECONDS)).text
        async with home.started("run", **bot):
            await olga.send("/jobs")
            assert (await olga.next_message(seconds=SECONDS)).text == Texts().no_jobs


# -- what is written beside commands ----------------------------------------------


def blocks(language: str) -> list[tuple[str, str]]:
    found = [(page.name, BLOCK.findall(page.read_text())) for page in PAGES]
    return [(name, body) for name, all_ in found for lang, body in all_ if lang == language]


@pytest.mark.parametrize(("page", "text"), blocks("toml"))
def test_configurations_are_valid(page: str, text: str) -> None:
    Settings(**tomllib.loads(text))
