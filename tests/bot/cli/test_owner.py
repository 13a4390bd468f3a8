"""Root acts as the state's owner; others get one sentence. Run as root: the owner is a user of no name."""

import asyncio
import importlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.files import give
from agent.store import open_store
from bot import config_file
from bot.cli.command import for_person, program_readable
from bot.state import Presence, bot_facts, share_facts, shared_facts, started
from fakes.command_line import start_voltaire
from fakes.words import saying

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
OWNER = 12345  # a user id that no host gives away
VOLTAIRE = Path(sys.executable).with_name("voltaire")


@pytest.fixture
def state() -> Iterator[Path]:
    """In a folder that others may pass through, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        state = Path(folder, "state")
        state.mkdir(mode=0o700)
        os.chown(state, OWNER, OWNER)
        yield state


async def voltaire(state: Path, *words: str, **more: str) -> tuple[int, str, str]:
    mine = {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")} | more
    process = await start_voltaire(
        *words,
        env={**mine, "VOLTAIRE_STATE__DIR": str(state), "XDG_CONFIG_HOME": str(state.parent)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


def strangers(state: Path) -> list[Path]:
    return [path for path in [state, *state.rglob("*")] if path.lstat().st_uid != OWNER]


async def test_what_root_runs_leaves_nothing_of_roots(state: Path) -> None:
    async with open_store(state / "voltaire.db"):
        pass
    give(state, OWNER, OWNER)
    for words in (
        ("doctor",),
        ("jobs", "add", "--yes", "every day at 9 stretch"),
        ("sandbox", "--", "touch", "file"),
        ("status",),
        ("backup", str(state.parent / "b.tar.gz")),
    ):
        await voltaire(state, *words)
        assert strangers(state) == [], words
    assert "stretch" in (await voltaire(state, "jobs", "list"))[1]
    code, _, err = await voltaire(state, "restore", "--yes", str(state.parent / "b.tar.gz"))
    assert (code, err) == (0, "") and strangers(state) == []
    assert "stretch" in (await voltaire(state, "jobs", "list"))[1]


async def test_model_use_keeps_the_configuration_the_services_own(state: Path) -> None:
    config = state.parent / "voltaire" / "config.toml"
    config_file.write(config, {"backend": {"profile": "other"}}, group=OWNER)
    async with open_store(state / "voltaire.db"):
        pass
    give(state, OWNER, OWNER)
    code, _, err = await voltaire(state, "model", "use", "pocket")
    assert (code, strangers(state)) == (0, [])
    # It is tried by the owner, or refused at once where the owner cannot read this program.
    assert "No model backend is running" not in err
    async with open_store(state / "voltaire.db") as store:
        [row] = await store.ledger.rows()
    assert row.facts == '{"act": "model", "by": "terminal", "to": "pocket"}'
    assert (config.stat().st_gid, config.stat().st_mode & 0o777) == (OWNER, 0o640)


async def test_a_file_of_roots_is_named_and_the_remedy_gives_it_back(state: Path) -> None:
    (state / "chats" / "cli").mkdir(parents=True)

    async def owner() -> dict[str, str]:
        found = json.loads((await voltaire(state, "doctor", "--json"))[1])
        return next(check for check in found if check["check"] == "owner")

    fault = await owner()
    assert (fault["status"], f"{state}/chats" in fault["detail"]) == ("fail", True)
    subprocess.run(shlex.split(fault["remedy"])[1:], check=True)
    assert (await owner())["status"] == "pass"


async def test_what_only_the_services_read_is_no_fault(state: Path) -> None:
    """Following a remedy that took their group's right away stopped them."""
    config = state.parent / "voltaire" / "config.toml"
    config_file.write(config, {"backend": {"api_key": "s3"}}, group=OWNER)

    async def secrets() -> dict[str, str]:
        found = json.loads((await voltaire(state, "doctor", "--json"))[1])
        return next(check for check in found if check["check"] == "secrets")

    assert (await secrets())["status"] == "pass"
    config.chmod(0o644)
    fault = await secrets()
    assert (fault["status"], fault["remedy"]) == ("fail", f"chmod o= {config}")
    subprocess.run(shlex.split(fault["remedy"]), check=True)
    assert (await secrets())["status"] == "pass" and config.stat().st_mode & 0o040


def test_a_link_in_the_state_gives_nothing_away(state: Path) -> None:
    outside = state.parent / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (state / "link").symlink_to(outside)
    (state / "file").symlink_to(outside / "file")
    give(state, OWNER, OWNER)
    assert strangers(state) == []
    assert outside.stat().st_uid == 0 == (outside / "file").stat().st_uid


def as_stranger(script: str) -> tuple[int, str]:
    """Python in a process of another user, of which the program was loaded before."""
    for name in ("backup", "jobs", "setup"):  # Python itself may lie where others may not read
        importlib.import_module(f"bot.cli.{name}")
    for_person(ValueError())
    read, write = os.pipe()
    if pid := os.fork():
        os.close(write)
        with os.fdopen(read) as said:
            text = said.read()
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text
    os.setgroups([])
    os.setgid(OWNER + 1)
    os.setuid(OWNER + 1)
    try:
        exec(script, {"said": lambda text: os.write(write, str(text).encode())})
    finally:
        os._exit(0)


