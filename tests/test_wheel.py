"""The wheel holds what runs, and nothing of what is made for tests, measurements and training; installed as
people do it (uv tool, pip), it ends in services and disturbs no other project.
"""

import asyncio
import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from functools import partial
from pathlib import Path

import pytest

from bot.cli.setup import READY
from bot.setup.units import UNITS
from fakes.localgram import Localgram
from fakes.patience import SECONDS

ROOT = Path(__file__).parent.parent
PACKAGES = ("agent", "backend", "bot", "systemd")
UV = Path(sys.executable).with_name("uv")
REPOSITORY = "https://somebody:pa55word@example.org/somebody/voltaire.git"
# Starts what the units name, as systemd would.
SYSTEMCTL = """#!/bin/sh
echo "$@" >> {folder}/log
case "$*" in
*is-active*) echo active ;;
*restart*)
    for unit in {folder}/c/systemd/user/*.service; do
        sh -c "$(sed -n 's/^Environment=/export /p; s/^ExecStart=/exec /p' $unit)" > /dev/null 2>&1 &
    done ;;
esac
"""


def tracked() -> list[Path]:
    argv = ["git", "ls-files", "-z"]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in map(Path, listed.split("\0")) if (ROOT / path).is_file()]


def run(*argv: str | Path, cwd: Path, **more: str) -> str:
    """What a program printed; the test fails where it does."""
    done = subprocess.run(
        argv, cwd=cwd, env=os.environ | more, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


HOOKS = {
    "wheel": "build_wheel",
    "sdist": "build_sdist",
    "metadata": "prepare_metadata_for_build_wheel",
}


def build(sources: Path, what: str, **more: str) -> Path:
    """The wheel, sdist or metadata, by the setuptools that is installed here."""
    program = f"import setuptools.build_meta as b; print(b.{HOOKS[what]}('dist'))"
    return sources / "dist" / run(sys.executable, "-c", program, cwd=sources, **more).split()[-1]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracked files alone."""
    folder = tmp_path_factory.mktemp("sources")
    for path in tracked():
        (folder / path.parent).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    return folder


@pytest.fixture(scope="module")
def wheel(sources: Path) -> Path:
    return build(sources, "wheel")


def version_of(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def offline(wheel: Path, folder: Path, version: str = "") -> Path:
    """The wheel (as another version), whose dependencies are those of this environment: nothing is fetched."""
    old = version_of(wheel)
    version = version or old
    made = folder / wheel.name.replace(old, version)
    record = io.StringIO()
    lines = csv.writer(record, lineterminator="\n")
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(made, "w") as target:
        files = {name: source.read(name) for name in source.namelist()}
        files["dependencies.pth"] = sysconfig.get_path("purelib").encode()
        for name, content in files.items():
            name = name.replace(f"-{old}.", f"-{version}.")
            if name.endswith("/METADATA"):
                text = re.sub(r"Requires-Dist: .*\n", "", content.decode())
                content = text.replace(f"Version: {old}", f"Version: {version}", 1).encode()
            if name.endswith("/RECORD"):
                recorded = name
                continue
            target.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
            lines.writerow((name, f"sha256={digest.rstrip('=')}", len(content)))
        lines.writerow((recorded, "", ""))
        target.writestr(recorded, record.getvalue())
    return made


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a person with nothing installed; uv fetches nothing."""
    return {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "c"),
        "XDG_STATE_HOME": str(tmp_path / "s"),
        "XDG_DATA_HOME": str(tmp_path / "d"),
        "XDG_BIN_HOME": str(tmp_path / "bin"),
        "UV_OFFLINE": "1",
        "UV_NO_CONFIG": "1",
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "PATH": f"{tmp_path / 'bin'}:{UV.parent}:{os.environ['PATH']}",
    }


