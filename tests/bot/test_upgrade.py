"""An upgrade is tried before it is taken, taken back when it fails, and on wish; nothing new is nothing done."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import cast
from zipfile import ZipFile

import pytest

from agent.store import open_store
from backend import proc
from bot.installed_program import (
    Checkout,
    Environment,
    ProgramVersion,
    UpgradeError,
    added_lines,
    run,
)
from bot.upgrade import SystemdServices, Upgrade
from fakes.command_line import folders, own_environment
from fakes.patience import soon
from fakes.pseudo_terminal import CTRL_C, typing_at
from fakes.words import saying

PROGRAM = """#!/bin/sh
# A program of version {version}: doctor finds {trouble}, the demo ends with {demo}, a restore with {restore}.
case "$*" in
*" backup "*|backup*) echo "backup by {version}" >> {log}; touch "$2" ;;
*doctor*) echo '[{trouble}]' ;;
*demo*) exit {demo} ;;
*restore*)
    [ -n "$VOLTAIRE_STATE__DIR" ] && mkdir -p "$VOLTAIRE_STATE__DIR" && exit 0
    [ {restore} = 0 ] && echo restored >> {log} ;;
esac
"""
TROUBLE = '{"check": "x", "status": "fail", "detail": "It is broken."}'


@dataclass
class Place:
    """An installation of a program of a few lines, which can be made to fail."""

    folder: Path
    versions: dict[str, dict[str, object]]
    installed: str = "1"
    newer: str = "2"
    on_switch: Callable[[], None] = lambda: None

    @property
    def command(self) -> Path:
        return self.write(self.folder / "installed", self.installed)

    def write(self, folder: Path, version: str) -> Path:
        folder.mkdir(exist_ok=True)
        values = {"trouble": "", "demo": 0, "restore": 0, **self.versions.get(version, {})}
        path = folder / "voltaire"
        path.write_text(PROGRAM.format(version=version, log=self.folder / "log", **values))
        path.chmod(0o755)
        return path

    async def current(self) -> ProgramVersion:
        return ProgramVersion(self.installed, self.installed)

    async def newest(self) -> ProgramVersion | None:
        return ProgramVersion(self.newer, self.newer)

    async def prepare(self, release: ProgramVersion, folder: Path) -> Path:
        return self.write(folder, release.version)

    async def switch(self, release: ProgramVersion) -> None:
        self.installed = release.version
        self.on_switch()
        await asyncio.sleep(0)  # where an interruption arrives

    async def back(self, release: ProgramVersion) -> None:
        self.installed = release.version


@dataclass
class Units:
    """`fails`: the versions that do not become ready."""

    place: Place
    fails: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)

    async def stop(self) -> None:
        self.said.append("stop")

    async def start(self, command: Path) -> None:
        self.said.append(f"start {self.place.installed}")
        if self.place.installed in self.fails:
            raise UpgradeError("voltaire-bot.service is failed.")


async def made(folder: Path, *fails: str, **second: object) -> tuple[Upgrade, Place, Units]:
    async with open_store(folder / "s" / "voltaire.db"):
        pass
    place = Place(folder, {"2": second})
    units = Units(place, set(fails))
    said: list[str] = []
    return (
        Upgrade(
            cast(Checkout, place), cast(SystemdServices, units), folder / "s", None, said.append
        ),
        place,
        units,
    )


def schema(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "s" / "voltaire.db")) as database:
        return int(database.execute("PRAGMA user_version").fetchone()[0])


def migrate(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "s" / "voltaire.db")) as database:
        database.execute(f"PRAGMA user_version = {schema(folder) + 1}")


async def test_forward_and_back(tmp_path: Path) -> None:
    upgrade, place, units = await made(tmp_path)
    await upgrade.forward(ProgramVersion("2", "2"))
    assert (place.installed, units.said) == ("2", ["stop", "start 2"])
    assert {path.name for path in upgrade.folder.iterdir()} == {"before-1.tar.gz", "record.json"}
    await upgrade.rollback()
    assert place.installed == "1" and units.said[-1] == "start 1"
    assert not (tmp_path / "log").exists(), "the state is in the old form, so it stays"
    with pytest.raises(UpgradeError, match="no upgrade to take back"):
        await upgrade.rollback()


async def test_one_that_is_not_taken_leaves_the_way_back_from_the_one_before(
    tmp_path: Path,
) -> None:
    upgrade, place, _ = await made(tmp_path)
    await upgrade.forward(ProgramVersion("2", "2"))
    migrate(tmp_path)  # this program cannot read it any more: the new ones back it up
    kept = {path.name: path.stat().st_mtime_ns for path in upgrade.folder.iterdir()}
    place.versions["3"] = {"demo": 1}
    with pytest.raises(UpgradeError, match="demo"):
        await upgrade.forward(ProgramVersion("3", "3"))
    assert {path.name: path.stat().st_mtime_ns for path in upgrade.folder.iterdir()} == kept
    await upgrade.rollback()
    assert place.installed == "1" and (tmp_path / "log").read_text().endswith("restored\n")


async def test_two_at_once_are_one(tmp_path: Path) -> None:
    upgrade, place, _ = await made(tmp_path)
    found: list[str] = []

    async def another() -> None:
        for again in (upgrade.forward(ProgramVersion("2", "2")), upgrade.rollback()):
            with pytest.raises(UpgradeError) as refused:
                await again
            found.append(str(refused.value))

    prepare = place.prepare

    async def meanwhile(release: ProgramVersion, folder: Path) -> Path:
        await another()
        return await prepare(release, folder)

    await upgrade.forward(ProgramVersion("2", "2"))
    place.prepare = meanwhile  # type: ignore[method-assign]
    await upgrade.forward(ProgramVersion("3", "3"))
    assert place.installed == "3" and found == ["Another upgrade is under way."] * 2


async def test_without_room_for_the_trial_nothing_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade, place, units = await made(tmp_path)
    usage = shutil.disk_usage(tmp_path)._replace(free=60 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage)
    with pytest.raises(
        UpgradeError, match=r"too little room: \d+ MiB are needed in .* 60 are free"
    ):
        await upgrade.forward(ProgramVersion("2", "2"))
    assert (place.installed, units.said, list(upgrade.folder.iterdir())) == ("1", [], [])


async def test_a_disk_that_is_full_at_the_switch_brings_the_old_one_back(tmp_path: Path) -> None:
    upgrade, place, units = await made(tmp_path)

    def full() -> None:
        raise OSError(28, "No space left on device", "/opt/x")

    place.on_switch = full
    with pytest.raises(UpgradeError, match=r"not taken: /opt/x: No space left on device\. 1 is"):
        await upgrade.forward(ProgramVersion("2", "2"))
    assert place.installed == "1" and units.said[-1] == "start 1"


async def test_an_interruption_at_the_switch_does_not_leave_the_services_stopped(
    tmp_path: Path,
) -> None:
    upgrade, place, units = await made(tmp_path)
    work = asyncio.create_task(upgrade.forward(ProgramVersion("2", "2")))

    def interrupted() -> None:
        work.cancel()

    place.on_switch = interrupted
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (place.installed, units.said[-1]) == ("2", "start 2")


async def test_a_return_that_could_not_restore_the_state_is_ended_by_rollback(
    tmp_path: Path,
) -> None:
    upgrade, place, units = await made(tmp_path)
    await upgrade.forward(ProgramVersion("2", "2"))
    migrate(tmp_path)
    place.versions["1"] = {"restore": 1}
    with pytest.raises(UpgradeError, match="restore"):
        await upgrade.rollback()
    assert place.installed == "1" and units.said[-1] == "stop"
    place.versions["1"] = {}
    await upgrade.rollback()
    assert units.said[-1] == "start 1" and (tmp_path / "log").read_text() == "restored\n"
    with pytest.raises(UpgradeError, match="no upgrade to take back"):
        await upgrade.rollback()


async def test_packages_that_cannot_be_had_do_not_leave_the_services_stopped(
    tmp_path: Path,
) -> None:
    upgrade, place, units = await made(tmp_path, "2")
    back = place.back

    async def without_packages(release: ProgramVersion) -> None:
        await back(release)
        raise UpgradeError("The packages cannot be fetched.")

    place.back = without_packages  # type: ignore[method-assign]
    with pytest.raises(UpgradeError, match=r"2 was not taken.*1 is back"):
        await upgrade.forward(ProgramVersion("2", "2"))
    assert units.said == ["stop", "start 2", "stop", "start 1"]


async def test_a_new_program_with_trouble_of_its_own_is_not_taken(tmp_path: Path) -> None:
    upgrade, place, units = await made(tmp_path, trouble=TROUBLE)
    said: list[str] = []
    with pytest.raises(UpgradeError, match=r"It is broken\."):
        await replace(upgrade, say=said.append).forward(ProgramVersion("2", "2"))
    assert (place.installed, units.said, said[-1]) == ("1", [], "1 goes on as it was.")


async def test_the_matrix_session_is_none_of_the_backup_but_the_new_doctor_sees_it(
    tmp_path: Path,
) -> None:
    session = "$VOLTAIRE_STATE__DIR/matrix/session.json"
    doctor = f"""test -e "{session}" || echo '{TROUBLE}'; echo spoiled > "{session}" """
    upgrade, place, _ = await made(tmp_path, trouble=f"""'"$({doctor})"'""")
    (tmp_path / "s" / "matrix").mkdir()
    ours = tmp_path / "s" / "matrix" / "session.json"
    ours.write_text("{}")
    await upgrade.forward(ProgramVersion("2", "2"))
    assert place.installed == "2"
    assert ours.read_text() == "{}", "the new program had a copy"
    assert not (upgrade.folder / "trial").exists()


async def test_trouble_that_is_there_already_is_no_reason(tmp_path: Path) -> None:
    upgrade, place, _ = await made(tmp_path, trouble=TROUBLE)
    place.versions["1"] = {"trouble": TROUBLE}
    await upgrade.forward(ProgramVersion("2", "2"))
    assert place.installed == "2"


async def test_one_that_does_not_become_ready_is_taken_back(tmp_path: Path) -> None:
    upgrade, place, units = await made(tmp_path, "2")
    place.on_switch = lambda: migrate(tmp_path)
    with pytest.raises(UpgradeError, match=r"2 was not taken.*1 is back"):
        await upgrade.forward(ProgramVersion("2", "2"))
    assert place.installed == "1" and units.said[-1] == "start 1"
    assert (tmp_path / "log").read_text() == "restored\n", "the database was in a newer form"


async def test_a_state_of_a_newer_version_is_backed_up_by_the_new_program(tmp_path: Path) -> None:
    upgrade, place, units = await made(tmp_path)
    migrate(tmp_path)  # this program cannot read it: doctor's remedy is an upgrade
    await upgrade.forward(ProgramVersion("2", "2"))
    assert (place.installed, units.said[-1]) == ("2", "start 2")
    assert (tmp_path / "log").read_text() == "backup by 2\n"


async def test_a_program_that_came_otherwise_is_not_rolled_back(tmp_path: Path) -> None:
    upgrade, place, _ = await made(tmp_path)
    await upgrade.forward(ProgramVersion("2", "2"))
    place.installed = "3"
    with pytest.raises(UpgradeError, match="not what is installed now"):
        await upgrade.rollback()


# -- a checkout ---------------------------------------------------------------

PARTS = ("matrix", "mcp", "voice")
MAKEFILE = """install:
	@mkdir -p .venv/bin && cp voltaire .venv/bin/voltaire && chmod +x .venv/bin/voltaire
