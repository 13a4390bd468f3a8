"""The wheel holds what runs, and nothing of what is made for tests, measurements and training."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fakes.patience import SECONDS

ROOT = Path(__file__).parent.parent
PACKAGES = ("agent", "backend", "bot")


def tracked() -> list[Path]:
    argv = ["git", "ls-files", "-z"]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in map(Path, listed.split("\0")) if (ROOT / path).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the tracked files alone, by the setuptools that is installed here."""
    sources = tmp_path_factory.mktemp("sources")
    for path in tracked():
        (sources / path.parent).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, sources / path)
    program = "import setuptools.build_meta as b; print(b.build_wheel('dist'))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=sources,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return sources / "dist" / done.stdout.split()[-1]


def test_it_holds_the_three_packages_whole_and_the_units(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    (data,) = {name.split("/")[0] for name in names if ".data/" in name}
    wanted = {str(path) for path in tracked() if path.parts[0] in PACKAGES and path.suffix != ".md"}
    wanted |= {f"{data}/data/share/voltaire/{p}" for p in tracked() if p.parts[0] == "systemd"}
    wanted.add(f"{data}/data/share/voltaire/CHANGELOG.md")
    assert {name for name in names if ".dist-info/" not in name} == wanted


def test_it_runs_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    argv = [sys.executable, "-c", "from bot.cli import main; main()", "model", "list", "--json"]
    environment = {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run(
        argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    pocket = {profile["name"]: profile for profile in json.loads(done.stdout)}["pocket"]
    assert pocket["here"] and pocket["path"].startswith(str(tmp_path))