def test_it_holds_the_program_whole_in_one_package(sources: Path, wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    (data,) = {name.split("/")[0] for name in names if ".data/" in name}
    shared = f"{data}/data/share/voltaire"
    wanted = {
        f"voltaire_agent/{path}"
        for path in tracked()
        if path.parts[0] in PACKAGES and path.suffix != ".md"
    }
    wanted |= {"voltaire_agent/__init__.py", f"{shared}/CHANGELOG.md"}
    wanted |= {
        f"{shared}/{path}"
        for path in tracked()
        if path.parts[0] == "docs" and path.suffix in (".md", ".png", ".json")
    }
    assert {name for name in names if ".dist-info/" not in name} == wanted

    with tarfile.open(build(sources, "sdist")) as sdist:
        packed = {member.name.partition("/")[2] for member in sdist if member.isfile()}
    inside = {name.removeprefix("voltaire_agent/").removeprefix(f"{shared}/") for name in wanted}
    inside.remove("__init__.py")
    assert packed >= inside | {"setup.py", "pyproject.toml", "README.md", "LICENSE"}


def metadata(sources: Path, repository: str) -> str:
    built = build(sources, "metadata", VOLTAIRE_REPOSITORY=repository)
    return (built / "METADATA").read_text()


@pytest.mark.slow
def test_its_page_on_an_index_has_pictures_and_links_that_lead_somewhere(
    sources: Path,
) -> None:
    page = metadata(sources, REPOSITORY)
    (version,) = re.findall(r"^Version: (.+)$", page, re.M)
    at = "https://example.org/somebody/voltaire"
    assert f"](https://example.org/somebody/voltaire/raw/v{version}/docs/chat.png)" in page
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert [link for link in links if not link.startswith("https://")] == []
    ours = [link.removeprefix(at) for link in links if link.startswith(at)]
    for link in ours:
        assert (ROOT / link.split(f"/v{version}/")[1].split("#")[0]).exists(), link
    assert len(ours) > 10 and "pa55word" not in page
    assert f"Project-URL: Homepage, {at}\n" in page and "Author: The Voltaire authors" in page

    unpublished = metadata(sources, "/srv/git/voltaire")
    assert "chat.png" not in unpublished and "](docs/" not in unpublished


@pytest.mark.slow
async def test_uv_tool_install_ends_in_services(
    wheel: Path, tmp_path: Path, home: dict[str, str]
) -> None:
    """With the wizard itself, as an ordinary user where /run/systemd is; a stand-in plays systemctl."""
    run(
        UV,
        "tool",
        "install",
        "--python",
        sys.executable,
        offline(wheel, tmp_path),
        cwd=tmp_path,
        **home,
    )
    assert run("voltaire", "--version", cwd=tmp_path, **home).strip() == version_of(wheel)
    for name in ("systemctl", "loginctl"):
        (tmp_path / "bin" / name).write_text(SYSTEMCTL.format(folder=tmp_path))
        (tmp_path / "bin" / name).chmod(0o755)
    async with Localgram("1000001:abc") as gram:
        owner = gram.user("Ada", id=7, started=True)
        out = await asyncio.to_thread(
            partial(run, cwd=tmp_path, **home),
            "bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000", "--dev-bind", "/", "/",
            "--unshare-pid", "--as-pid-1", "--proc", "/proc", "--tmpfs", "/run", "--dir", "/run/systemd/system",
            "voltaire", "setup", "--yes", "--token", "1000001:abc", "--base-url", gram.url,
            "--owner", "7",
        )  # fmt: skip
        assert (await owner.next_message(seconds=SECONDS)).text == READY
    assert "Units installed and started: voltaire.target" in out
    folder = tmp_path / "c" / "systemd" / "user"
    assert {path.name for path in folder.iterdir()} == set(UNITS)
    program = tmp_path / "d" / "uv" / "tools" / "voltaire-agent" / "bin" / "voltaire"
    assert f"ExecStart={program} bot\n" in (folder / "voltaire-bot.service").read_text()
    assert program.is_file()
    assert "--user restart voltaire.target\n" in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_in_a_shared_environment_it_leaves_others_alone(
    wheel: Path, tmp_path: Path, home: dict[str, str]
) -> None:
    """Another project with packages called bot, agent and backend: both work, in any order."""
    prefix = tmp_path / "venv"
    run(UV, "venv", "--python", sys.executable, prefix, cwd=tmp_path, **home)
    python = prefix / "bin" / "python"
    (site,) = (prefix / "lib").glob("python*/site-packages")
    for name in ("bot", "agent", "backend"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text("whose = 'another project'\n")
    run(UV, "pip", "install", "--python", python, offline(wheel, tmp_path), cwd=tmp_path, **home)
    listed = run(prefix / "bin" / "voltaire", "model", "list", "--json", cwd=tmp_path, **home)
    pocket = {profile["name"]: profile for profile in json.loads(listed)}["pocket"]
    assert pocket["here"] and pocket["path"].startswith(str(site / "voltaire_agent"))
    theirs = "import bot, agent, backend; print(bot.whose, agent.whose, backend.whose)"
    assert run(python, "-c", theirs, cwd=tmp_path, **home).count("another project") == 3
    run(UV, "pip", "uninstall", "--python", python, "voltaire-agent", cwd=tmp_path, **home)
    assert run(python, "-c", theirs, cwd=tmp_path, **home).count("another project") == 3


@pytest.mark.slow
def test_another_wheel_takes_its_place_and_gives_it_back(
    wheel: Path, tmp_path: Path, home: dict[str, str]
) -> None:
    """voltaire upgrade --from, tried whole: doctor, and one turn on Pocket."""
    here = partial(run, cwd=tmp_path, **home)
    here(UV, "tool", "install", "--python", sys.executable, offline(wheel, tmp_path))
    first, newer = here("voltaire", "--version"), offline(wheel, tmp_path, "99.0")
    assert "is the newest" in here("voltaire", "upgrade", "--from", offline(wheel, tmp_path))
    said = here("voltaire", "upgrade", "--from", newer)
    assert "Switching to 99.0." in said and here("voltaire", "--version") == "99.0\n"
    here("voltaire", "upgrade", "--rollback")
    assert here("voltaire", "--version") == first
    assert "voltaire-agent" in here(UV, "tool", "list")
