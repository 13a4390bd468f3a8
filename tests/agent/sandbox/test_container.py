"""In a container that lacks options, a person reads their names at once; the shipped files have them all."""

import configparser
import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent.sandbox.sandbox_config import missing_options

ROOT = Path(__file__).parents[3]
CONTAINER = ROOT / "container"
NEEDED = {"seccomp=unconfined", "systempaths=unconfined", "apparmor=unconfined"}


REFUSED = "bwrap: No permissions to create new namespace"
MASKED = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"


@pytest.mark.parametrize(
    ("file", "label", "message", "options"),
    [
        (".dockerenv", "docker-default (enforce)\n", REFUSED, ["seccomp=unconfined", "apparmor=unconfined"]),
        ("run/.containerenv", "system_u:system_r:container_t:s0:c1,c2\0", MASKED, ["label=disable"]),
        (".dockerenv", "unconfined\n", MASKED, []),
        ("etc/hostname", "docker-default (enforce)\n", REFUSED, []),
    ],
    ids=["docker", "podman", "nothing", "no-container"],
)  # fmt: skip
def test_what_is_missing_is_named(
    tmp_path: Path, file: str, label: str, message: str, options: list[str]
) -> None:
    root, status = tmp_path / "root", tmp_path / "status"
    (root / file).parent.mkdir(parents=True)
    (root / file).touch()
    (status / "attr").mkdir(parents=True)
    (status / "attr" / "current").write_text(label)
    (status / "status").write_text("Name:\tx\nSeccomp:\t2\n")
    named = re.findall(r"--security-opt (\S+)", missing_options(message, root, status))
    assert named == options


@pytest.mark.parametrize(
    ("marker", "option"),
    [("/.dockerenv", "systempaths=unconfined"), ("/run/.containerenv", "unmask=ALL")],
    ids=["docker", "podman"],
)
def test_a_masked_proc_is_told_with_its_option(tmp_path: Path, marker: str, option: str) -> None:
    """As containers mask it, so that no sandbox inside can have a /proc of its own."""
    (tmp_path / "empty").touch()
    masked = ("--proc", "/proc", "--tmpfs", "/proc/acpi", "--ro-bind", "/proc/sys", "/proc/sys")
    mark = ("--tmpfs", "/run", "--ro-bind", str(tmp_path / "empty"), marker)
    outer = ["bwrap", "--unshare-user", "--uid", "1000", "--unshare-pid", "--tmpfs", "/"]
    for folder in sorted(Path("/").iterdir()):
        if folder.name not in ("run", "proc", "dev") and folder.is_dir():
            outer += ["--bind", str(folder), str(folder)]
    outer += ["--dev", "/dev", *masked, *mark]
    environment = {"VOLTAIRE_STATE__DIR": str(tmp_path / "s"), "HOME": str(tmp_path)}
    done = subprocess.run(
        [*outer, str(Path(sys.executable).with_name("voltaire")), "sandbox", "--", "true"],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    assert done.returncode != 0
    assert f"was started without --security-opt {option} (" in done.stderr, done.stderr


def stages() -> list[list[str]]:
    """The Containerfile's instructions by stage, each on one line."""
    text = re.sub(r"\\\n\s*", "", (CONTAINER / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    starts = [n for n, line in enumerate(lines) if line.startswith("FROM ")] + [len(lines)]
    return [lines[a:b] for a, b in itertools.pairwise(starts)]


def test_the_image_runs_as_nobody_and_holds_no_compiler() -> None:
    build, final = stages()
    assert [line for line in final if line.startswith("USER ")] == ["USER 10001:10001"]
    assert not re.search(r"\b(gcc|g\+\+|build-essential|cmake|python3-venv|pip)\b", " ".join(final))
    installs = [line for line in build if "install" in line and "lock" in line]
    assert all(line.count("--require-hashes") == 2 for line in installs) and installs
    assert "VOLUME /data" in final and "STOPSIGNAL SIGTERM" in final


def test_what_it_is_built_of_is_what_the_wheel_needs(tmp_path: Path) -> None:
    """Of the files that .dockerignore lets through the same wheel comes as of the checkout."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    for name in (line[1:] for line in lines if line.startswith("!")):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    (tmp_path / "dist").mkdir()
    assert {"requirements.lock", "requirements-build.lock"} <= {p.name for p in tmp_path.iterdir()}
    program = "import setuptools.build_meta as b; b.prepare_metadata_for_build_wheel('dist')"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "voltaire_agent" / "__init__.py").exists()
    assert (tmp_path / "systemd" / "system").is_dir()


def test_compose_and_quadlet_have_every_option() -> None:
    compose = (CONTAINER / "compose.yaml").read_text()
    assert set(re.findall(r"- (\S+=unconfined)", compose)) == NEEDED
    assert "cap_drop: [ALL]" in compose and "no-new-privileges:true" in compose
    assert "privileged: true" not in compose
    quadlet = configparser.ConfigParser(interpolation=None)
    quadlet.optionxform = str  # type: ignore[assignment,method-assign]
    quadlet.read(CONTAINER / "voltaire.container")
    found = dict(quadlet["Container"])
    assert found["Unmask"] == "ALL" and "SeccompProfile" not in found, "podman's own filter stays"
    assert "apparmor=unconfined" in found["PodmanArgs"] and found["SecurityLabelDisable"] == "true"
    assert (found["DropCapability"], found["NoNewPrivileges"]) == ("ALL", "true")
    documented = (ROOT / "docs" / "container.md").read_text()
    for option in (*NEEDED, "unmask=ALL", "label=disable"):
        assert f"`--security-opt {option}`" in documented, option
