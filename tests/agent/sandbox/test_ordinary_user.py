"""The attack suite once more, run by a user without any privilege."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.__main__ import scratch
from tests.attacks.cases import WHOLE

STRANGER = 12345  # a user id that no host gives away


@pytest.mark.skipif(os.geteuid() != 0, reason="this is an ordinary user already")
@pytest.mark.parametrize(
    "areas",
    [
        pytest.param(["privileges"], marks=pytest.mark.slow, id="privileges"),
        pytest.param([], marks=[pytest.mark.slow, pytest.mark.timeout(3600)], id="all"),
        pytest.param([WHOLE], marks=[pytest.mark.slow, pytest.mark.timeout(7200)], id=WHOLE),
    ],
)
def test_it_holds_for_an_ordinary_user_too(areas: list[str]) -> None:
    with scratch() as folder:
        folder.chmod(0o755)
        state = folder / "state"
        state.mkdir()
        shutil.chown(state, STRANGER, STRANGER)
        done = subprocess.run(
            [
                *_as_stranger(),
                sys.executable,
                "-m",
                "tests.attacks",
                "--folder",
                str(state),
                *areas,
            ],
            cwd=Path(__file__).parents[3],
            env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr


def _as_stranger() -> list[str]:
    """Where root's home hides the interpreter, a home that shows it, for this process alone."""
    home, real = "/root", os.path.realpath(sys.executable)
    script = f'exec setpriv --reuid {STRANGER} --regid {STRANGER} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"'
    if real.startswith(f"{home}/"):
        top = Path(home, Path(real).relative_to(home).parts[0])
        script = (
            f"mount --bind {top} /mnt && mount -t tmpfs -o mode=755 tmpfs {home} && "
            f"mkdir {top} && mount --move /mnt {top} && {script}"
        )
    return ["unshare", "--mount", "--propagation", "private", "bash", "-c", script, "bash"]
