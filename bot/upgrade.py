"""Upgrading the program: the new version is tried first, and rolled back where it fails.

Everything that is needed later is imported before any file is replaced.
"""

import asyncio
import fcntl
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from agent.aio import complete
from agent.files import bytes_below, replacing
from agent.store.errors import StoreNewer
from bot.backup import backup, is_backed_up
from bot.installed_program import InstalledProgram, ProgramVersion, UpgradeError, run
from bot.restore import keep_secrets
from bot.setup import SetupError, units
from bot.state import DATABASE

QUESTION = "how much disk space is free?"
TEST_SECONDS = 300.0
SETTLING_SECONDS = 5.0  # a service that fails soon after it was ready has failed
# What a test of the new program must not share with the running services.
ALONE = {"VOLTAIRE_BACKEND__LOCAL_PORT": "0", "VOLTAIRE_TELEGRAM__WEBHOOK_URL": ""}


@dataclass(frozen=True, slots=True)
class UpgradeRecord:
    """The last upgrade. `backup` is the state before it, `schema` that of the database in there."""

    before: ProgramVersion
    after: ProgramVersion
    backup: str
    schema: int


@dataclass(frozen=True)
class SystemdServices:
    """The systemd units, if there are any. Both methods raise UpgradeError."""

    scope: units.SystemdScope
    config: Path | None

    async def stop(self) -> None:
        try:
            if names := units.installed(self.scope):
                await asyncio.to_thread(units.run_systemctl, self.scope, "stop", *names)
        except SetupError as error:
            raise UpgradeError(str(error)) from None

    async def start(self, command: Path) -> None:
        """Have the installed program renew and start its own units, and wait until they have settled."""
        if not units.installed(self.scope):
            return
        config = ("--config", str(self.config)) if self.config else ()
        await run(str(command), *config, "setup", "--upgrade")
        await asyncio.sleep(SETTLING_SECONDS)
        for name, state in (await asyncio.to_thread(units.unit_states, self.scope)).items():
            if state != "active":
                raise UpgradeError(
                    f"{name} is {state} ({units.journal(self.scope, name)} says why)."
                )