REFUSED = """
import sys
from pathlib import Path
from bot.cli.command import NotTheOwner, act_as_owner
sys.argv = ["voltaire", "ask", "who am I?"]
try:
    act_as_owner(Path({state!r}))
except NotTheOwner as error:
    said(error)
"""


def test_another_user_gets_one_sentence_with_the_command(state: Path) -> None:
    _, said = as_stranger(REFUSED.format(state=str(state)))
    use = "use `sudo voltaire ask 'who am I?'`"
    assert said.startswith(f"The state in {state} belongs to {OWNER}: {use}")


OF_THE_MACHINE = """
import io, os, sys
from pathlib import Path
from bot import settings
from bot.cli import exit_code
settings.MACHINE = Path({config!r})
sys.stderr = io.StringIO()
os.environ["XDG_CONFIG_HOME"] = "/nowhere"
for name in ("VOLTAIRE_CONFIG", "VOLTAIRE_STATE__DIR"):
    os.environ.pop(name, None)
named = ["--config", {config!r}]
for words in (["jobs", "list"], [*named, "jobs", "list"], [*named, "restore", "file"], *{more!r}):
    print(exit_code(words), file=sys.stderr)
said(sys.stderr.getvalue())
"""


@pytest.mark.parametrize("mode", [0o750, 0o755], ids=["closed", "open"])
def test_the_machines_configuration_is_refused_in_one_sentence_named_or_not(
    state: Path, mode: int
) -> None:
    """It was "Permission denied" where --config named it."""
    config = state.parent / "etc" / "config.toml"
    config_file.write(config, {"state": {"dir": str(state)}}, group=OWNER)
    config.parent.chmod(mode)
    more = [["--config", str(config), "setup", "--yes"]] if mode == 0o750 else []
    _, said = as_stranger(OF_THE_MACHINE.format(config=str(config), more=more))
    sentence, *rest = said.splitlines()
    assert "use sudo" in sentence
    assert rest == ["2", *[sentence, "2"] * (2 + len(more))]


SETUP = """
from bot.cli import exit_code
import sys, io
sys.stderr = io.StringIO()
for words in (["--remove", "--yes"], ["--upgrade"], ["--yes"]):
    sys.argv = ["voltaire", "--config", {config!r}, "setup", *words]
    said(f"{{exit_code(sys.argv[1:])}} ")
said(sys.stderr.getvalue())
"""


def test_setup_of_somebody_elses_is_refused(state: Path) -> None:
    """A member of the group may read the configuration: "No units are installed." was what it said."""
    give(state, OWNER, OWNER)
    state.parent.chmod(0o755)
    config = state.parent / "config.toml"
    config.write_text(f'[state]\ndir = "{state}"\n')
    _, said = as_stranger(SETUP.format(config=str(config)))
    assert (
        said.startswith("1 1 1 ")
        and said.count(f"The state in {state} belongs to {OWNER}: use") == 3
    )


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_root_of_a_container_without_capabilities_is_told_the_way(
    state: Path, closed: bool
) -> None:
    """As `podman exec --user 0` where all were dropped; the folder around the state may be closed, too."""
    if closed:
        os.chown(state.parent, OWNER, OWNER)
        state.parent.chmod(0o700)
    else:
        state.parent.chmod(0o755)
    done = subprocess.run(
        ["setpriv", "--bounding-set=-all", VOLTAIRE, "doctor"],
        env={**os.environ, "VOLTAIRE_STATE__DIR": str(state)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr == saying("container", "leave out `--user`") and "sudo" not in done.stderr


def test_whether_the_owner_can_read_the_program_is_looked_at_as_the_owner() -> None:
    assert program_readable(0, 0) and os.geteuid() == 0
    program_readable(OWNER, OWNER)
    assert (os.geteuid(), os.getegid()) == (0, 0)


async def test_the_group_reads_what_the_bot_shares_while_it_runs(tmp_path: Path) -> None:
    pid = os.getpid()
    here = Presence(pid=pid, started=started(pid) or 0, username="volt", polling_ok=True)
    async with open_store(tmp_path / "voltaire.db") as store:
        share_facts(here, await bot_facts(here, store), tmp_path)
    assert (tmp_path / "bot-status.json").stat().st_mode & 0o777 == 0o640
    facts = await shared_facts(tmp_path)
    assert facts["bot"]["username"] == "volt"
    assert facts["jobs"]["active"] == 0 and facts["memory_mib"]["bot"] > 0
    gone = json.loads((tmp_path / "bot-status.json").read_text()) | {"process": (pid, 1)}
    (tmp_path / "bot-status.json").write_text(json.dumps(gone))
    facts = await shared_facts(tmp_path)
    assert facts["bot"]["username"] is None and facts["bot"]["inbox_waiting"] is None
    shutil.rmtree(tmp_path)


def test_a_device_or_pipe_is_not_replaced_by_a_configuration(tmp_path: Path) -> None:
    """As root, `--config /dev/null mcp add` made a file of it for the whole machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="Not a file that can be replaced"):
        config_file.write(pipe, {"agent": {"timezone": "UTC"}})
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]