matrix mcp voice: install
	@echo "# with $@" >> .venv/bin/voltaire
"""


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *who, "-C", str(folder), *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def release(remote: Path, version: str, *, tag: bool = False, make: str = MAKEFILE) -> str:
    (remote / "pyproject.toml").write_text(f'[project]\nname = "x"\nversion = "{version}"\n')
    log = remote / "CHANGELOG.md"
    log.write_text((log.read_text() if log.exists() else "# Changes\n") + f"- new in {version}\n")
    (remote / "Makefile").write_text(make)
    (remote / "voltaire").write_text(
        f'#!/bin/sh\ncase "$*" in *doctor*) echo [] ;; esac\n# {version}\n'
    )
    git(remote, "add", ".")
    git(remote, "commit", "-qm", version)
    if tag:
        git(remote, "tag", f"v{version}")
    return git(remote, "rev-parse", "HEAD")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user")
async def test_another_users_checkout_says_whose_it_is() -> None:
    with tempfile.TemporaryDirectory(prefix="voltaire-checkout-") as folder:
        Path(folder).chmod(0o755)
        git(Path(folder), "init", "-q")
        os.seteuid(4321)
        try:
            with pytest.raises(UpgradeError, match="root's: run `voltaire upgrade` as root"):
                await Checkout(Path(folder)).newest()
        finally:
            os.seteuid(0)


async def test_of_what_git_says_the_reason_is_kept_and_not_the_advice(tmp_path: Path) -> None:
    remote, clone = tmp_path / "remote", tmp_path / "clone"
    remote.mkdir()
    git(remote, "init", "-q")
    release(remote, "1.0")
    git(tmp_path, "clone", "-q", str(remote), str(clone))
    remote.rename(tmp_path / "elsewhere")
    with pytest.raises(UpgradeError) as error:
        await Checkout(clone).newest()
    assert str(error.value) == saying("fetch", "does not appear to be a git repository")
    assert "correct access rights" not in str(error.value)


async def test_a_checkout_goes_forward_and_back(tmp_path: Path) -> None:
    remote, clone = tmp_path / "remote", tmp_path / "clone"
    remote.mkdir()
    git(remote, "init", "-q")
    first = release(remote, "1.0")
    git(tmp_path, "clone", "-q", str(remote), str(clone))
    subprocess.run(["make", "-C", str(clone), "install"], check=True, capture_output=True)
    checkout = Checkout(clone)
    assert await checkout.newest() is None

    second = release(remote, "1.1", tag=True)
    release(remote, "1.2")  # not released: only tagged ones are taken, where there are tags
    found = await checkout.newest()
    assert found == ProgramVersion("1.1", second, "- new in 1.1")
    assert (await checkout.current()).title == f"1.0 ({first[:9]})"

    (clone / "Makefile").write_text("mine")
    with pytest.raises(UpgradeError, match="not committed"):
        await checkout.newest()
    git(clone, "checkout", "Makefile")

    async with open_store(tmp_path / "s" / "voltaire.db"):
        pass
    place = Place(tmp_path, {})
    upgrade = Upgrade(
        checkout, cast(SystemdServices, Units(place)), tmp_path / "s", None, lambda line: None
    )
    await upgrade.forward(found)
    assert "# 1.1" in checkout.command.read_text() and git(clone, "rev-parse", "HEAD") == second
    # This environment has all optional parts.
    assert all(f"# with {part}\n" in checkout.command.read_text() for part in PARTS)
    assert await checkout.newest() is None
    assert (
        git(clone, "worktree", "list").count("\n") == 0
        and git(clone, "status", "--short") == "?? .venv/"
    )
    await upgrade.rollback()
    assert "# 1.0" in checkout.command.read_text() and git(clone, "rev-parse", "HEAD") == first


async def test_a_return_without_packages_says_what_is_left_to_do(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    first = release(tmp_path, "1.0", make="install:\n\t@echo No network. >&2; exit 1\n")
    with pytest.raises(UpgradeError) as error:
        await Checkout(tmp_path).back(ProgramVersion("1.0", first))
    assert f"`make -C {tmp_path} install`, then `voltaire setup --upgrade`" in str(error.value)


async def test_neither_ctrl_c_nor_a_lost_terminal_ends_a_switch_halfway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, clone, gate = tmp_path / "remote", tmp_path / "clone", tmp_path / "gate"
    remote.mkdir()
    os.mkfifo(gate)
    git(remote, "init", "-q")
    release(remote, "1.0")
    git(tmp_path, "clone", "-q", str(remote), str(clone))
    subprocess.run(["make", "-C", str(clone), "install"], check=True, capture_output=True)
    # In the clone itself, and in no worktree, it waits.
    waiting = MAKEFILE.replace("install:\n", f"install:\n\t@[ ! -d .git ] || cat {gate}\n")
    second = release(remote, "1.1", make=waiting)
    monkeypatch.setattr("bot.cli.upgrade.Checkout", partial(Checkout, clone))
    async with typing_at(["upgrade"], own_environment() | folders(tmp_path)) as terminal:
        await terminal.until("Switching to 1.1")
        opened = await soon(lambda: writer(gate))  # once it waits
        terminal.type(CTRL_C)
        terminal.hang_up()
        os.close(opened)
        await terminal.process.wait()
    assert git(clone, "rev-parse", "HEAD") == second
    assert "# 1.1" in (clone / ".venv" / "bin" / "voltaire").read_text()


def writer(fifo: Path) -> int:
    """A descriptor to write to it; 0 while nobody reads there."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return 0


