"""What pyproject.toml cannot say: the wheel's folders, and addresses of the repository that it comes from.

The checkout's bot, agent, backend and systemd become folders of voltaire_agent. The README's
relative links become addresses at $VOLTAIRE_REPOSITORY and, within it, of this version's tag; without that
variable they become plain words, because nobody could follow them.
"""

import os
import re
import tomllib
from pathlib import Path

from setuptools import find_namespace_packages, setup

ROOT = Path(__file__).parent
PACKAGE = "voltaire_agent"
PROGRAM = ("bot*", "agent*", "backend*")
FOLDERS = ("systemd", "systemd.system", "systemd.user")
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def public(address: str) -> str:
    """The https address of what git calls `origin`, without names and passwords; empty for another kind."""
    found = re.fullmatch(r"(?:https://(?:[^@/]*@)?|git@)([^/:]+)[/:](.+?)(?:\.git)?/?", address)
    return f"https://{found[1]}/{found[2]}" if found else ""


def readme(repository: str, version: str) -> str:
    """README.md for a page that is not the repository's."""

    def absolute(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        if not repository:
            return "" if picture else words
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({repository}/{kind}/v{version}/{target})"

    return LINK.sub(absolute, (ROOT / "README.md").read_text("utf-8"))


def urls(repository: str, version: str) -> dict[str, str]:
    if not repository:
        return {}
    at = f"{repository}/blob/v{version}"
    return {
        "Homepage": repository,
        "Documentation": f"{at}/docs/operating.md",
        "Changelog": f"{at}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


packages = [*find_namespace_packages(str(ROOT), include=PROGRAM), *FOLDERS]
version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
repository = public(os.environ.get("VOLTAIRE_REPOSITORY", ""))
setup(
    packages=[PACKAGE, *(f"{PACKAGE}.{name}" for name in packages)],
    package_dir={f"{PACKAGE}.{name}": name.replace(".", "/") for name in packages},
    long_description=readme(repository, version),
    long_description_content_type="text/markdown",
    project_urls=urls(repository, version),
)
