"""The configuration file: reading and writing it, and keeping `[[backend.schedule]]` in step with jobs.

The file is always replaced as a whole.
"""

import json
import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent.files import replacing
from agent.schedule.times.rule import Calendar, load
from agent.store import Store
from agent.store.jobs import Job
from bot.settings import read_toml

log = logging.getLogger(__name__)

PROFILE_JOB = "profile"  # the kind of job that switches the model's profile
ENTRY = re.compile(
    r'\n*^\[\[backend\.schedule\]\]\nat = "[^"\n]*"\nprofile = "[^"\n]*"\njob = [1-9]\d*$\n?', re.M
)

Values = dict[str, Any]


def read(path: Path) -> Values:
    """The file's values; empty where there is no file."""
    return read_toml(path) if path.exists() else {}


def put(values: Values, key: str, value: object) -> None:
    """Set a dotted key."""
    *sections, last = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
    values[last] = value


def get(values: Mapping[str, Any], key: str) -> Any:
    """The value of a dotted key, or None."""
    found: Any = values
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def write(path: Path, values: Values, *, group: int = -1) -> None:
    """Replace the file with these values; only its owner (and `group`) can read it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    replace_file(path, encoded(values), group=group)


def encoded(values: Values) -> bytes:
    return ("\n".join(lines(values)) + "\n").encode()


def replace_file(path: Path, content: bytes, *, group: int = -1) -> None:
    """Replace a file atomically and durably; only its owner (and `group`) can read it.

    Without `group`, the owner, group and mode of an existing file are kept.
    """
    with replacing(path, sync=True) as new:
        new.write_bytes(content)
        if group >= 0:
            os.chown(new, -1, group)
            new.chmod(0o640)
        elif path.exists():
            before = path.stat()
            new.chmod(before.st_mode & 0o777)
            os.chown(new, before.st_uid, before.st_gid)


def lines(values: Values, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The lines of a TOML table: plain values, then tables and arrays of tables."""
    plain = {k: v for k, v in values.items() if not isinstance(v, dict) and not tables(v)}
    if path and (plain or not values):
        yield f"[{'.'.join(map(toml_key, path))}]"
    yield from (f"{toml_key(key)} = {toml_value(value)}" for key, value in plain.items())
    for key, value in values.items():
        if isinstance(value, dict):
            yield from lines(value, (*path, key))
        elif tables(value):
            for table in value:
                yield f"[[{'.'.join(map(toml_key, (*path, key)))}]]"
                yield from (
                    f"{toml_key(name)} = {toml_value(each)}" for name, each in table.items()
                )


def tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def toml_key(name: str) -> str:
    bare = name.replace("-", "").replace("_", "").isalnum() and name.isascii()
    return name if bare else json.dumps(name)


def toml_value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, bool | int | float | str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value), ensure_ascii=False)


async def sync_config(store: Store, path: Path | None, zone: str) -> None:
    """Write the planned daily switches of the profile into the file.

    With them the backend switches without the bot. Each entry names its job. Where the file cannot be
    written, or a job is not daily, the job itself switches.
    """
    if path is None:
        return
    jobs = [job for job in await store.jobs.active() if job.spec.kind == PROFILE_JOB]
    entries = [entry for job in jobs for entry in config_entries(job, zone)]
    try:
        before = path.read_text("utf-8")
        rest = ENTRY.sub("", before).rstrip("\n")
        after = "\n".join([rest, *(f"\n{entry}" for entry in entries)]).lstrip("\n") + "\n"
        if after != before:
            tomllib.loads(after)
            replace_file(path, after.encode())
    except (OSError, ValueError) as error:
        log.warning("%s does not get the planned switches of the model: %s", path, error)


def config_entries(job: Job, zone: str) -> Iterator[str]:
    """The entries of a job; none unless it runs daily at times of day in the configuration's zone."""
    rule = load(job.spec.timing)
    if not isinstance(rule, Calendar) or rule.zone != zone or rule.step != 1:
        return
    if rule.weekdays or rule.days or rule.months or rule.nth:
        return
    for minute in rule.times:
        at = f"{minute // 60:02}:{minute % 60:02}"
        yield f'[[backend.schedule]]\nat = "{at}"\nprofile = "{job.spec.task}"\njob = {job.id}'
