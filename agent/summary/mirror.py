"""The newest commits of a repository's origin, fetched in the sandbox beside the owner's clone.

The clone is not touched and lends no credentials: what is fetched is public, goes
through the proxy to the hosts that the owner allows, and lies in the chat's
workspace. So nothing that stands in a repository's configuration can do more than
a command in the sandbox can.
"""

from dataclasses import dataclass

from agent.errors import AgentError
from agent.summary.commit_range import BASH, Git, one_line, script

MIRRORS = "/workspace/.fetched"


@dataclass(frozen=True, slots=True)
class RepoLocation:
    """Where to read a repository; `note` tells a person when that is not what the origin has."""

    path: str
    note: str = ""


async def fetch_mirror(git: Git, path: str, name: str) -> RepoLocation:
    """Fetch the origin of `path`; the mirror, or `path` itself where the mirror does not contain its HEAD."""
    mirror = f"{MIRRORS}/{name}.git"
    try:
        output = await git([*BASH, script("fetch.sh"), "fetch", path, mirror])
    except AgentError as error:
        return RepoLocation(path, f"It was not fetched: {error}")
    result = one_line(output, 300)
    return RepoLocation(mirror) if result == "fetched" else RepoLocation(path, result)
