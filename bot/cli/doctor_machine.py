"""Checks of `voltaire doctor`: Python, sandbox, disk, clock, secrets, units, database, Telegram, Matrix.

Each is one async function, named after its check; doctor.py has the list.
"""

import asyncio
import importlib.util
import os
import platform
import re
import shlex
import shutil
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from agent.aio import output_of
from agent.documents.indexer import MOST_FILES, files_of
from agent.errors import AgentError, ToolError
from agent.sandbox.observer import Observer
from agent.store import open_store
from agent.store.errors import StoreBusy, StoreError, StoreFull, StoreNewer
from agent.web.search import AWAY as TO_A_MODEL
from agent.web.search import SearchRefused, open_engine
from backend.client import BackendUnavailable
from backend.pictures import DrawFailed, find_font, font_folders
from bot.agent_config import account_config
from bot.backup import NAME as BACKUP
from bot.cli.connect import backend_client, chat_sandboxes, configured_servers, sandbox_probe
from bot.secret_values import secret_files
from bot.settings import Settings, can_see, read_toml
from bot.setup import SetupError
from bot.setup.matrix import no_homeserver
from bot.setup.telegram import NoAccount, get_me
from bot.setup.units import SystemdScope, journal, run, run_systemctl, systemd_runs, unit_states
from bot.state import DATABASE, MATRIX, read_presence

