"""Compilers and CUDA toolkits that answer --version and compile nothing: small shell scripts."""

from pathlib import Path


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def gcc(folder: Path, version: int, suffix: str = "") -> None:
    """gcc and g++ of a version, with a suffix such as "-11"."""
    for name in ("gcc", "g++"):
        program(folder / f"{name}{suffix}", f"echo {version}")


def cuda(root: Path, version: str, codes: str, newest_gcc: int | None = None) -> Path:
    """A toolkit at `root`; its nvcc."""
    program(root / "bin" / "ptxas", "exit 1")
    if newest_gcc:
        header = root / "include" / "crt" / "host_config.h"
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(
            f"#error -- unsupported GNU version! gcc versions later than {newest_gcc} are not supported!\n"
        )
    return program(
        root / "bin" / "nvcc",
        f"""case "$1" in
--version) echo "Cuda compilation tools, release {version}, V{version}.1" ;;
--list-gpu-code) printf '%s\\n' {codes} ;;
esac""",
    )
