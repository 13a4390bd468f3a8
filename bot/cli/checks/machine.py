"""The machine itself: Python, the sandbox, disk, clock, secrets, units."""

import os
import platform
import shutil
import stat
import subprocess
import time
from pathlib import Path

from bot.cli.checks import Finding, passed
from bot.settings import Settings, find_file, read_toml

GIB = 2**30
LEAST_FREE = 2 * GIB
BUILT = 1_760_000_000  # a clock before autumn 2025 is wrong
ADJ_UNSYNCED = "no"


async def python(_: Settings) -> list[Finding]:
    return [passed("python", f"Python {platform.python_version()}")]  # an older one cannot read us


async def sandbox(settings: Settings) -> list[Finding]:
    from agent.errors import AgentError
    from agent.sandbox.isolation_probe import probe
    from bot.cli.connect import chat_sandboxes

    try:
        async with chat_sandboxes(settings) as sandboxes:
            found = await probe(await sandboxes.of("doctor"))
    except AgentError as error:
        return [Finding("sandbox", "fail", str(error), "See docs/security.md.")]
    return [Finding("sandbox", found.status, found.detail, found.remedy)]


async def disk(settings: Settings) -> list[Finding]:
    place = settings.state_dir
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    detail = f"{free / GIB:.1f} GiB free on the disk of {settings.state_dir}"
    if free >= LEAST_FREE:
        return [passed("disk", detail)]
    return [Finding("disk", "warn", detail, "Free some space, or move the state (state.dir).")]


async def clock(_: Settings) -> list[Finding]:
    if time.time() < BUILT:
        return [
            Finding(
                "clock",
                "fail",
                f"The clock says {time.ctime()}.",
                "Set the clock: timedatectl set-ntp true.",
            )
        ]
    synced = _told("timedatectl", "show", "--property=NTPSynchronized", "--value")
    if synced == ADJ_UNSYNCED:
        return [
            Finding("clock", "warn", "The clock is not synchronised.", "timedatectl set-ntp true")
        ]
    return [passed("clock", f"The clock says {time.strftime('%Y-%m-%d %H:%M %Z')}")]


async def secrets(settings: Settings) -> list[Finding]:
    """Files that hold secrets are readable to their owner alone."""
    open_ones = [path for path in _secret_files(settings) if _others_read(path)]
    if not open_ones:
        return [passed("secrets", "No secret is readable to others.")]
    names = " ".join(str(path) for path in open_ones)
    return [Finding("secrets", "fail", f"Others can read {names}.", f"chmod go= {names}")]


def _secret_files(settings: Settings) -> list[Path]:
    config = find_file(None)
    files = [settings.state_dir, settings.telegram.token_file]
    if config and config.exists() and _holds_secret(config):
        files.append(config)
    return [path for path in files if path and path.exists()]


def _holds_secret(config: Path) -> bool:
    values = read_toml(config)
    return bool(values.get("telegram", {}).get("token") or values.get("backend", {}).get("api_key"))


def _others_read(path: Path) -> bool:
    return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


async def units(_: Settings) -> list[Finding]:
    if not _systemd():
        return [
            passed("units", "systemd does not run here; `voltaire run` serves in the foreground.")
        ]
    scope = [] if os.geteuid() == 0 else ["--user"]
    return [_unit(name, scope) for name in ("voltaire-backend.service", "voltaire-bot.service")]


def _systemd() -> bool:
    return Path("/run/systemd/system").is_dir()


def _unit(name: str, scope: list[str]) -> Finding:
    state = _told("systemctl", *scope, "is-active", name) or "unknown"
    if state == "active":
        return passed("units", f"{name} is active")
    remedy = f"systemctl {' '.join([*scope, 'status', name])}; `voltaire setup` installs the units."
    return Finding("units", "warn", f"{name} is {state}.", remedy)


def _told(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
