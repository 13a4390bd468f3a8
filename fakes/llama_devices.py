"""The real embedded server behind a script that says which GPUs there are.

    install(folder, "  CUDA0: Tesla V100-SXM2-16GB (16144 MiB, 900 MiB free)") -> path

Flags that a server without a GPU does not know are taken and dropped; the
environment of each start is kept beside the script.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def install(folder: Path, devices: str, *, unknown: str = "--n-cpu-moe --split-mode") -> Path:
    """An executable like llama-server; `devices` are the lines of its `--list-devices`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "devices").write_text(f"Available devices:\n{devices}\n")
    (folder / "more").write_text(
        "".join(f"{flag} N   of a GPU build\n" for flag in unknown.split())
    )
    run = f'env PYTHONPATH="{ROOT}" "{sys.executable}" -m backend.embedded'
    program = folder / "llama-server"
    program.write_text(f"""#!/bin/sh
case "$*" in
*--list-devices*) cat "{folder}/devices"; exit 0 ;;
*--help*) {run} --help; echo "--list-devices   print and exit"; cat "{folder}/more"; exit 0 ;;
esac
echo "$@" > "{folder}/argv"
env | grep -E '^(CUDA|GGML)' | sort > "{folder}/env"
kept=""
while [ $# -gt 0 ]; do
  case " {unknown} " in *" $1 "*) shift ;; *) kept="$kept $1" ;; esac
  shift
done
exec {run} $kept
""")
    program.chmod(0o755)
    return program


def argv(folder: Path) -> list[str]:
    """What it was last started with."""
    return (folder / "argv").read_text().split()


def environment(folder: Path) -> dict[str, str]:
    """The variables about devices that it was last started with."""
    lines = (folder / "env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)