async def test_what_an_interrupted_program_has_started_ends_with_it(tmp_path: Path) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    running = asyncio.create_task(run("sh", "-c", f"sleep 1000 & echo $! > {told}; wait"))
    pid = int(await asyncio.to_thread(told.read_text))
    for _ in range(100):  # passes of the loop: it has the pipes of what it started
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await soon(lambda: proc.state(pid) in (None, "Z"))


async def test_commits_without_a_line_in_the_changelog_are_told(tmp_path: Path) -> None:
    remote, clone = tmp_path / "remote", tmp_path / "clone"
    remote.mkdir()
    git(remote, "init", "-q")
    release(remote, "1.0")
    git(tmp_path, "clone", "-q", str(remote), str(clone))
    git(remote, "commit", "-q", "--allow-empty", "-m", "Mend the roof")
    found = await Checkout(clone).newest()
    assert found
    assert (found.title, found.changes) == (f"1.0 ({found.origin[:9]})", "- Mend the roof")


def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uv: str) -> Environment:
    """One with Matrix and nothing else; `uv` is what the program uv does."""
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{uv}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    prefix = tmp_path / "tools" / "voltaire-agent"
    about = prefix / "site" / "voltaire_agent-1.dist-info" / "METADATA"
    about.parent.mkdir(parents=True)
    needs = ("matrix-nio[e2e]>=0; extra == 'matrix'", "voltaire-none; extra == 'voice'")
    lines = [f"Requires-Dist: {need}\n" for need in needs]
    about.write_text("Name: voltaire-agent\nVersion: 1\n" + "".join(lines))
    monkeypatch.syspath_prepend(str(prefix / "site"))
    return Environment(prefix=prefix)


