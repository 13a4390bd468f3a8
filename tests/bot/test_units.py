"""The units are what systemd accepts, hardened as far as the sandbox allows; a stand-in plays systemctl."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from bot.setup import SetupError, units
from bot.setup.units import (
    UNITS,
    Installation,
    SystemdScope,
    install,
    program_folders,
    remove,
    render,
    renew,
    unit_states,
)

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")

STANDIN = """#!/bin/sh
echo "$@" >> {log}
case "$*" in *is-active*) echo active ;; *fail*) echo "Unit is masked." >&2; exit 1 ;; esac
"""


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    repos = ((Path("/home/a/site"), False),)
    return Installation(
        tmp_path / "config.toml", tmp_path / "token", tmp_path / "state", True, repos
    )


def written(tmp_path: Path, installation: Installation, *, root: bool) -> list[Path]:
    folder = tmp_path / ("system" if root else "user")
    folder.mkdir()
    for name, text in render(SystemdScope(root, folder), installation).items():
        (folder / name).write_text(
            re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.M)
        )
    return sorted(folder.iterdir())


@needs_systemd
def test_exposure_is_at_most_what_was_promised(tmp_path: Path, installation: Installation) -> None:
    paths = {path.name: path for path in written(tmp_path, installation, root=True)}
    for name, most in (("voltaire-bot.service", 3.3), ("voltaire-backend.service", 3.3)):
        done = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", paths[name]],
            capture_output=True,
            text=True,
        )
        level = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
        assert level and float(level[1]) <= most


def test_every_scopeholder_is_filled_and_repositories_show_through(
    installation: Installation,
) -> None:
    for root in (True, False):
        texts = render(SystemdScope(root, Path("/x")), installation)
        assert tuple(texts) == UNITS
        assert not re.findall(r"@[A-Z]+@", "".join(texts.values()))
    assert (
        "BindReadOnlyPaths=-/home/a/site"
        in render(SystemdScope(True, Path("/x")), installation)[UNITS[1]]
    )


def test_a_state_elsewhere_is_writable_to_the_services(
    tmp_path: Path, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a link systemd refused to start them, and elsewhere all was read-only."""
    disk, usual = tmp_path / "my disk", tmp_path / "usual"
    disk.mkdir()
    monkeypatch.setattr(units, "MACHINE_STATE", usual)
    bound = f'BindPaths="-{disk}"\n'

    def services(state: Path) -> list[str]:
        texts = render(SystemdScope(True, Path("/x")), replace(installation, state=state))
        return [texts[name] for name in UNITS[:2]]

    assert all("StateDirectory=voltaire\n" in text for text in services(usual))
    assert all(bound in text and "StateDirectory" not in text for text in services(disk))
    usual.symlink_to(disk)
    assert all(bound in text and "StateDirectory" not in text for text in services(usual))


def test_install_check_and_remove_speak_to_systemctl(
    tmp_path: Path, installation: Installation
) -> None:
    log, program = tmp_path / "log", tmp_path / "systemctl"
    program.write_text(STANDIN.format(log=log))
    program.chmod(0o755)
    scope = SystemdScope(False, tmp_path / "units", str(program))
    install(scope, installation)
    assert sorted(path.name for path in scope.folder.iterdir()) == sorted(UNITS)
    assert unit_states(scope) == dict.fromkeys(UNITS[:2], "active")
    assert remove(scope) == list(UNITS)
    assert list(scope.folder.iterdir()) == [] and remove(scope) == []
    assert log.read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable voltaire.target",
        "--user restart voltaire.target",
        "--user is-active voltaire-backend.service",
        "--user is-active voltaire-bot.service",
        "--user stop voltaire-compile.service",
        "--user disable --now voltaire.target voltaire-backend.service voltaire-bot.service voltaire.target",
        "--user daemon-reload",
        "--user stop voltaire-compile.service",
    ]


def test_an_upgrade_renews_the_units_that_are_there(
    tmp_path: Path, installation: Installation
) -> None:
    log, program = tmp_path / "log", tmp_path / "systemctl"
    program.write_text(STANDIN.format(log=log))
    program.chmod(0o755)
    scope = SystemdScope(False, tmp_path / "units", str(program))
    assert renew(scope, installation) == [] and not scope.folder.exists()
    install(scope, installation)
    bot = scope.folder / "voltaire-bot.service"
    text = bot.read_text()
    bot.write_text("of an earlier version")
    log.unlink()
    assert renew(scope, installation) == list(UNITS)
    assert bot.read_text() == text
    assert log.read_text().splitlines() == [
        "--user daemon-reload",
        "--user restart voltaire-backend.service voltaire-bot.service",
    ]


def test_the_program_shows_through_where_the_units_hide_homes(installation: Installation) -> None:
    shown = {
        "BindReadOnlyPaths=-" + str(path)
        for path in program_folders(("/home", "/root", sys.prefix))
    }
    assert f"BindReadOnlyPaths=-{sys.prefix}" in shown
    for name in UNITS[:2]:
        text = render(SystemdScope(True, Path("/x")), installation)[name]
        assert shown & set(text.splitlines()) == {
            "BindReadOnlyPaths=-" + str(path) for path in program_folders()
        }


def test_where_the_units_are_is_found_by_the_user_of_the_services_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `sudo voltaire doctor`, which is the services' user by then: they were looked for among that user's own."""
    monkeypatch.setattr(units, "MACHINE_UNITS", tmp_path / "system")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own = SystemdScope(False, tmp_path / "systemd" / "user")
    assert SystemdScope.installed() == own
    for scope in (SystemdScope(True, tmp_path / "system"), own):
        scope.folder.mkdir(parents=True)
        (scope.folder / UNITS[1]).touch()
        assert SystemdScope.installed() == scope


def test_what_systemd_says_is_told_in_one_sentence(
    tmp_path: Path, installation: Installation
) -> None:
    program = tmp_path / "systemctl"
    program.write_text("#!/bin/sh\necho 'Unit is masked.' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(SetupError, match="failed: Unit is masked.$"):
        install(SystemdScope(False, tmp_path / "units", str(program)), installation)
    with pytest.raises(SetupError, match="is not installed here"):
        install(SystemdScope(False, tmp_path / "units", str(tmp_path / "absent")), installation)


@needs_systemd
@pytest.mark.parametrize("root", [True, False])
def test_paths_with_spaces_and_marks(
    tmp_path: Path, root: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "my own 100% place: here"
    program = odd / "bin" / "voltaire"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    installation = Installation(odd / "config.toml", odd / "token", odd, True, ((odd, True),))
    folder = tmp_path / "units"
    folder.mkdir()
    for name, text in render(SystemdScope(root, folder), installation).items():
        (folder / name).write_text(text)
    with tempfile.TemporaryDirectory() as short:  # sockets lie there
        done = subprocess.run(
            ["systemd-analyze", *([] if root else ["--user"]), "verify", *sorted(folder.iterdir())],
            capture_output=True,
            text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": short},
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_group_that_is_not_there_is_not_asked_for(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.setup.units.group_exists", lambda name: name == "video")
    text = render(SystemdScope(True, Path("/x")), installation)["voltaire-backend.service"]
    assert "SupplementaryGroups=video\n" in text


def test_a_program_that_may_not_be_run_is_told_in_a_sentence(tmp_path: Path) -> None:
    """As where PATH holds a folder that may not be searched: no FileNotFoundError."""
    program = tmp_path / "timedatectl"
    program.touch(0o600)
    with pytest.raises(SetupError, match=r"timedatectl cannot be run: Permission denied\.$"):
        units.run(str(program))
