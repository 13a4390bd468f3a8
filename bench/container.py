"""The image: built with podman, its size, and what bubblewrap says in it with the options and without.

    python -m bench.container [--base IMAGE] [--volume SPEC ...]

Needs root and podman. Where no registry is reached, the base is made by debootstrap, as Debian's slim image is; each
RUN is done in a chroot.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
IMAGE = "localhost/voltaire"
OWN_BASE = "localhost/debian:bookworm-slim"
MIRROR = "http://deb.debian.org/debian"
LEFT_OUT = ("doc", "man", "locale", "info")  # of /usr/share, as in Debian's slim images
# runc where it is: crun knows no hybrid cgroups. Low limits: root may not raise its own everywhere.
RUNTIME = ("--runtime=runc",) if shutil.which("runc") else ()
LIMITS = ("--ulimit=nofile=4096:4096", "--ulimit=nproc=1024:1024")
RUN = ("podman", *RUNTIME, "run", "--rm", "--network=none", *LIMITS)
WALLS = ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
OPTIONS = ("unmask=ALL",)  # of podman; docs/container.md has those of others
MOST_MB = 450


def run(*argv: str, check: bool = True) -> str:
    print(f"$ {' '.join(argv)}", file=sys.stderr, flush=True)
    done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if check and done.returncode:
        sys.exit(f"It ended with {done.returncode}.")
    return done.stdout


def make_base() -> str:
    """Debian's slim image, made here; the machine's own certificates come along (a proxy's)."""
    with tempfile.TemporaryDirectory() as folder:
        run("debootstrap", "--variant=minbase", "bookworm", folder, MIRROR)
        excluded = "".join(f"path-exclude /usr/share/{name}/*\n" for name in LEFT_OUT)
        (Path(folder) / "etc/dpkg/dpkg.cfg.d/slim").write_text(excluded)
        for name in LEFT_OUT:
            shutil.rmtree(Path(folder) / "usr/share" / name)
            (Path(folder) / "usr/share" / name).mkdir()
        for place in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(Path(folder) / place)
            (Path(folder) / place).mkdir()
        own = Path("/usr/local/share/ca-certificates")
        if own.is_dir():
            target = Path(folder) / "usr/local/share/ca-certificates"
            shutil.copytree(own, target, dirs_exist_ok=True)
        archive = Path(folder).with_suffix(".tar")
        try:
            run("tar", "-C", folder, "-cf", str(archive), ".")
            run("podman", "import", "--quiet", str(archive), OWN_BASE)
        finally:
            archive.unlink(missing_ok=True)
    return OWN_BASE


def inside(options: tuple[str, ...], *words: str) -> str:
    """What `voltaire` prints in a container, errors too."""
    security = [word for option in options for word in ("--security-opt", option)]
    argv = (*RUN, *WALLS, *security, "--entrypoint", "sh", IMAGE)
    return run(*argv, "-c", f"voltaire {' '.join(words)} 2>&1", check=False).strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", default="", help="the image that it is built on")
    parser.add_argument("--volume", action="append", default=[], help="seen by the build, too")
    chosen = parser.parse_args()
    base = chosen.base
    if not base and subprocess.run(["podman", "image", "exists", OWN_BASE]).returncode == 0:
        base = OWN_BASE
    base = base or make_base()
    volumes = [f"--volume={volume}" for volume in chosen.volume]
    run(
        "podman", "build", "--isolation=chroot", "--network=host", "--layers", *volumes,
        f"--build-arg=BASE={base}", "--file=container/Containerfile", f"--tag={IMAGE}", ".",
    )  # fmt: skip
    size = int(run("podman", "image", "inspect", "--format={{.Size}}", IMAGE)) / 1e6
    print(f"size: {size:.0f} MB (at most {MOST_MB})")
    print(f"version: {inside((), '--version')}")
    user = run("podman", "image", "inspect", "--format={{.User}}", IMAGE).strip()
    print(f"user: {user}")
    compilers = "command -v cc gcc g++ make cmake pip || true"
    found = run(*RUN, "--entrypoint", "sh", IMAGE, "-c", compilers)
    print(f"compilers: {found.strip() or 'none'}")
    for number in range(len(OPTIONS) + 1):
        options = OPTIONS[:number]
        print(
            f"with {' '.join(options) or 'no option'}: {inside(options, 'sandbox', '--', 'id', '-u')}"
        )
    answer = inside(OPTIONS, "demo", "--ask='how much disk space is free?'")
    print(f"one turn on Pocket: {answer.splitlines()[-1] if answer else 'nothing'}")
    wrong = {
        "too large": size > MOST_MB,
        "its user is root, or none": user in ("", "0", "root"),
        "a compiler is in it": bool(found.strip()),
        "no turn": "free" not in answer,
    }
    sys.exit("; ".join(what for what, so in wrong.items() if so) or 0)


if __name__ == "__main__":
    main()
