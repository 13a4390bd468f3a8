"""The machine itself: Python, the sandbox, disk, clock, secrets, units."""

import asyncio
import platform
import shutil
import stat
import subprocess
import time

from agent.errors import AgentError
from agent.sandbox.isolation_probe import probe
from bot.cli.checks import Finding, failure, passed, warning
from bot.cli.connect import chat_sandboxes
from bot.settings import Settings, find_file, read_toml
from bot.setup.units import SystemdScope, systemd_runs, unit_states

GIB = 2**30
LEAST_FREE = 2 * GIB
BUILT = 1_760_000_000  # a clock before autumn 2025 is wrong


async def python(_: Settings) -> list[Finding]:
    return [passed("python", f"Python {platform.python_version()}")]  # an older one cannot read us


async def sandbox(settings: Settings) -> list[Finding]:
    try:
        async with chat_sandboxes(settings) as sandboxes:
            found = await probe(await sandboxes.of("doctor"))
    except AgentError as error:
        return [failure("sandbox", str(error), "See docs/security.md.")]
    return [Finding("sandbox", found.status, found.detail, found.remedy)]


async def disk(settings: Settings) -> list[Finding]:
    place = settings.state_dir
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    detail = f"{free / GIB:.1f} GiB free on the disk of {settings.state_dir}"
    if free >= LEAST_FREE:
        return [passed("disk", detail)]
    return [warning("disk", detail, "Free some space, or move the state (state.dir).")]


async def clock(_: Settings) -> list[Finding]:
    if time.time() < BUILT:
        remedy = "Set the clock: timedatectl set-ntp true."
        return [failure("clock", f"The clock says {time.ctime()}.", remedy)]
    if await asyncio.to_thread(synchronised) == "no":
        return [warning("clock", "The clock is not synchronised.", "timedatectl set-ntp true")]
    return [passed("clock", f"The clock says {time.strftime('%Y-%m-%d %H:%M %Z')}")]


def synchronised() -> str:
    """ "yes" or "no"; empty where systemd does not tell."""
    argv = ["timedatectl", "show", "--property=NTPSynchronized", "--value"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


async def secrets(settings: Settings) -> list[Finding]:
    """Files that hold secrets are readable to their owner alone."""
    config = find_file(None)
    files = [settings.state_dir, settings.telegram.token_file]
    if config and config.exists():
        values = read_toml(config)
        if values.get("telegram", {}).get("token") or values.get("backend", {}).get("api_key"):
            files.append(config)
    others = stat.S_IRWXG | stat.S_IRWXO
    readable = [path for path in files if path and path.exists() and path.stat().st_mode & others]
    if not readable:
        return [passed("secrets", "No secret is readable to others.")]
    names = " ".join(map(str, readable))
    return [failure("secrets", f"Others can read {names}.", f"chmod go= {names}")]


async def units(_: Settings) -> list[Finding]:
    if not systemd_runs():
        detail = "systemd does not run here; `voltaire run` serves in the foreground."
        return [passed("units", detail)]
    scope = SystemdScope.here()
    findings = []
    for name, state in (await asyncio.to_thread(unit_states, scope)).items():
        show = " ".join(["systemctl", *scope.flags, "status", name])
        remedy = f"{show}; `voltaire setup` installs the units."
        if state == "active":
            findings.append(passed("units", f"{name} is active"))
        else:
            findings.append(warning("units", f"{name} is {state}.", remedy))
    return findings