@dataclass(frozen=True)
class Upgrade:
    """Upgrades this installation, and rolls back.

    `config` is the configuration file in use, if any; `folder` keeps what a rollback needs.
    """

    installation: InstalledProgram
    services: SystemdServices
    state: Path
    config: Path | None
    say: Callable[[str], None]

    @property
    def folder(self) -> Path:
        return self.state.with_name(f"{self.state.name}-upgrade")

    @property
    def config_option(self) -> tuple[str, ...]:
        return ("--config", str(self.config)) if self.config else ()

    @property
    def record_path(self) -> Path:
        return self.folder / "record.json"

    async def forward(self, release: ProgramVersion) -> None:
        """Back up, try the new program beside this one, switch to it; roll back where that fails.

        A rollback of the upgrade before remains possible until the new program has passed the trial.
        """
        with only_upgrade(self.folder):
            record = await self.prepared(release)
            # An interruption must not leave the services stopped.
            if why := await complete(self.switched(record)):
                raise UpgradeError(why)

    async def prepared(self, release: ProgramVersion) -> UpgradeRecord:
        """Try the new program, and store what a rollback to this program and this state needs."""
        before = await self.installation.current()
        await asyncio.to_thread(self.check_room)
        fresh = self.folder / "backup.new"
        fresh.unlink(missing_ok=True)
        try:
            saved, schema = await self.saved(fresh)
            with emptied(self.folder / "next") as place, emptied(self.folder / "trial") as trial:
                self.say(f"Installing {release.title} beside {before.title}.")
                command = await self.installation.prepare(release, place)
                if schema and saved is None:
                    await self.ran(command, "backup", str(fresh))
                    saved = fresh
                self.say("Trying it on a copy of the state, and with one turn on Pocket.")
                await self.tried(command, saved, trial)
            self.record_path.unlink(missing_ok=True)
            for earlier in self.folder.glob("before-*.tar.gz"):
                earlier.unlink()
            if saved:
                saved = fresh.rename(self.folder / f"before-{before.version}.tar.gz")
                self.say(f"Backup: {saved}, checked.")
            record = UpgradeRecord(before, release, str(saved or ""), schema)
            with replacing(self.record_path, sync=True) as file:
                file.write_text(json.dumps(asdict(record)), "utf-8")
            return record
        except BaseException:
            self.say(f"{before.title} goes on as it was.")
            raise
        finally:
            fresh.unlink(missing_ok=True)

    def check_room(self) -> None:
        """Raise UpgradeError if the disk cannot hold a second copy of program and state for the trial."""
        ours = self.state.iterdir() if self.state.exists() else ()
        copied = [path for path in ours if is_backed_up(path, secrets=True)]
        found = sum(map(bytes_below, (Path(sys.prefix), self.state / DATABASE, *copied)))
        needed = found * 5 // 4  # whole blocks, folders, the sources
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            room = f"{needed >> 20} MiB are needed in {self.folder} to try the new version"
            raise UpgradeError(f"The disk has too little room: {room}, and {free >> 20} are free.")

    async def switched(self, record: UpgradeRecord) -> str:
        """Switch to the new program. Where that fails, roll back and return why; "" on success."""
        before, after = record.before.title, record.after.title
        self.say(f"Switching to {after}.")
        try:
            await self.services.stop()
            await self.installation.switch(record.after)
            await self.services.start(self.installation.command)
        except (UpgradeError, OSError) as error:
            self.say(f"{sentence(error)} Returning to {before}.")
            await self.returned(record)
            return f"{after} was not taken: {sentence(error)} {before} is back."
        self.say(f"{after} is installed; `voltaire upgrade --rollback` takes it back.")
        return ""

    async def rollback(self) -> None:
        """Undo the last upgrade, or finish a rollback that was interrupted before the state was restored.

        Raises UpgradeError where there is none.
        """
        if not self.record_path.exists():
            raise UpgradeError("There is no upgrade to take back.")
        with only_upgrade(self.folder):
            fields = json.loads(self.record_path.read_text("utf-8"))
            versions = {name: ProgramVersion(**fields[name]) for name in ("before", "after")}
            record = UpgradeRecord(**{**fields, **versions})
            current = await self.installation.current()
            taken = current.origin == record.after.origin
            unfinished = schema_of(self.state / DATABASE) > record.schema
            if not taken and not (unfinished and current.origin == record.before.origin):
                raise UpgradeError(
                    f"The last upgrade was to {record.after.version} ({record.after.origin}), and"
                    " that is not what is installed now."
                )
            await complete(self.returned(record, program=taken))
        self.say(f"{record.before.title} is back.")

    async def returned(self, record: UpgradeRecord, *, program: bool = True) -> None:
        """Return to the old program and, where the new one has migrated the database, to the old state."""
        await self.services.stop()
        if program:
            try:
                await self.installation.back(record.before)
            except UpgradeError as error:  # what it needs may be there all the same
                self.say(str(error))
        if schema_of(self.state / DATABASE) > record.schema:
            self.say("The database is in the new form: the state before the upgrade is restored.")
            self.say(await self.ran(self.installation.command, "restore", "--yes", record.backup))
        await self.services.start(self.installation.command)
        self.record_path.unlink()

    async def saved(self, target: Path) -> tuple[Path | None, int]:
        """Make a checked backup of the state; return it and its schema. None if there is no state, or one of a newer version,
        which the new program has to back up."""
        if not (self.state / DATABASE).exists():
            return None, 0
        try:
            manifest = await backup(self.state, target, self.config, secrets=False)
        except StoreNewer as error:
            self.say(str(error))
            return None, schema_of(self.state / DATABASE)
        return target, manifest.schema

    async def tried(self, command: Path, saved: Path | None, trial: Path) -> None:
        """Try the new program: it must read this configuration, migrate this state, have no problem that this one
        has not, and answer."""
        own = {
            **ALONE,
            "VOLTAIRE_STATE__DIR": str(trial / "state"),
            "VOLTAIRE_BACKEND__SOCKET": str(trial / "s"),
        }
        if saved:
            await self.ran(command, "restore", str(saved), environment=own)
        else:
            (trial / "state").mkdir(mode=0o700)
        # No backup holds these, and the new program's doctor would report them missing. Of the bot's logins it
        # gets a copy, so that it cannot end a session.
        for name in ("models", "servers"):
            if (self.state / name).exists() and not (trial / "state" / name).exists():
                (trial / "state" / name).symlink_to(self.state / name)
        await asyncio.to_thread(keep_secrets, self.state, trial / "state")
        known = await self.trouble(self.installation.command, {})
        found = await self.trouble(command, own)
        if new := [said for check, said in found.items() if check not in known]:
            raise UpgradeError(f"The new program's doctor says: {'; '.join(new)}")
        await self.ran(command, "demo", f"--ask={QUESTION}", environment=ALONE)

    async def trouble(self, command: Path, environment: Mapping[str, str]) -> dict[str, str]:
        """The failed checks of a program's doctor, with their details."""
        argv = (str(command), *self.config_option, "doctor", "--json")
        out = await run(*argv, environment=environment, codes=(0, 1), seconds=TEST_SECONDS)
        return {row["check"]: row["detail"] for row in json.loads(out) if row["status"] == "fail"}

    async def ran(self, command: Path, *words: str, environment: Mapping[str, str] = {}) -> str:
        return await run(str(command), *self.config_option, *words, environment=environment)


def schema_of(database: Path) -> int:
    if not database.exists():
        return 0
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
        return int(opened.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def only_upgrade(folder: Path) -> Iterator[None]:
    """Hold the upgrade lock of this state. Raises UpgradeError if another upgrade holds it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UpgradeError("Another upgrade is under way.") from None
        yield
    finally:
        os.close(fd)


def sentence(error: UpgradeError | OSError) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or 'A file'}: {error.strerror}."
    return str(error)


@contextmanager
def emptied(folder: Path) -> Iterator[Path]:
    """Empty the folder for the block, and delete it afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
