"""Every command in README.md and docs/ is run, in its own words; a new one that is in no table fails.

A documented NAME, FILE or "..." is filled in; what it would take hours, a card, a
network or this machine's own services for stands in ELSEWHERE with what runs it.
"""

import asyncio
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.localgram import Localgram
from bot.settings import Settings
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
    """What is typed in place of the documented words, its exit code, and what it must print."""

    typed: str = ""
    says: str = ""
    code: int = 0
    stdin: bytes = b""


COMMANDS = {
    "voltaire ask \"...\"": Run("voltaire ask 'what time is it?'", r"\d"),
    "voltaire ask --json \"...\"": Run("voltaire ask --json 'what time is it?'", "turn.finished"),
    "voltaire ask": Run("voltaire ask hello", r"\w"),
    "voltaire backup FILE": Run("voltaire backup {home}/b.tar", "without secrets"),
    "voltaire bench": Run("voltaire bench --help", "Measure"),  # minutes of the model's full speed
    "voltaire bench sweep": Run("voltaire bench sweep --help", "Try"),
    "voltaire chat": Run(stdin=b"hello\n", says=r"\w"),
    "voltaire context": Run(says="transcript"),
    "voltaire doctor": Run(says="disk"),
    "voltaire eval": Run("voltaire eval --help", "Options"),
    'voltaire jobs add --chat tg:111 "every day at 7 send me the health digest"': Run(
        says="Health digest, every day at 07:00; next: ", stdin=b"y\n"
    ),
    "voltaire jobs list --chat tg:111": Run(says=r"\w"),
    "voltaire jobs edit --chat tg:111 --catch-up missed 1": Run(says="it says so and does not run"),
    "voltaire model fit gemma4-26b-a4b": Run("voltaire model fit pocket", "yes"),
    "voltaire model fit gemma4-26b-a4b --vram 16": Run("voltaire model fit pocket --vram 16", "yes"),
    "voltaire model list": Run(says="pocket"),
    "voltaire model pull": Run("voltaire model pull pocket", "Here: "),
    "voltaire model pull NAME": Run("voltaire model pull pocket", "Here: "),
    "voltaire model pull gemma4-26b-a4b": Run("voltaire model pull pocket", "Here: "),
    "voltaire model use": Run("voltaire model use pocket", "pocket is in use"),
    "voltaire model use NAME": Run("voltaire model use pocket", "pocket is in use"),
    "voltaire model use gemma4-26b-a4b": Run("voltaire model use pocket", "pocket is in use"),
    "voltaire replay TURN": Run("voltaire replay gone", "There is no turn gone", code=1),
    "voltaire sandbox -- ls -la": Run(says="total"),
    "voltaire server build": Run("voltaire server build --help", "compile"),  # half an hour
    "voltaire server build --cuda": Run("voltaire server build --help", "--cuda"),
    "voltaire status": Run(says="jobs: "),
}  # fmt: skip

ELSEWHERE = {
    "voltaire backend": "test_the_services_start",
    "voltaire bot": "test_the_services_start",
    "voltaire run": "test_the_services_start",
    "voltaire demo": "tests/bot/cli/test_demo.py",
    "voltaire restore": "test_a_backup_is_restored",
    "voltaire restore FILE": "test_a_backup_is_restored",
    "voltaire setup": "tests/bot/test_setup.py, against the local Bot API server",
    "voltaire setup --token NEW": "tests/bot/test_setup.py",
    "voltaire setup --remove": "tests/bot/test_units.py, with a stand-in for systemctl",
    "voltaire setup --upgrade": "tests/bot/test_units.py, with a stand-in for systemctl",
    'voltaire tool world_time \'{"zone": "Asia/Tokyo"}\'': "test_the_tool_of_the_page_works",
    "apt install --no-install-recommends nvidia-cuda-toolkit gcc-11 g++-11": "changes the machine",
    "apt install cuda-toolkit-12-9": "changes the machine",
    "git add .": "what a person may do in a repository of their own",
    "apt install nvidia-cuda-toolkit": "changes the machine",
    "llama-server --list-devices": "tests/backend/models/test_placement.py; typed by the backend, not a person",
}


def documented() -> set[str]:
    """Every command: the lines of plain blocks, and code in running text that begins with a program."""
    found = set()
    for page in PAGES:
        text = page.read_text()
        blocks = [body for language, body in BLOCK.findall(text) if language in ("", "sh")]
        lines = [line.partition("  #")[0].strip() for body in blocks for line in body.splitlines()]
        spans = [" ".join(s.split()) for s in re.findall(r"`([^`]+)`", BLOCK.sub("", text))]
        found |= {line.removeprefix(".venv/bin/") for line in lines + spans}
    parts = {part.strip() for command in found for part in command.split("&&")}
    return {part for part in parts if re.match(PROGRAMS, part)}


def test_every_command_is_in_a_table_and_every_row_in_a_page() -> None:
    known = {*COMMANDS, *ELSEWHERE}
    others = {c for c in documented() if not c.startswith(("make ", "systemctl ", "journalctl "))}
    others -= {c for c in others if c.startswith("python -m ")}
    assert others - known == set(), "documented, and run by no test"
    assert known - others == set(), "in no page any more"


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
    names = {path.name for path in (ROOT / "systemd" / "system").iterdir()}
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
            await asyncio.wait_for(process.wait(), SECONDS)

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
        done: dict[str, tuple[int, str]] = {}
        for command, run in COMMANDS.items():
            typed = run.typed or command
            done[typed] = done.get(typed) or await home.run(typed, run.stdin)
            code, out = done[typed]
            if code != run.code or not re.search(run.says, out):
                wrong.append((command, code, out[-500:]))
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


async def test_the_tool_of_the_page_works(tmp_path: Path) -> None:
    """In a folder of its own beside the tools, with the page's own configuration."""
    ((_, source),) = blocks("python")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "clock.py").write_text(source)
    ((_, config),) = [(page, text) for page, text in blocks("toml") if page == "tools.md"]
    (tmp_path / "c.toml").write_text(config)
    (command,) = [c for c in documented() if c.startswith("voltaire tool")]
    program = (
        "import sys, agent.tools; agent.tools.__path__.append(sys.argv.pop(1));"
        "from bot.cli import main; main()"
    )
    words = [
        str(tmp_path / "tools"),
        "--config",
        str(tmp_path / "c.toml"),
        *shlex.split(command)[1:],
    ]
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=ROOT, env=Home(tmp_path).environment, capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"\d\d:\d\d:\d\d .*JST 20\d\d", done.stdout), done.stdout