GIB = 2**30
LEAST_FREE = 2 * GIB
FULL = 64 << 20  # bytes; a turn with its tool output may write as much
AWAY = "Check the network and telegram.base_url; the bot waits for its server by itself."
LEVELS = 3  # of folders in the state that are searched for files of other users
BUILT = 1_760_000_000  # a clock before autumn 2025 is wrong
MAKE_ROOM = "Free some space, or move the state (state.dir)."
SCRIPT_PAGE = "data:text/html,<script>document.write('by '+'a script')</script>"
RESTORE = "voltaire restore FILE, from a backup."


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check. `remedy` says what to do about it; empty for a pass."""

    check: str
    status: Literal["pass", "warn", "fail"]
    detail: str
    remedy: str = ""


def passed(check: str, detail: str) -> Finding:
    return Finding(check, "pass", detail)


def warning(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check, "warn", detail, remedy)


def failure(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check, "fail", detail, remedy)


async def python(_: Settings) -> list[Finding]:
    return [passed("python", f"Python {platform.python_version()}")]  # an older one cannot read us


async def sandbox(settings: Settings) -> list[Finding]:
    found = await sandbox_probe(settings)
    return [Finding("sandbox", found.status, found.detail, found.remedy)]


async def owner(settings: Settings) -> list[Finding]:
    """Check that all files of the state belong to its owner: the bot cannot write others."""
    state = settings.state_dir
    if not state.exists():
        return []
    uid = state.stat().st_uid
    if uid == 0:  # the agent's commands then run as a user of their own, who owns files in it
        return [passed("owner", "The state is root's.")]
    for parent, folders, files in os.walk(state):
        for name in (*folders, *files):
            with suppress(OSError):
                if (Path(parent) / name).lstat().st_uid != uid:
                    remedy = f"sudo chown -R --no-dereference {uid} {shlex.quote(str(state))}"
                    return [failure("owner", f"{parent}/{name} belongs to another user.", remedy)]
        if len(Path(parent).relative_to(state).parts) >= LEVELS:
            folders.clear()
    return [passed("owner", "All of the state is its owner's.")]


async def ports(settings: Settings) -> list[Finding]:
    """Whether the fixed ports are free, or held by our own services."""
    findings = []
    async with backend_client(settings) as backend:
        if settings.backend.local_port and not await backend.answers():
            findings += port("backend.local_port", "127.0.0.1", settings.backend.local_port)
    if settings.telegram.webhook_url and not read_presence(settings.state_dir):
        host, _, number = settings.telegram.webhook_listen.rpartition(":")
        findings += port("telegram.webhook_listen", host.strip("[]"), int(number))
    return findings


def port(key: str, host: str, number: int) -> list[Finding]:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, number), family=family):
            return [passed("ports", f"Port {number} ({key}) is free.")]
    except OSError as error:
        detail = f"Port {number} ({key}) cannot be used: {error.strerror}."
        remedy = (
            f"Stop what uses it (ss -ltnp 'sport = :{number}' names it), or set {key} to another."
        )
        return [failure("ports", detail, remedy)]


async def disk(settings: Settings) -> list[Finding]:
    place = settings.state_dir
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    detail = f"{free / GIB:.1f} GiB free on the disk of {settings.state_dir}"
    if free >= LEAST_FREE:
        return [passed("disk", detail)]
    return [(failure if free < FULL else warning)("disk", detail, MAKE_ROOM)]


async def backups(settings: Settings) -> list[Finding]:
    """Whether the bot makes its daily backup."""
    folder = settings.state.backup_dir
    if folder == Path():
        return []
    newest = ""
    with suppress(OSError):
        newest = max(
            (path.name for path in folder.iterdir() if BACKUP.fullmatch(path.name)), default=""
        )
    yesterday = datetime.now().astimezone().date() - timedelta(1)
    if newest >= f"voltaire-{yesterday}":
        return [passed("backups", f"{folder / newest} is the newest.")]
    show = journal(SystemdScope.installed(), "voltaire-bot")
    remedy = (
        "`voltaire setup --upgrade` lets the unit write there and restarts it; why it cannot:"
        f" {show} | grep backup"
    )
    return [warning("backups", f"There is none of today or yesterday in {folder}.", remedy)]


async def font(_: Settings) -> list[Finding]:
    """Whether the system has a font for the pictures of charts."""
    try:
        family, _files = await asyncio.to_thread(find_font, font_folders())
    except DrawFailed:
        detail = "There is no font: /gpu and the bench draw no pictures."
        return [warning("font", detail, "apt-get install fonts-dejavu-core")]
    return [passed("font", f"Pictures are written with {family}")]


async def documents(settings: Settings) -> list[Finding]:
    """Whether the owner's folders are there, and PDFs can be read."""
    folders = settings.agent.documents
    if gone := [f"{name} ({path})" for name, path in folders.items() if not path.is_dir()]:
        detail = f"These folders of documents are not there: {', '.join(gone)}."
        return [warning("documents", detail, "Correct agent.documents in the configuration.")]
    for name, path in folders.items():
        count = await asyncio.to_thread(lambda at: sum(1 for _ in files_of(at)), path)
        if count > MOST_FILES:
            detail = (
                f"{name} ({path}) is too large: of its {count:,} documents {MOST_FILES:,} are read."
            )
            remedy = "Name those of its folders that matter in agent.documents, each by itself."
            return [warning("documents", detail, remedy)]
    if not shutil.which("pdftotext"):
        detail = "PDFs that are sent cannot be read."
        return [warning("documents", detail, "apt-get install poppler-utils")]
    scans = (
        "and scans" if shutil.which("tesseract") else "but no scans: apt-get install tesseract-ocr"
    )
    return [passed("documents", f"PDFs can be read, {scans}")]


async def voice(settings: Settings) -> list[Finding]:
    """Whether voice messages can be transcribed and answers spoken, and by what."""
    from agent.agent import voice_models
    from agent.voice.speech import Speech
    from agent.voice.speech_to_text import NoRecognizer, SpeechToText

    findings, models, by = [], voice_models(settings.state_dir), ""
    async with backend_client(settings) as backend:
        with suppress(BackendUnavailable):
            if await backend.answers() and (await backend.endpoint()).audio:
                by = "the model itself"
    try:
        by = by or (await SpeechToText(models, settings.agent.transcribe_url).recognizer()).name
        findings.append(passed("voice", f"Voice messages are heard by {by}."))
    except NoRecognizer as error:
        findings.append(warning("voice", "Nothing here hears voice messages.", str(error)))
    if missing := Speech(models).missing():
        findings.append(warning("voice", "Answers cannot be spoken.", missing))
    return findings


