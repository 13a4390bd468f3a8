"""Finds the options that a container needs and lacks, all at once: four of its defaults stop bubblewrap."""

from pathlib import Path

from agent.sandbox.mountinfo import mounts_of

ENGINES = {"run/.containerenv": "podman", ".dockerenv": "docker"}  # by the file that it leaves in /
BINFMT = "/proc/sys/fs/binfmt_misc"  # many hosts mount it too, and it masks nothing


def missing_options(message: str, root: Path = Path("/"), status: Path = Path("/proc/self")) -> str:
    """A sentence with the options to add; empty outside of a container, and where none is missing.

    `message` is bubblewrap's: a system call filter that lets it make namespaces, as podman's does, may stay.
    """
    engine = next((name for file, name in ENGINES.items() if (root / file).exists()), "")
    if not engine:
        return ""
    missing = []
    if "namespace" in message and "\nSeccomp:\t2" in text_of(status / "status"):
        missing.append("seccomp=unconfined")
    if any(point.startswith("/proc/") and point != BINFMT for point in mounts_of("self")):
        missing.append("unmask=ALL" if engine == "podman" else "systempaths=unconfined")
    label = text_of(status / "attr/current").strip("\0\n")
    if label.endswith("(enforce)"):
        missing.append("apparmor=unconfined")
    if ":container_t:" in label:
        missing.append("label=disable")
    if not missing:
        return ""
    options = " ".join(f"--security-opt {option}" for option in missing)
    return (
        f"This container was started without {options} (docs/container.md says what each is for)."
    )


def text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
