"""The repository whose summaries are scheduled: one commit for each of them."""

import subprocess
from pathlib import Path


def prepare(folder: Path, site: Path) -> None:
    for path in (folder, folder / "state", site):
        path.mkdir(exist_ok=True)
    folder.chmod(0o755)
    git(site, "init", "-q", "-b", "main")
    commit(site, "start")
    config = folder / "state" / "config" / "voltaire" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[agent.repos.site]\npath = "{site}"\n')


def commit(site: Path, word: str) -> None:
    (site / f"{len(list(site.iterdir()))}.txt").write_text("x\n")
    git(site, "add", "-A")
    git(site, "commit", "-q", "-m", f"Work on {word}")


def git(site: Path, *arguments: str) -> None:
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "-C", site, *who, *arguments], check=True, capture_output=True)
