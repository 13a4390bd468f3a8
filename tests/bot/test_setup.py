"""The wizard: from a token to a delivered message, and never a half-written configuration."""

import asyncio
import json
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent.store import open_store
from backend.build.build import VERSION
from backend.build.release import RELEASES_VARIABLE
from bot import config_file
from bot.cli import doctor_machine
from bot.cli.setup import READY_TO_RUN, Given, Wizard, uninstall
from bot.settings import Settings, machine_timezone
from bot.setup import SetupError, units
from bot.setup.units import (
    UNITS,
    Installation,
    SystemdScope,
    enable_linger,
    install,
    leftovers,
    lowest_priority,
    purge,
    remove,
    render,
    renew,
    run_systemctl,
    transient_unit,
)
from bot.state import DATABASE
from fakes import gguf_maker
from fakes.command_line import start_voltaire
from fakes.hub import Hub
from fakes.localgram import Localgram
from fakes.patience import SECONDS, soon
from fakes.release_server import TAG, ReleaseServer
from fakes.toolkits import cuda, gcc, program
from fakes.words import saying

NVML = Path(__file__).parents[2] / "fakes" / "nvml.c"


@pytest.fixture
async def gram() -> AsyncIterator[Localgram]:
    async with Localgram("1000001:abc") as gram:
        yield gram


async def voltaire(
    home: Path, *words: str, said: str = "", **more: str
) -> asyncio.subprocess.Process:
    """`voltaire setup` with `more` in its environment, the lines of `said` as answers."""
    folders = {"XDG_CONFIG_HOME": str(home / "c"), "XDG_STATE_HOME": str(home / "s")}
    config = home / "c" / "voltaire" / "config.toml"
    pipe = asyncio.subprocess.PIPE
    process = await start_voltaire(
        "--config", config, "setup", "--no-units", *words,
        env={**os.environ, **folders, **more}, stdin=pipe, stdout=pipe, stderr=pipe,
    )  # fmt: skip
    assert process.stdin
    process.stdin.write(said.encode())
    process.stdin.close()
    return process


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    return process.returncode, out.decode(), err.decode()


def configured(home: Path) -> dict[str, Any]:
    return tomllib.loads((home / "c" / "voltaire" / "config.toml").read_text())


async def test_yes_ends_with_a_delivered_message(gram: Localgram, tmp_path: Path) -> None:
    owner = gram.user("Ada", id=7, started=True)
    process = await voltaire(
        tmp_path, "--yes", "--token", "1000001:abc", "--base-url", gram.url, "--owner", "7"
    )
    message = await owner.next_message(seconds=SECONDS)
    out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    assert (process.returncode, message.text) == (0, READY_TO_RUN), err
    assert b"https://t.me/voltaire_bot" in out and b"abc" not in out + err
    folder = tmp_path / "c" / "voltaire"
    assert configured(tmp_path)["telegram"]["owners"] == [7]
    assert (folder / "telegram-token").read_text() == "1000001:abc\n"
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    async with open_store(tmp_path / "s/voltaire/voltaire.db") as store:
        acts = [json.loads(row.facts) for row in await store.ledger.rows() if row.kind == "admin"]
    done = {"did": "configured", "file": str(folder / "config.toml"), "by": "terminal"}
    assert acts[-1] == {"act": "setup", **done}


