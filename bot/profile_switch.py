"""Jobs that switch the model's profile, and `[[backend.schedule]]` of the configuration kept in step.

What the file can say (every day at a time, in the configuration's zone) stands
there, so that the backend switches without the bot; each entry names its job.
The job itself makes sure that the profile serves, and reports when it does not.
"""

import logging
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from agent.errors import AgentError
from agent.schedule.job_actions import NothingToDo
from agent.schedule.times.rule import Calendar, load
from agent.store import Store
from agent.store.jobs import Job
from agent.store.occurrences import Occurrence
from backend.client import BackendClient, BackendRefused, BackendUnavailable

log = logging.getLogger(__name__)

KIND = "profile"
ENTRY = re.compile(
    r'\n*^\[\[backend\.schedule\]\]\nat = "[^"\n]*"\nprofile = "[^"\n]*"\njob = [1-9]\d*$\n?', re.M
)


@dataclass(frozen=True)
class ProfileSwitch:
    """A JobAction: the task is the profile's name."""

    backend: BackendClient

    async def __call__(self, job: Job, _occurrence: Occurrence) -> None:
        name, began = job.spec.task, monotonic()
        try:
            server = (await self.backend.status()).backend
            if server.profile == name and server.state in ("ready", "busy", "sleeping"):
                raise NothingToDo("It serves.")
            async for _ in self.backend.use_profile(name):
                pass
        except (BackendRefused, BackendUnavailable) as error:
            raise AgentError(str(error)) from None
        raise NothingToDo(f"It is ready after {monotonic() - began:.0f} s.")


async def sync_config(store: Store, path: Path | None, zone: str) -> None:
    """Write the daily switches that are planned now into the configuration file; where it cannot be
    written, jobs alone switch."""
    if path is None:
        return
    jobs = [job for job in await store.jobs.active() if job.spec.kind == KIND]
    entries = [entry for job in jobs for entry in config_entries(job, zone)]
    try:
        before = path.read_text("utf-8")
        rest = ENTRY.sub("", before).rstrip("\n")
        after = "\n".join([rest, *(f"\n{entry}" for entry in entries)]).lstrip("\n") + "\n"
        if after != before:
            tomllib.loads(after)
            replace_file(path, after)
    except (OSError, ValueError) as error:
        log.warning("%s does not get the planned switches of the model: %s", path, error)


def config_entries(job: Job, zone: str) -> Iterator[str]:
    """What `[[backend.schedule]]` can say: every day at a time, in the configuration's zone."""
    rule = load(job.spec.timing)
    if not isinstance(rule, Calendar) or rule.zone != zone or rule.step != 1:
        return
    if rule.weekdays or rule.days or rule.months or rule.nth:
        return
    for minute in rule.times:
        at = f"{minute // 60:02}:{minute % 60:02}"
        yield f'[[backend.schedule]]\nat = "{at}"\nprofile = "{job.spec.task}"\njob = {job.id}'


def replace_file(path: Path, text: str) -> None:
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
