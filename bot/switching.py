"""Jobs that switch the model's profile, and `[[backend.schedule]]` of the configuration kept in step.

What the file can say (every day at a time, in the configuration's zone) stands
there, so that the backend obeys it without the bot; each entry names its job.
The job itself sees to it that the profile serves, and tells when it does not.
"""

import logging
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from agent.errors import AgentError
from agent.schedule.occurrences import Nothing
from agent.schedule.times import Calendar, load
from agent.store import Store
from agent.store.jobs import Job
from agent.store.occurrences import Occurrence
from backend.client import BackendClient, BackendRefused, BackendUnavailable

log = logging.getLogger(__name__)

KIND = "profile"
_ENTRY = re.compile(
    r'\n*^\[\[backend\.schedule\]\]\nat = "[^"\n]*"\nprofile = "[^"\n]*"\njob = [1-9]\d*$\n?', re.M
)


@dataclass(frozen=True)
class ProfileSwitch:
    """A kind of job (agent.schedule.occurrences.Kind): the task is the profile's name."""

    backend: BackendClient

    async def __call__(self, job: Job, _occurrence: Occurrence) -> None:
        name, began = job.spec.task, monotonic()
        try:
            if await self._serves(name):
                raise Nothing("It serves.", tell=bool(job.spec.options.get("tell_nothing")))
            async for _ in self.backend.use_profile(name):
                pass
        except (BackendRefused, BackendUnavailable) as error:
            raise AgentError(str(error)) from None
        seconds = monotonic() - began
        raise Nothing(
            f"It is ready after {seconds:.0f} s.", tell=bool(job.spec.options.get("tell_nothing"))
        )

    async def _serves(self, name: str) -> bool:
        server = (await self.backend.status()).backend
        return server.profile == name and server.state in ("ready", "busy", "sleeping")


async def keep_file(store: Store, path: Path | None, zone: str) -> None:
    """Write the daily switches that are planned now; where the file cannot be written, jobs alone switch."""
    jobs = [job for job in await store.jobs.active() if job.spec.kind == KIND]
    if path is None:
        return
    try:
        before = path.read_text("utf-8")
        after = _with(before, [line for job in jobs for line in _entries(job, zone)])
        if after != before:
            tomllib.loads(after)
            _write(path, after)
    except (OSError, ValueError) as error:
        log.warning("%s does not get the planned switches of the model: %s", path, error)


def _with(text: str, entries: Sequence[str]) -> str:
    """The file's text with these entries of ours in place of the former ones; nothing else changes."""
    rest = _ENTRY.sub("", text)
    return "\n".join([rest.rstrip("\n"), *(f"\n{entry}" for entry in entries)]).lstrip("\n") + "\n"


def _entries(job: Job, zone: str) -> Iterator[str]:
    rule = load(dict(job.spec.timing))
    if not isinstance(rule, Calendar) or rule.zone != zone or not _daily(rule):
        return
    for minute in rule.times:
        at = f"{minute // 60:02}:{minute % 60:02}"
        yield f'[[backend.schedule]]\nat = "{at}"\nprofile = "{job.spec.task}"\njob = {job.id}'


def _daily(rule: Calendar) -> bool:
    return not (rule.weekdays or rule.days or rule.months or rule.nth) and rule.step == 1


def _write(path: Path, text: str) -> None:
    """Replace the file at once, as readable as it was."""
    now = path.stat()
    new = path.with_name(f".{path.name}.new")
    descriptor = os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if os.geteuid() == 0:
        os.chown(new, now.st_uid, now.st_gid)
    new.chmod(now.st_mode & 0o777)
    new.replace(path)
