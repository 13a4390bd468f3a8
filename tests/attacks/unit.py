"""The attack suite as the bot's unit would run it: its own unit file, started by a real systemd.

Nothing of the unit is changed but what is started, and that it ends.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from bot.setup.units import UNITS, Installation, SystemdScope, render
from fakes.booted import CODE, SHARED, Booted, booted

BOT = UNITS[1]
STATE = Path("/var/lib/voltaire")
SECONDS = 3600.0  # on a busy machine the attacks alone took 26 minutes

_INSTEAD = f"""\
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
WatchdogSec=0
Restart=no
TimeoutStartSec={SECONDS:g}
WorkingDirectory={CODE}
Environment=PYTHONDONTWRITEBYTECODE=1
ExecStart=
StandardOutput=append:{SHARED}/said
StandardError=inherit
"""
_PREPARE = (
    "systemd-sysusers {code}/systemd/voltaire.sysusers && "
    "systemd-tmpfiles --create {code}/systemd/voltaire.tmpfiles && "
    "install -m 0600 /dev/null /etc/voltaire/token && "
    "cp -r {shared}/units/. /etc/systemd/system/ && systemctl daemon-reload"
)


async def against_unit(folder: Path, areas: Sequence[str] = ()) -> tuple[int, str]:
    """First its walls, then the attacks inside them: exit code and what they printed."""
    attacks = f"-m tests.attacks --folder {STATE}/attacked {' '.join(areas)}"
    programs = [f"!mkdir {STATE}/attacked", "-m tests.attacks.hardening", attacks]
    async with booted(folder) as machine:
        return await started(machine, programs)


async def started(machine: Booted, programs: Sequence[str]) -> tuple[int, str]:
    """Arguments to Python (or, after a !, a command) in the place of the bot."""
    lines = [f"ExecStart={p[1:] if p[0] == '!' else f'{sys.executable} {p}'}\n" for p in programs]
    _write(machine.shared / "units", "".join(lines))
    prepare = _PREPARE.format(code=CODE, shared=SHARED)
    code, said = await machine.run("sh", "-c", prepare)
    if code:
        return code, said
    code, said = await machine.run("systemctl", "start", BOT, seconds=SECONDS)
    log = machine.shared / "said"
    return code, (log.read_text("utf-8", "replace") if log.exists() else "") + said


def _write(folder: Path, starts: str) -> None:
    drop_in = folder / f"{BOT}.d"
    drop_in.mkdir(parents=True)
    etc = Path("/etc/voltaire")
    installation = Installation(etc / "config.toml", etc / "token", STATE)
    (folder / BOT).write_text(render(SystemdScope(True, folder), installation)[BOT])
    (drop_in / "instead.conf").write_text(_INSTEAD + starts)