async def test_a_wheel_brings_the_optional_parts_that_were_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = environment(tmp_path, monkeypatch, f'echo "$*" >> {tmp_path}/log')
    wheel = tmp_path / "voltaire_agent-2-py3-none-any.whl"
    it.prefix.joinpath("bin").mkdir()
    await it.switch(ProgramVersion("2", str(wheel)))
    assert f" voltaire-agent[matrix] @ file://{wheel}\n" in (tmp_path / "log").read_text()
    assert (it.aside / "bin").is_dir()
    it.prefix.mkdir(exist_ok=True)
    (it.aside / "of-an-earlier-switch").touch()
    await it.switch(ProgramVersion("3", str(wheel)))
    assert [path.name for path in it.prefix.parent.iterdir()] == [it.aside.name]
    assert not (it.aside / "of-an-earlier-switch").exists()


async def test_a_wheel_that_cannot_be_installed_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = environment(tmp_path, monkeypatch, 'mkdir -p "$7"; exit 1')
    with pytest.raises(UpgradeError):
        await it.switch(ProgramVersion("2", str(tmp_path / "x.whl")))
    assert (it.prefix / "site").is_dir() and not it.aside.exists()


async def test_a_wheel_has_to_be_named_and_readable(tmp_path: Path) -> None:
    with pytest.raises(UpgradeError, match="--from FILE"):
        await Environment().newest()
    (tmp_path / "x.whl").write_text("no wheel")
    with pytest.raises(UpgradeError, match="is no wheel"):
        await Environment(tmp_path / "x.whl").newest()
    with ZipFile(tmp_path / "y.whl", "w") as other:
        other.writestr("y-1.dist-info/METADATA", "Name: y\nVersion: 1\n")
    with pytest.raises(UpgradeError, match="a wheel of y"):
        await Environment(tmp_path / "y.whl").newest()


def test_the_changelog_between_two_versions() -> None:
    assert added_lines("# Changes\n- a\n", "# Changes\n- b\n- a\n") == "- b"