async def clock(_: Settings) -> list[Finding]:
    if time.time() < BUILT:
        remedy = "Set the clock: timedatectl set-ntp true."
        return [failure("clock", f"The clock says {time.ctime()}.", remedy)]
    if await asyncio.to_thread(synchronised) == "no":
        return [warning("clock", "The clock is not synchronised.", "timedatectl set-ntp true")]
    return [passed("clock", f"The clock says {time.strftime('%Y-%m-%d %H:%M %Z')}")]


def synchronised() -> str:
    """Whether the clock is synchronised: "yes", "no", or "" where systemd does not say."""
    show = ("timedatectl", "show", "--property=NTPSynchronized", "--value")
    with suppress(SetupError):
        return run(*show, check=False, seconds=10)
    return ""


async def secrets(settings: Settings) -> list[Finding]:
    """Whether the files with secrets are readable to their owner alone, or to the machine's services."""
    files = [settings.state_dir, settings.telegram.token_file, settings.page.key_file]
    files += [settings.matrix.password_file, settings.matrix.token_file]
    if settings.path:
        values = read_toml(settings.path)
        files += [path for _, path in secret_files(values) if path not in files]
        telegram, backend = values.get("telegram", {}), values.get("backend", {})
        if telegram.get("token") or backend.get("api_key") or backend.get("local_key"):
            files.append(settings.path)
    services = settings.state_dir.stat().st_gid if settings.state_dir.exists() else 0
    found: dict[str, str] = {}  # by path, chmod's mode that closes it
    for path in filter(None, files):
        if not path.exists():
            continue
        file = path.stat()
        # The machine's configuration is root's, and the services read it through their group.
        for_services = services != 0 and (file.st_uid, file.st_gid) == (0, services)
        if file.st_mode & (0o007 if for_services else 0o077):
            found[str(path)] = "o=" if for_services else "go="
    if not found:
        return [passed("secrets", "No secret is readable to others.")]
    remedy = " && ".join(
        shlex.join(["chmod", mode, *(path for path in found if found[path] == mode)])
        for mode in dict.fromkeys(found.values())
    )
    return [failure("secrets", f"Others can read {' '.join(found)}.", remedy)]


async def units(_: Settings) -> list[Finding]:
    if not systemd_runs():
        detail = "systemd does not run here; `voltaire run` serves in the foreground."
        return [passed("units", detail)]
    scope = SystemdScope.installed()
    try:
        await asyncio.to_thread(run_systemctl, scope, "show-environment")
    except SetupError as error:  # it says what helps
        return [warning("units", str(error), "")]
    findings = []
    for name, state in (await asyncio.to_thread(unit_states, scope)).items():
        show = " ".join(["systemctl", *scope.flags, "status", name])
        remedy = f"{show}; `voltaire setup` installs the units."
        if state == "active":
            findings.append(passed("units", f"{name} is active"))
        else:
            findings.append(warning("units", f"{name} is {state}.", remedy))
    return findings


async def database(settings: Settings) -> list[Finding]:
    path = settings.state_dir / DATABASE
    if not path.exists():
        return [passed("database", "Not made yet.")]
    try:
        async with open_store(path) as store:
            problem = await store.database.damage()
            uncertain = (await store.outbox.counts()).get("uncertain", 0)
            aside = await store.set_aside.count()
    except StoreError as error:
        remedies: dict[type[StoreError], str] = {
            StoreNewer: "voltaire upgrade",
            StoreFull: MAKE_ROOM,
            StoreBusy: f"fuser {path} names the process.",
        }
        return [failure("database", str(error), remedies.get(type(error), RESTORE))]
    if problem:
        return [failure("database", f"{path} is damaged: {problem}.", RESTORE)]
    detail = f"{path.stat().st_size / 2**20:.1f} MiB, intact"
    detail += f"; {uncertain} uncertain sends" if uncertain else ""
    if aside:
        detail += f"; {aside} entries that could not be handled are set aside"
        return [warning("database", detail, f"They are kept in the table set_aside of {path}.")]
    return [passed("database", detail)]


