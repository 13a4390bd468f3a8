"""Faults of llama.cpp's builds that others reported: known_faults.toml."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from backend.models.profile import Profile
from backend.proc import output_of
from backend.server.launch import HELP_SECONDS, Binary

# In "version: 11434 (abc)", "version: xllamacpp 2026.10.11549".
BUILD = re.compile(r"\b\d{4,6}\b(?!\.)")


@dataclass(frozen=True, slots=True)
class Fault:
    first: int
    last: int
    says: str
    source: str
    flags: Mapping[str, str] = field(default_factory=dict)
    slots: int = 1
    pictures: bool = False

    def concerns(self, profile: Profile) -> bool:
        used = all(profile.flag(name) == value for name, value in self.flags.items())
        return used and profile.slots >= self.slots and not (self.pictures and not profile.mmproj)


async def known_faults(server: Binary, profile: Profile) -> list[Fault]:
    """The faults of the server's build, as far as they concern the profile."""
    with suppress(OSError, TimeoutError):
        command = (*server.command, "--version")
        said = await output_of(command, env=server.env, seconds=HELP_SECONDS)
        return list(faults_of(said.text, profile))
    return []


def faults_of(version: str, profile: Profile) -> Iterator[Fault]:
    build = BUILD.search(version)
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["fault"]
    for fault in (Fault(**row) for row in rows if build):
        if build and fault.first <= int(build[0]) <= fault.last and fault.concerns(profile):
            yield fault
