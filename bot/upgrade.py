"""Another version of the program in the place of this one: tried first, and taken back where it fails.

Everything that is needed later is imported before anything is replaced.
"""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from agent.store.errors import StoreNewer
from bot.backup import backup
from bot.installed_program import (
    STEP_SECONDS,
    InstalledProgram,
    ProgramVersion,
    UpgradeError,
    run,
)
from bot.restore import keep_secrets
from bot.state import DATABASE

QUESTION = "how much disk space is free?"
TEST_SECONDS = 300.0
# What a test of the new program may not share with the services that run meanwhile.
ALONE = {"VOLTAIRE_BACKEND__LOCAL_PORT": "0", "VOLTAIRE_TELEGRAM__WEBHOOK_URL": ""}


@dataclass(frozen=True, slots=True)
class UpgradeRecord:
    """The last upgrade. `schema` is that of the database in `backup`, the state before."""

    before: ProgramVersion
    after: ProgramVersion
    backup: str
    schema: int


class RestartableServices(Protocol):
    """The units, if there are any. `start` raises UpgradeError when they do not become ready."""

    async def stop(self) -> None: ...

    async def start(self, command: Path) -> None: ...


@dataclass(frozen=True)
class Upgrade:
    """`config` is the configuration in use, None: there is none. `folder` keeps what a return needs."""

    installation: InstalledProgram
    services: RestartableServices
    state: Path
    config: Path | None
    say: Callable[[str], None]

    @property
    def folder(self) -> Path:
        return self.state.with_name(f"{self.state.name}-upgrade")

    async def forward(self, release: ProgramVersion) -> None:
        """Back up, try the new program beside this one, switch; return to this one where it fails."""
        before = await self.installation.current()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True)
        target = self.folder / f"before-{before.version}.tar.gz"
        saved, schema = await self.saved(target)
        with emptied(self.folder / "next") as place, emptied(self.folder / "trial") as trial:
            self.say(f"Installing {release.version} beside {before.version}.")
            command = await self.installation.prepare(release, place)
            if schema and saved is None:
                await self.ran(command, "backup", str(target))
                saved = target
            self.say("Trying it on a copy of the state, and with one turn on Pocket.")
            await self.tried(command, saved, trial)
        record = UpgradeRecord(before, release, str(saved or ""), schema)
        (self.folder / "record.json").write_text(json.dumps(asdict(record)), "utf-8")
        self.say(f"Switching to {release.version}.")
        await self.services.stop()
        try:
            await self.installation.switch(release)
            await self.services.start(self.installation.command)
        except UpgradeError as error:
            self.say(f"{error} Returning to {before.version}.")
            await self.returned(record)
            raise UpgradeError(
                f"{release.version} was not taken: {error} {before.version} is back."
            ) from None
        self.say(f"{release.version} is installed; `voltaire upgrade --rollback` takes it back.")

    async def rollback(self) -> None:
        """Undo the last upgrade; UpgradeError where there is none."""
        try:
            fields = json.loads((self.folder / "record.json").read_text("utf-8"))
        except FileNotFoundError:
            raise UpgradeError("There is no upgrade to take back.") from None
        record = UpgradeRecord(
            **{
                **fields,
                "before": ProgramVersion(**fields["before"]),
                "after": ProgramVersion(**fields["after"]),
            }
        )
        current = await self.installation.current()
        if current.origin != record.after.origin:
            raise UpgradeError(
                f"The last upgrade was to {record.after.version} ({record.after.origin}), and that"
                " is not what is installed now."
            )
        await self.services.stop()
        await self.returned(record)
        (self.folder / "record.json").unlink()
        self.say(f"{record.before.version} is back.")

    async def returned(self, record: UpgradeRecord) -> None:
        """The old program and, where the new one changed the database's form, the old state."""
        await self.services.stop()
        await self.installation.back(record.before)
        if schema_of(self.state / DATABASE) > record.schema:
            self.say("The database is in the new form: the state before the upgrade is restored.")
            self.say(await self.ran(self.installation.command, "restore", record.backup))
        await self.services.start(self.installation.command)

    async def saved(self, target: Path) -> tuple[Path | None, int]:
        """A backup of the state, read back and checked, and its schema; None where there is no
        state, or one of a newer version, which the new program is to back up."""
        if not (self.state / DATABASE).exists():
            return None, 0
        try:
            manifest = await backup(self.state, target, self.config, secrets=False)
        except StoreNewer as error:
            self.say(str(error))
            return None, schema_of(self.state / DATABASE)
        self.say(f"Backup: {target}, checked.")
        return target, manifest.schema

    async def tried(self, command: Path, saved: Path | None, trial: Path) -> None:
        """The new program: whether it reads this configuration, brings this state up to date, has
        no trouble that this one has not, and answers."""
        own = {
            **ALONE,
            "VOLTAIRE_STATE__DIR": str(trial / "state"),
            "VOLTAIRE_BACKEND__SOCKET": str(trial / "s"),
        }
        if saved:
            await self.ran(command, "restore", str(saved), environment=own)
        else:
            (trial / "state").mkdir(mode=0o700)
        # Of these a backup has none, and the new program's doctor misses what is not there. Of what
        # the bot is logged in with it gets a copy: nothing that it does there can end a session.
        for name in ("models", "servers"):
            if (self.state / name).exists() and not (trial / "state" / name).exists():
                (trial / "state" / name).symlink_to(self.state / name)
        await asyncio.to_thread(keep_secrets, self.state, trial / "state")
        known = await self.trouble(self.installation.command, {})
        new = {
            name: said
            for name, said in (await self.trouble(command, own)).items()
            if name not in known
        }
        if new:
            raise UpgradeError(f"The new program's doctor says: {'; '.join(new.values())}")
        await self.ran(command, "demo", f"--ask={QUESTION}", environment=ALONE)

    async def trouble(self, command: Path, environment: Mapping[str, str]) -> dict[str, str]:
        """What a program's doctor fails at, by the check."""
        out = await self.ran(
            command, "doctor", "--json", environment=environment, codes=(0, 1), seconds=TEST_SECONDS
        )
        return {row["check"]: row["detail"] for row in json.loads(out) if row["status"] == "fail"}

    async def ran(
        self,
        command: Path,
        *words: str,
        environment: Mapping[str, str] = {},
        codes: tuple[int, ...] = (0,),
        seconds: float = STEP_SECONDS,
    ) -> str:
        config = ("--config", str(self.config)) if self.config else ()
        return await run(
            str(command), *config, *words, environment=environment, codes=codes, seconds=seconds
        )


def schema_of(database: Path) -> int:
    if not database.exists():
        return 0
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
        return int(opened.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def emptied(folder: Path) -> Iterator[Path]:
    """An empty folder for the block."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