async def search(settings: Settings) -> list[Finding]:
    """Whether the configured search engine answers a search."""
    web = settings.agent.web
    engine = open_engine(web.search, web.search_url, web.search_key_file)
    if engine is None:
        return []
    try:
        found = await engine.search("weather")
    except SearchRefused as error:
        told = str(error).removesuffix(f" {TO_A_MODEL}")
        return [failure("search", told, f"{error.remedy} docs/web.md says how.")]
    count = f"{engine.name} at {engine.host} gave {len(found.results)} results."
    if found.silent:
        remedy = "Its preferences show which engines answer; others can be turned off there."
        silent = f"{count} These engines did not answer: {', '.join(found.silent)}."
        return [warning("search", silent, remedy)]
    return [passed("search", count)]


async def rendering(settings: Settings) -> list[Finding]:
    """Whether Chromium runs the scripts of a page in the sandbox, where that is switched on."""
    if not settings.agent.web.render:
        return []
    from agent.sandbox.hosts import WholeWeb
    from agent.web import chromium
    from agent.web.fetch import Downloaded

    async def nothing(_request: object) -> None:
        raise ToolError("This page asks for nothing.")

    page, number = Downloaded(SCRIPT_PAGE, "text/html", "utf-8", b""), 0
    with suppress(OSError, TimeoutError):
        _, told = await output_of(str(chromium.PROGRAM), "--version", seconds=60)
        number = int((re.findall(rb"\d+", told) or [0])[0])
        if number < chromium.LEAST:
            detail = f"The Chromium here is too old: version {number}, {chromium.LEAST} is needed."
            return [failure("rendering", detail, "apt install chromium")]
    try:
        async with chat_sandboxes(settings) as boxes:
            box = await boxes.of("doctor")
            made = await chromium.render(page, WholeWeb(lambda _: False), nothing, box)
    except AgentError as error:
        why = str(error).replace(page.url, "A page")
        return [failure("rendering", why, "apt install chromium; docs/web.md says more.")]
    if b"by a script" not in made.raw:
        detail = f"Chromium {number} renders nothing in the sandbox."
        return [failure("rendering", detail, "voltaire sandbox -- true shows whether that works.")]
    return [passed("rendering", f"Chromium {number} renders pages.")]


async def calendar(settings: Settings) -> list[Finding]:
    """Whether the server of each calendar account answers with its calendars."""
    findings, today = [], datetime.now().astimezone().date()
    for name, section in settings.agent.calendar.items():
        from agent.calendar.accounts import Calendars

        calendars = Calendars({name: dict(section)}, settings.agent.timezone)
        days = {"first": str(today), "last": str(today + timedelta(1))}
        try:
            found = await calendars.ask(name, "read", Observer(), **days)
        except ToolError as error:
            remedy = f"Look at agent.calendar.{name}; docs/calendar.md says what it takes."
            findings.append(failure("calendar", f"{name}: {error}", remedy))
        else:
            detail = f"{name} answers; entries today: {len(found['entries'])}."
            findings.append(passed("calendar", detail))
    return findings