async def test_the_owner_is_found_by_the_pairing_link(gram: Localgram, tmp_path: Path) -> None:
    process = await voltaire(tmp_path, "--yes", "--token", "1000001:abc", "--base-url", gram.url)
    assert process.stdout
    link = ""
    while not (found := re.search(r"t\.me/voltaire_bot\?start=(\S+)", link)):
        link = (await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode()
    stranger = gram.user("Eve")
    await stranger.send("/start nonsense")
    owner = gram.user("Ada")
    await owner.send(f"/start {found[1]}")
    await owner.next_message(where=lambda m: m.text == READY_TO_RUN, seconds=SECONDS)
    await asyncio.wait_for(process.communicate(), SECONDS)
    assert process.returncode == 0


async def test_a_second_run_makes_no_link_unless_asked(gram: Localgram, tmp_path: Path) -> None:
    async with open_store(tmp_path / "s/voltaire/voltaire.db") as store:
        link = await store.people.make_code("owner", 60)
        assert await store.people.use_code("telegram", "7", "Ada", link) == "owner"
    owner, other = gram.user("Ada", id=7, started=True), gram.user("Bob", id=8)
    words = ("--yes", "--token", "1000001:abc", "--base-url", gram.url)
    code, out, err = await ended(await voltaire(tmp_path, *words))
    assert code == 0 and "start=" not in out, err
    assert (await owner.next_message(seconds=SECONDS)).text == READY_TO_RUN
    process = await voltaire(tmp_path, "--yes", "--pair")
    assert process.stdout
    link = ""
    while not (found := re.search(r"start=(\S+)", link)):
        link = (await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode()
    await other.send(f"/start {found[1]}")
    code, _, err = await ended(process)
    assert code == 0, err


async def test_a_server_that_is_away_is_told_from_a_refused_token(tmp_path: Path) -> None:
    process = await voltaire(
        tmp_path, "--yes", "--token", "1:a", "--base-url", "http://127.0.0.1:9"
    )
    code, _, err = await ended(process)
    assert code == 1 and "cannot be reached" in err and "token" not in err
    assert not (tmp_path / "c" / "voltaire").exists()


@pytest.mark.parametrize("words", [("--timezone", "No/Where"), ("--profile", "no-such-model")])
async def test_a_wrong_option_is_told_before_anything(
    gram: Localgram, tmp_path: Path, words: tuple[str, str]
) -> None:
    token = ("--yes", "--token", "1000001:abc", "--base-url", gram.url)
    code, _, err = await ended(await voltaire(tmp_path, *token, *words))
    assert code == 2 and words[1] in err
    assert not (tmp_path / "c" / "voltaire" / "config.toml").exists()


async def test_an_external_server_by_options(gram: Localgram, tmp_path: Path) -> None:
    gram.user("Ada", id=7, started=True)
    words = ("--yes", "--token", "1000001:abc", "--base-url", gram.url, "--owner", "7")
    async with served("ours", key="right") as url:
        more = ("--url", url, "--model", "ours", "--api-key")
        code, _, err = await ended(await voltaire(tmp_path, *words, *more, "wrong"))
        assert code == 1 and "refuses the key" in err
        code, out, err = await ended(await voltaire(tmp_path, *words, *more, "right"))
    assert code == 0 and f"{url} serves ours." in out, err
    backend = configured(tmp_path)["backend"]
    assert {key: backend[key] for key in ("kind", "url", "model", "api_key")} == {
        "kind": "external",
        "url": [url],
        "model": "ours",
        "api_key": "right",
    }
    assert "profile" not in backend


@asynccontextmanager
async def served(model: str, key: str) -> AsyncIterator[str]:
    """A model server that lists one model to whoever has the key."""

    async def models(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {key}":
            return web.Response(status=401)
        return web.json_response({"data": [{"id": model}]})

    app = web.Application()
    app.add_routes([web.get("/v1/models", models)])
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.mark.slow
async def test_nothing_is_compiled_unasked_without_a_card(gram: Localgram, tmp_path: Path) -> None:
    gram.user("Ada", id=7, started=True)
    words = ("--yes", "--token", "1000001:abc", "--base-url", gram.url, "--owner", "7")
    nowhere = {RELEASES_VARIABLE: "http://127.0.0.1:9"}
    folder = tmp_path / "c" / "voltaire" / "profiles"
    folder.mkdir(parents=True)
    (folder / "big.toml").write_text(CARD)
    more = ("--profile", "big", "--no-pull")
    _, out, err = await ended(await voltaire(tmp_path, *words, *more, **nowhere))
    assert "or voltaire server build\n" in out, err
    assert "Fetching the sources" not in out


async def test_removed_and_purged(gram: Localgram, tmp_path: Path) -> None:
    gram.user("Ada", id=7, started=True)
    words = ("--yes", "--token", "1000001:abc", "--base-url", gram.url, "--owner", "7")
    assert (await ended(await voltaire(tmp_path, *words)))[0] == 0
    (tmp_path / "s" / "voltaire-before-20260101T000000").mkdir()
    scope = SystemdScope(False, tmp_path / "units")
    state, config = tmp_path / "s" / "voltaire", tmp_path / "c" / "voltaire" / "config.toml"
    left = leftovers(scope, config, state)
    assert {Path(name).name for name in left} == {
        *("voltaire", "voltaire-before-20260101T000000", "config.toml", "telegram-token")
    }
    # What is deleted is named: it was "everything" in a folder that others' files may lie in, too.
    code, out, _ = await ended(await voltaire(tmp_path, "--remove", "--purge", said="n\n"))
    assert code == 130 and out.startswith(f"Delete {', '.join(left)}")
    assert purge(scope, config, state) == left
    assert leftovers(scope, config, state) == [] and not config.parent.exists()
    assert list((tmp_path / "s").iterdir()) == []


async def test_a_state_of_before_setup_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As root's own, where the services' state is /var/lib/voltaire."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
    before, state = tmp_path / "s" / "voltaire", tmp_path / "d"
    for folder in (before, state):
        async with open_store(folder / DATABASE):
            pass
    config = tmp_path / "c" / "voltaire" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[state]\ndir = "{state}"\n')
    _, out, err = await ended(await voltaire(tmp_path, "--yes"))
    assert f"State: {state} (what was said before setup is in {before}" in out, err
    scope = SystemdScope(False, tmp_path / "units")
    await uninstall(scope, config, state, everything=True, ask_first=False)
    assert f"(what was said before setup is in {before}" in capsys.readouterr().out
    assert before.exists() and not state.exists()


def test_a_state_behind_a_link_is_purged(tmp_path: Path) -> None:
    """As /var/lib/voltaire on another disk: the link was deleted, and all that it led to stayed."""
    disk, state = tmp_path / "disk [1]", tmp_path / "state"
    for name in ("voltaire", "voltaire-before-20260101T000000", "voltaire-upgrade"):
        (disk / name).mkdir(parents=True)
    (disk / "voltaire" / "voltaire.db").touch()
    state.symlink_to(disk / "voltaire")
    gone = purge(SystemdScope(False, tmp_path / "units"), tmp_path / "c" / "config.toml", state)
    assert len(gone) == 4 and list(disk.iterdir()) == [] and not state.is_symlink()


def test_secrets_beside_the_configuration_are_purged(tmp_path: Path) -> None:
    """A restore puts them there; those elsewhere are the owner's."""
    etc, elsewhere = tmp_path / "etc", tmp_path / "mine.env"
    etc.mkdir()
    elsewhere.write_text("A=1")
    (etc / "one.env").write_text("A=1")
    config = etc / "config.toml"
    config_file.write(config, {"agent": {"mcp": {"one": {"env_file": str(etc / "one.env")}}}})
    config_file.write(
        config,
        config_file.read(config) | {"telegram": {"token_file": str(elsewhere)}},
    )
    purge(SystemdScope(False, tmp_path / "units"), config, tmp_path / "state")
    assert not etc.exists() and elsewhere.exists()


@pytest.mark.parametrize("before", ["yes", "no"])
def test_lingering_ends_where_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    log = tmp_path / "log"
    program(
        tmp_path / "bin" / "loginctl",
        f'case "$1" in show-user) echo {before} ;; *) echo "$1" >> {log} ;; esac',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    state = tmp_path / "state"
    state.mkdir()
    (state / "voltaire.db").touch()
    assert enable_linger(state)
    purge(SystemdScope(False, tmp_path / "units"), tmp_path / "config.toml", state)
    ended = [] if before == "yes" else ["disable-linger"]
    assert log.read_text().split() == ["enable-linger", *ended]


NO_BUS = [
    "Failed to connect to bus: No medium found",
    "Failed to connect to bus: Operation not permitted",
    "Failed to connect to bus: Permission denied",
    "Failed to connect to bus: No such file or directory",
    "Failed to connect to bus: Connection refused",
    "Failed to connect to user scope bus via local transport: $DBUS_SESSION_BUS_ADDRESS and $XDG_RUNTIME_DIR not"
    " defined (consider using --machine=<user>@.host --user to connect to bus of other user)",
    "Failed to get D-Bus connection: Operation not permitted",
    "Failed to get environment: Process org.freedesktop.systemd1 exited with status 1",
    "Failed to reload daemon: Process org.freedesktop.systemd1 exited with status 127",
    "Failed to list units: The name org.freedesktop.systemd1 was not provided by any .service files",
    "Failed to enable unit: Could not activate remote peer 'org.freedesktop.systemd1': activation request failed",
    "System has not been booted with systemd as init system. Can't operate.\nFailed to connect to bus: Host is down",
]


def user_systemd(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, runs: str, said: str = NO_BUS[0]
) -> Path:
    """Programs in place of systemd's, whose calls are in the log that is returned; `runs`: whether the user's does."""
    log = folder / "log"
    log.touch()
    program(folder / "bin" / "loginctl", f'echo "loginctl $1" >> {log}')
    program(
        folder / "bin" / "systemctl",
        f'echo "systemctl $2" >> {log}; {runs} && exit 0; echo {shlex.quote(said)} >&2; exit 1',
    )
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(units, "RUNTIME", folder)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    return log


def test_lingering_is_enabled_before_the_units_are_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = user_systemd(tmp_path, monkeypatch, runs="true")
    installation = Installation(tmp_path / "config.toml", None, tmp_path / "state")
    assert install(SystemdScope(False, tmp_path / "units"), installation)
    called = log.read_text().splitlines()
    assert called.index("loginctl enable-linger") < called.index("systemctl daemon-reload")
    assert called[-2:] == ["systemctl enable", "systemctl restart"]


@pytest.mark.parametrize("named", ["", "ann"])
def test_a_user_without_an_entry_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """As in a container that runs as any number."""
    user_systemd(tmp_path, monkeypatch, runs="false")
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    if named:
        monkeypatch.setenv("LOGNAME", named)
    monkeypatch.setattr(os, "geteuid", lambda: 4_294_967_294)
    monkeypatch.setattr(os, "getuid", lambda: 4_294_967_294)
    with pytest.raises(SetupError) as raised:
        run_systemctl(SystemdScope(False, tmp_path / "units"), "daemon-reload")
    assert str(raised.value) == saying(f"enable-linger {named or 4_294_967_294}")


@pytest.mark.parametrize("said", NO_BUS)
@pytest.mark.parametrize("act", [install, renew, remove])
def test_a_user_without_a_bus_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, act: Callable[..., object]
) -> None:
    log = user_systemd(tmp_path, monkeypatch, runs="false", said=said)
    scope = SystemdScope(False, tmp_path / "units")
    installation = Installation(tmp_path / "config.toml", None, tmp_path / "state")
    if act is not install:
        scope.folder.mkdir()
        (scope.folder / UNITS[1]).touch()
    with pytest.raises(SetupError) as raised:
        act(scope) if act is remove else act(scope, installation)
    last = said.split("\n")[-1]
    assert str(raised.value) == saying(last, "su or sudo", "enable-linger", "again")
    if act is install:
        assert "daemon-reload" not in log.read_text() and scope.present_units() == []


@pytest.mark.parametrize("said", [NO_BUS[0], NO_BUS[5], NO_BUS[7]])
async def test_doctor_says_why_nothing_is_known_of_the_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    user_systemd(tmp_path, monkeypatch, runs="false", said=said)
    scope = SystemdScope(False, tmp_path / "units")
    monkeypatch.setattr(SystemdScope, "installed", lambda: scope)
    monkeypatch.setattr(doctor_machine, "systemd_runs", lambda: True)
    (found,) = await doctor_machine.units(Settings())
    assert (found.status, found.detail) == ("warn", saying(said, "su or sudo", "enable-linger"))


@pytest.mark.parametrize("named", ["", "/run/user/4294967294", "/proc/self/nothing", "/dev/null/x"])
@pytest.mark.parametrize("there", [True, False])
def test_the_users_bus_is_found_where_the_login_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool, named: str
) -> None:
    """Or names another user's, as su does."""
    own = tmp_path / str(os.geteuid())
    user_systemd(tmp_path, monkeypatch, runs=f'[ "$XDG_RUNTIME_DIR" = {own} ]')
    monkeypatch.setenv("XDG_RUNTIME_DIR", named)
    scope = SystemdScope(False, tmp_path / "units")
    if there:
        own.mkdir()
        run_systemctl(scope, "show-environment")
    else:
        with pytest.raises(SetupError):
            run_systemctl(scope, "show-environment")


def test_the_bots_unit_shows_the_folders_of_mcp_servers(tmp_path: Path) -> None:
    folders = ["/srv/books", "/srv/out:rw"]
    scope = SystemdScope(True, tmp_path / "units")
    wizard = Wizard(tmp_path / "config.toml", tmp_path / "state", Given(), True, scope)
    wizard.values = {"agent": {"mcp": {"files": {"command": ["x"], "folders": folders}}}}
    unit = render(scope, wizard.installation())["voltaire-bot.service"].splitlines()
    assert "BindReadOnlyPaths=-/srv/books" in unit and "BindPaths=-/srv/out" in unit


async def test_without_a_messaging_app_the_units_serve_the_terminal(tmp_path: Path) -> None:
    systemctl = program(tmp_path / "systemctl", f'echo "$@" >> {tmp_path}/log; echo active')
    scope = SystemdScope(False, tmp_path / "units", str(systemctl))
    wizard = Wizard(tmp_path / "config.toml", tmp_path / "state", Given(units=True), True, scope)
    assert await wizard.start()
    assert "restart voltaire.target" in (tmp_path / "log").read_text()
    assert "LoadCredential" not in (tmp_path / "units" / "voltaire-bot.service").read_text()


@pytest.mark.slow
async def test_a_state_with_a_long_path_is_served_and_purged(
    gram: Localgram, tmp_path: Path
) -> None:
    home = tmp_path / ("long" * 30)
    gram.user("Ada", id=7, started=True)
    words = ("--yes", "--token", "1000001:abc", "--base-url", gram.url, "--owner", "7")
    code, _, err = await ended(await voltaire(home, *words))
    assert code == 0, err
    state, socket = home / "s" / "voltaire", Path(configured(home)["backend"]["socket"])
    socket.parent.mkdir(exist_ok=True)  # as after a kill
    purge(SystemdScope(False, home / "units"), home / "c" / "voltaire" / "config.toml", state)
    assert not socket.parent.exists()


def test_a_file_that_goes_by_itself_ends_no_purge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As SQLite's own, when the last connection is closed meanwhile."""
    config, state = tmp_path / "c" / "config.toml", tmp_path / "state"
    for folder in (config.parent, state):
        folder.mkdir()
    config.touch()
    for name in ("voltaire.db", "voltaire.db-shm", "voltaire.db-wal"):
        (state / name).touch()
    unlink = os.unlink

    def vanishing(name: Any, **more: Any) -> None:
        unlink(name, **more)
        if name == "voltaire.db-shm":
            raise FileNotFoundError(2, "No such file or directory", name)

    monkeypatch.setattr(os, "unlink", vanishing)
    purge(SystemdScope(False, tmp_path), config, state)
    assert not state.exists() and not config.exists()


def test_a_folder_of_somebody_else_is_not_purged(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one").touch()
    with pytest.raises(SetupError, match="holds no state"):
        purge(SystemdScope(False, tmp_path), tmp_path / "c.toml", tmp_path / "letters")
    assert (tmp_path / "letters" / "one").exists()


async def test_a_wrong_token_changes_nothing(gram: Localgram, tmp_path: Path) -> None:
    process = await voltaire(tmp_path, "--yes", "--token", "1000002:wrong", "--base-url", gram.url)
    out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    assert process.returncode == 1
    assert "token" in err.decode() and len(err.decode().splitlines()) == 1
    assert not (tmp_path / "c" / "voltaire").exists() and b"wrong" not in out + err


TINY = """
title = "Tiny"
gpu = false
context = 8192
[model]
repo = "a/b"
file = "tiny.gguf"
"""


def profiled(home: Path) -> tuple[str, ...]:
    """Options for a profile "tiny" of one's own, which is to be downloaded."""
    folder = home / "c" / "voltaire" / "profiles"
    folder.mkdir(parents=True)
    (folder / "tiny.toml").write_text(TINY)
    return "--yes", "--token", "1000001:abc", "--owner", "7", "--profile", "tiny"


async def test_the_model_is_pulled_and_an_interrupted_wizard_goes_on(
    gram: Localgram, tmp_path: Path
) -> None:
    gram.user("Ada", id=7, started=True)
    words = (*profiled(tmp_path), "--base-url", gram.url)
    content = gguf_maker.make(tmp_path / "tiny.gguf").read_bytes()
    async with Hub(content).running() as hub:
        own = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf")}
        hub.status = 404
        code, _, err = await ended(await voltaire(tmp_path, *words, **own))
        assert (code, err) == (1, "a/b has no file tiny.gguf.\n")
        assert configured(tmp_path) == {
            "telegram": {
                "token_file": str(tmp_path / "c" / "voltaire" / "telegram-token"),
                "base_url": gram.url,
                "owners": [7],
            },
            "agent": {"timezone": machine_timezone()},
        }
        hub.status = 200
        again = ("--yes", "--profile", "tiny")
        code, out, err = await ended(await voltaire(tmp_path, *again, **own))
    assert code == 0, err
    assert "Pulling a/b/tiny.gguf" in out and "The first message is delivered." in out
    state = tmp_path / "s" / "voltaire"
    assert (state / "models" / "tiny.gguf").read_bytes() == content
    assert state.stat().st_mode & 0o777 == 0o700
    backend = configured(tmp_path)["backend"]
    assert (backend["profile"], backend["server"]) == ("tiny", "auto")


async def test_a_server_that_is_not_there_is_not_configured(
    gram: Localgram, tmp_path: Path
) -> None:
    words = ("--yes", "--token", "1000001:abc", "--base-url", gram.url, "--server", "/absent")
    code, _, err = await ended(await voltaire(tmp_path, *words))
    assert (code, err) == (1, saying("/absent is missing"))
    assert configured(tmp_path)["backend"] == {"profile": "pocket"}


def builder(tools: Path) -> str:
    """A PATH with tools that make a server out of nothing."""
    made = program(
        tools / "made", 'case "$1" in --help) echo "-m, --model FNAME  the model" ;; esac'
    )
    copies = " ".join(f'; cp {made} "$2/bin/{name}"' for name in ("llama-server", "llama-bench"))
    program(tools / "cmake", "exit 0")
    # Beside other tests the lowest priority may get no turn at all.
    program(tools / "nice", 'shift 2; "$@"; echo "ended: $?"')
    program(tools / "ionice", 'shift 2; exec "$@"')
    program(tools / "ninja", f'mkdir -p "$2/bin" {copies}')
    gcc(tools, 12)
    return os.pathsep.join([str(tools), os.environ["PATH"]])


@pytest.fixture
def v100(tmp_path: Path) -> dict[str, str]:
    """An environment with a card of 16 GB and what compiles for it."""
    library, scene = tmp_path / "libnvidia-ml.so.1", tmp_path / "scene"
    name = "-Wl,-soname,libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", name, "-o", library, NVML], check=True)
    scene.write_text(f"cards 1\nused 0\ntotal {16 << 30}\ncapability 70\n")
    sources = tmp_path / "s/voltaire/servers" / f"source-{VERSION}" / "x/tools/server"
    sources.mkdir(parents=True)
    (sources / "CMakeLists.txt").touch()
    path = builder(tmp_path / "tools")
    kit = cuda(tmp_path / "cuda", "11.8", "sm_70 sm_75", newest_gcc=12)
    return {
        "LD_LIBRARY_PATH": str(tmp_path),
        "FAKE_NVML": str(scene),
        "PATH": os.pathsep.join([str(kit.parent), path]),
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "HF_HOME": str(tmp_path / "hf"),
    }


CARD = '\ntitle = "Big"\ncontext = 8192\n[model]\npath = "/nowhere/big.gguf"\n'


@pytest.mark.slow
async def test_a_card_serves_with_a_released_server_while_one_is_compiled(
    gram: Localgram, tmp_path: Path, v100: dict[str, str]
) -> None:
    gram.user("Ada", id=7, started=True)
    folder = tmp_path / "c" / "voltaire" / "profiles"
    folder.mkdir(parents=True)
    (folder / "big.toml").write_text(CARD)
    words = ("--yes", "--token", "1000001:abc", "--base-url", gram.url, "--owner", "7")
    async with ReleaseServer().running() as releases:
        own = {**v100, RELEASES_VARIABLE: releases.url}
        process = await voltaire(tmp_path, *words, "--profile", "big", "--no-pull", **own)
        code, out, err = await ended(process)
    assert code == 0, err
    servers = tmp_path / "s/voltaire/servers"
    log = servers / "compile.log"
    assert (
        "about 84 minutes of one core" in out and f"in the background. Its output: {log}\n" in out
    )
    # The wizard has ended; its compilation goes on, and what it made is compared. It comes last on a busy machine.
    await soon(lambda: "ended: " in log.read_text(), 4 * SECONDS)
    assert log.read_text() == saying("Neither could be measured", "In use: ", "ended: 0\n")
    compiled = servers / f"llama.cpp-{VERSION}-cuda" / "bin" / "llama-server"
    assert (servers / "llama-server").resolve() == compiled
    assert (servers / f"released-{TAG}-vulkan").is_dir()


def test_in_the_background_nothing_stands_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/a:/b")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    unit = transient_unit(SystemdScope(False, tmp_path), ["voltaire", "server", "build"])
    assert unit[:2] == ["systemd-run", "--user"] and unit[-4:] == [
        "--",
        "voltaire",
        "server",
        "build",
    ]
    assert {"--setenv=PATH=/a:/b", "--property=Nice=19", "--collect"} <= set(unit)
    assert not any(part.startswith("--setenv=CUDA_HOME") for part in unit)
    assert "--user" not in transient_unit(SystemdScope(True, tmp_path), ["x"])
    assert lowest_priority()[:3] == ["nice", "-n", "19"]


@pytest.mark.slow
async def test_a_model_is_proposed_by_what_fits_the_card(gram: Localgram, tmp_path: Path) -> None:
    gram.user("Ada", id=7, started=True)
    library, scene = tmp_path / "libnvidia-ml.so.1", tmp_path / "scene"
    name = "-Wl,-soname,libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", name, "-o", library, NVML], check=True)
    scene.write_text(f"cards 1\nused 0\ntotal {4 << 30}\n")
    own = {"LD_LIBRARY_PATH": str(tmp_path), "FAKE_NVML": str(scene)}
    own |= {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hf")}
    answers = ["1000001:abc", "UTC", "", "no", "later"]
    words = ("--base-url", gram.url, "--owner", "7")
    process = await voltaire(tmp_path, *words, said="\n".join(answers) + "\n", **own)
    code, out, err = await ended(process)
    assert code == 0, err
    [line] = [line for line in out.splitlines() if "qwen2.5-3b: " in line]
    assert all(figure in line for figure in ("16,384 tokens", "36 tokens/s", "3.5 of 4.0 GiB"))
    assert configured(tmp_path)["backend"]["profile"] == "qwen2.5-3b"


def test_the_file_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    values = {
        "telegram": {"owners": [1, 2], "language": 'e"n\\'},
        "agent": {
            "sandbox": {"network": True},
            "repos": {"my site": {"path": "/srv/s\u00efte", "write": False}},
        },
        "backend": {
            "warn_celsius": 80,
            "price_kwh": 0.31,
            "schedule": [{"at": "08:00", "profile": "a"}],
        },
    }
    config_file.write(tmp_path / "c.toml", values)
    assert config_file.read(tmp_path / "c.toml") == values
    assert list(tmp_path.iterdir()) == [tmp_path / "c.toml"]
