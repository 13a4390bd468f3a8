"""What holds for all tests."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

NVML = Path(__file__).parents[1] / "fakes/nvml.c"


@pytest.fixture(scope="session", autouse=True)
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The fake libnvidia-ml.so.1, loaded before a test asks for the machine's own: a process keeps the first.

    None without a C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    out = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    named = "-Wl,-soname,libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", named, "-o", out, NVML], check=True)
    ctypes.CDLL(str(out), mode=ctypes.RTLD_GLOBAL)
    return out