async def mcp(settings: Settings) -> list[Finding]:
    """Whether each configured MCP server starts."""
    if not settings.agent.mcp or not (settings.state_dir / DATABASE).exists():
        return []
    from agent.mcp.listed import listed_tools
    from agent.tools.registry import chosen

    findings = []
    async with (
        open_store(settings.state_dir / DATABASE) as store,
        chat_sandboxes(settings, store) as sandboxes,
        configured_servers(settings, store, sandboxes) as servers,
    ):
        for name, config in servers.configs.items():
            try:
                async with servers.session(name, "doctor") as running:
                    pins = await servers.pins(name)
                    unseen = [tool.name for tool in running.tools if not pins.seen(tool)]
                    count = len(running.tools)
            except ToolError as error:
                findings.append(failure("mcp", f"{name}: {error}", f"voltaire mcp test {name}"))
                continue
            raw = f" It {config.kept_secrets}." if config.kept_secrets else ""
            if unseen:
                detail = f"{name}: an owner has not seen {', '.join(unseen)} as they are now.{raw}"
                findings.append(warning("mcp", detail, f"voltaire mcp test {name}"))
            else:
                findings.append(
                    passed("mcp", f"{name}: {count} tools, all as they were allowed.{raw}")
                )
        listed = await listed_tools(servers, chosen(settings.agent.tools))
    if listed.problem:
        findings.append(warning("mcp", listed.problem, "docs/mcp.md"))
    return findings


async def mail(settings: Settings) -> list[Finding]:
    """Whether each mail account lets us in; no letter is sent."""
    if not settings.agent.mail:
        return []
    from agent.mail.account import try_account

    findings = []
    for name, section in settings.agent.mail.items():
        try:
            told = await try_account(account_config(name, section), settings.state_dir / "mail")
            findings.append(passed("mail", f"{name}: {told}"))
        except ToolError as error:
            findings.append(failure("mail", f"{name}: {error}", "docs/mail.md"))
    return findings


async def paired(settings: Settings) -> bool:
    """Whether somebody became an owner by a pairing link."""
    path = settings.state_dir / DATABASE
    with suppress(StoreError):
        if path.exists():
            async with open_store(path) as store:
                return bool(await store.people.all("telegram", "owner"))
    return False


async def matrix(settings: Settings) -> list[Finding]:
    """The homeserver and the bot's session; nothing where no homeserver is configured."""
    section, folder = settings.matrix, settings.state_dir / MATRIX
    if not section.homeserver:
        return []
    findings: list[Finding] = []
    if importlib.util.find_spec("nio") is None:
        how = "`make matrix`, or pip install 'voltaire-agent[matrix]'"
        findings.append(failure("matrix", "The package matrix-nio is not installed.", how))
    why = await no_homeserver(section.homeserver)
    if why:
        remedy = "Check the network and matrix.homeserver; the bot waits for it by itself."
        findings.append(failure("matrix", why, remedy))
    session = folder / "session.json"
    given = section.password_file or section.token_file
    if not session.exists() and (given is None or not can_see(given)):
        remedy = "voltaire setup logs it in."
        findings.append(failure("matrix", f"{section.user} has never logged in.", remedy))
    if not section.owners:
        remedy = "Name yourself in matrix.owners, such as @me:example.org."
        findings.append(warning("matrix", "No owner is configured.", remedy))
    logged_in = "is logged in" if session.exists() else "logs in at the bot's next start"
    return findings or [passed("matrix", f"{section.user} {logged_in}")]


async def telegram(settings: Settings) -> list[Finding]:
    token = settings.telegram.token.get_secret_value()
    if not token:
        if settings.matrix.homeserver:
            return []  # Matrix alone
        return [passed("telegram", "No messaging app; `voltaire setup telegram` adds one.")]
    found = await get_me(settings.telegram.base_url, token)
    if isinstance(found, NoAccount):
        remedy = "voltaire setup --token NEW, from @BotFather." if found.refused else AWAY
        return [failure("telegram", found.why, remedy)]
    findings = [passed("telegram", f"@{found['username']} answers")]
    here = read_presence(settings.state_dir)
    if here and here.problem:
        findings.append(failure("telegram", here.problem, "Once it is mended, the bot goes on."))
    if not settings.telegram.owners and not await paired(settings):
        remedy = "voltaire setup makes a pairing link."
        findings.append(warning("telegram", "No owner is configured.", remedy))
    if found.get("can_join_groups") and settings.telegram.groups == "off":
        detail = "The bot can be added to groups, though groups are off."
        findings.append(warning("telegram", detail, "@BotFather: /setjoingroups, Disable."))
    return findings
