"""A repository as its origin has it by now, fetched in the sandbox beside the owner's clone.

The clone is not touched and lends no credentials: what is fetched is public, goes
through the proxy to the hosts that the owner allows, and lies in the chat's
workspace. So nothing that stands in a repository's configuration can do more than
a command in the sandbox can.
"""

from dataclasses import dataclass

from agent.errors import AgentError
from agent.summary.facts import BASH, Git, script

MIRRORS = "/workspace/.fetched"


@dataclass(frozen=True, slots=True)
class Place:
    """Where to read; `note` tells a person when that is not what the origin has."""

    path: str
    note: str = ""


async def fetched(run: Git, path: str, name: str) -> Place:
    """Where the newest commits of `path` are: its mirror, or itself where that does not go on from it."""
    mirror = f"{MIRRORS}/{name}.git"
    try:
        said = await run([*BASH, script("fetch.sh"), "fetch", path, mirror])
    except AgentError as error:
        return Place(path, f"It was not fetched: {error}")
    lines = said.strip().splitlines() or ["git said nothing."]
    return (
        Place(mirror) if lines[-1] == "fetched" else Place(path, f"It was not fetched: {lines[-1]}")
    )
