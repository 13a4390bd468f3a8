"""A system install under a real systemd: what an operator does to it, and what it leaves behind."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.setup.units import UNITS, Installation, SystemdScope, render
from fakes.booted import CODE, SHARED, Booted, booted, lacking
from fakes.words import saying
from tests.attacks.__main__ import scratch

pytestmark = [pytest.mark.timeout(1800), pytest.mark.slow]
ETC, STATE = Path("/etc/voltaire"), Path("/var/lib/voltaire")
VOLTAIRE = f"{CODE}/.venv/bin/voltaire"
CONFIG = """\
[telegram]
token = "123:abc"
base_url = "http://127.0.0.1:9"
owners = [7]
[backend]
kind = "external"
url = "http://127.0.0.1:9"
connect_seconds = 1
socket = "/var/lib/voltaire/run/backend.sock"
[state]
dir = "/var/lib/voltaire"
"""
INSTALL = f"""\
set -e
chmod 711 /root
systemd-sysusers {CODE}/systemd/voltaire.sysusers
systemd-tmpfiles --create {CODE}/systemd/voltaire.tmpfiles
install -m 0640 -g voltaire {SHARED}/config.toml {ETC}/config.toml
install -m 0600 {SHARED}/token {ETC}/telegram-token
useradd --no-create-home member && usermod -aG voltaire member && useradd --no-create-home stranger
cp -r {SHARED}/units/. /etc/systemd/system/ && systemctl daemon-reload
systemctl start voltaire-backend voltaire-bot
"""


@pytest.fixture
async def machine() -> AsyncIterator[Booted]:
    if why := await lacking():
        pytest.skip(why)
    with scratch() as folder:
        units = folder / "units"
        units.mkdir()
        installation = Installation(ETC / "config.toml", ETC / "telegram-token", STATE)
        for name, text in render(SystemdScope(True, units), installation).items():
            (units / name).write_text(text)
            if (
                name != UNITS[2]
            ):  # no network-online, and no compiling for a user that cannot keep it
                (units / f"{name}.d").mkdir()
                (units / f"{name}.d" / "here.conf").write_text(
                    "[Unit]\nDefaultDependencies=no\n[Service]\nEnvironment=PYTHONDONTWRITEBYTECODE=1\n"
                    f"StandardError=append:{SHARED}/{name}.log\n"
                )
        (folder / "config.toml").write_text(CONFIG)
        (folder / "token").write_text("123:abc")
        async with booted(folder) as machine:
            code, out = await machine.run("sh", "-c", INSTALL)
            logs = "".join(log.read_text() for log in folder.glob("*.log"))
            assert code == 0, out + logs + await said(machine, "systemctl", "status", *UNITS[:2])
            yield machine


async def said(machine: Booted, *words: str) -> str:
    return (await machine.run(*words))[1].strip()


def as_user(name: str, *words: str) -> tuple[str, ...]:
    return ("setpriv", f"--reuid={name}", f"--regid={name}", "--init-groups", *words)


async def states(machine: Booted) -> str:
    return await said(machine, "systemctl", "is-active", *UNITS[:2])


async def test_what_an_operator_does(machine: Booted) -> None:
    assert await states(machine) == "active\nactive", "ready, though Telegram is away"
    status = json.loads(await said(machine, VOLTAIRE, "status", "--json"))
    assert "cannot be reached" in status["bot"]["problem"]
    line = await said(machine, "systemctl", "show", "--property=StatusText", UNITS[1])
    assert "cannot be reached" in line

    # Administration as root leaves nothing of root's.
    await machine.run(VOLTAIRE, "doctor")
    await machine.run(VOLTAIRE, "sandbox", "--", "touch", "file")
    code, out = await machine.run(VOLTAIRE, "backup", "--secrets", "/tmp/b.tar.gz")
    assert code == 0, out
    assert await said(machine, "find", str(STATE), "!", "-user", "voltaire") == ""

    # A member of the group reads the status, a stranger one sentence.
    status = json.loads(await said(machine, *as_user("member", VOLTAIRE, "status", "--json")))
    assert status["backend"]["kind"] == "external" and "reached" in status["bot"]["problem"]
    code, out = await machine.run(*as_user("member", VOLTAIRE, "jobs", "list"))
    assert (code, out) == (1, saying("belongs to voltaire", "`sudo voltaire jobs list`"))
    for words in (("status",), ("--config", f"{ETC}/config.toml", "status")):
        code, out = await machine.run(*as_user("stranger", VOLTAIRE, *words))
        assert code == 2 and len(out.splitlines()) == 1 and "use sudo" in out

    # A restart of the idle bot; both end with 0.
    for unit in UNITS[:2]:
        before = float(await said(machine, "cut", "-d ", "-f1", "/proc/uptime"))
        assert await machine.run("systemctl", "restart", unit) == (0, "")
        after = float(await said(machine, "cut", "-d ", "-f1", "/proc/uptime"))
        print(f"restart of {unit}: {after - before:.1f} s")
    await machine.run("systemctl", "stop", *UNITS[:2])
    assert await said(machine, "systemctl", "is-failed", *UNITS[:2]) == "inactive\ninactive"
    shown = await said(machine, "systemctl", "show", "--property=ExecMainStatus", *UNITS[:2])
    assert shown.split() == ["ExecMainStatus=0"] * 2

    # Restored as root, it is the service's.
    code, out = await machine.run(VOLTAIRE, "restore", "--yes", "/tmp/b.tar.gz")
    assert code == 0 and re.search(r" /var/lib/voltaire-before-\d+T\d+", out)
    assert await said(machine, "find", str(STATE), "!", "-user", "voltaire") == ""
    assert await machine.run("systemctl", "start", *UNITS[:2]) == (0, "")
    history = await said(machine, VOLTAIRE, "status")
    assert history.count("The backend was started.") >= 2

    # A credential that is not there: one try, not one every three seconds.
    drop_in = f"/etc/systemd/system/{UNITS[1]}.d/here.conf"
    nowhere = f"echo LoadCredential=telegram-token:/nowhere >> {drop_in}"
    await machine.run("sh", "-c", f"{nowhere} && systemctl daemon-reload")
    await machine.run("systemctl", "restart", UNITS[1])
    shown = await said(machine, "systemctl", "show", "--property=SubState,ExecMainStatus", UNITS[1])
    assert {"SubState=failed", "ExecMainStatus=243"} == set(shown.split())  # not auto-restart
