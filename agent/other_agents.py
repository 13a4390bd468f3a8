"""What OpenClaw, Hermes agent and nanobot keep in their home folders, read as notes, jobs and skills of a chat.

All three keep memory as Markdown (MEMORY.md, USER.md, a file a day), skills as folders with a SKILL.md, and jobs
in cron/jobs.json; OpenClaw since 2026.6.1 in state/openclaw.sqlite. Nothing there is changed or run, links are
not followed, and what holds a secret is left out.
"""

import json
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any

from pydantic import AliasChoices, AliasPath, BaseModel, Field
from pydantic_core import from_json

from agent.leaks import LeakDetector
from agent.sandbox.output_buffer import clean
from agent.schedule.due_times import next_due
from agent.schedule.times.rule import Cron, Every, Once, Rule, dump
from agent.skills import GUIDE, Skill, SkillError, read_plain_file, read_skill
from agent.store.jobs import JobSpec
from agent.store.notes import NOTE_CHARACTERS

MOST_BYTES, MOST_DATABASE = 4 << 20, 256 << 20  # of a file
TASK_CHARACTERS = 8_000
MEMORY = ("MEMORY.md", "memory.md", "USER.md", "memory/MEMORY.md", "memories/MEMORY.md", "memories/USER.md")  # fmt: skip
DAY = re.compile(r"\d{4}-\d\d-\d\d")  # the name of a file in memory/
STANDING = ("SOUL.md", "AGENTS.md", "IDENTITY.md", "TOOLS.md")
JOBS = ("cron/jobs.json", "state/openclaw.sqlite")
NEVER = {
    "settings and secrets": (".env", "auth.json", "config.json", "config.yaml", "openclaw.json", "credentials", "identity"),
    "conversations": ("sessions", "agents", "state.db", "workspace/sessions", "workspace/memory/history.jsonl"),
    "tasks of a heartbeat": ("HEARTBEAT.md", "workspace/HEARTBEAT.md"),
}  # fmt: skip
NAMED = r"""(?i)(?:token|key|secret|passw|credential|contraseña|mot de passe|пароль|密码)\w{,40}["']?\s{,9}[:=]\s{,9}"""
WORD = r"""["']?(?=[^\s"',}]{,400}\d)(?=[^\s"',}]{,400}[a-z])([^\s"',}]{8,})"""
SAID = (
    r"(?:pass|passwd|password|passwort|passphrase)[:=]?\s(?:\w{1,20}\s){,5}"  # "of the router is"
)
SECRET = re.compile(rf"{NAMED}{WORD}|\b{SAID}{WORD}|://[^\s/@:]{{1,99}}:[^\s/@]{{3,99}}@")
SETTING = re.compile(
    NAMED + r"""(?=["']?[^"',}\n]{,400}[a-z])(?:"([^"\n]{8,})|'([^'\n]{8,})|([^\s"',}]{8,}))"""
)
HELD = "it holds what looks like a secret"
# What a template has where nothing was filled in, and what the templates of nanobot and OpenClaw say of themselves.
BLANK = re.compile(
    r"_?\(.*\)_?|[*_][^*_]+[*_]|\[ \].*|[^:]{1,40}:\s*(?:_?\(.*\)_?)?|Prefer \.\.\.|Use one directive.*|(?:This file stores"
    r"|Information about the user to|Store stable user|Prefer concise progress updates|Begin each directive|Record the obs"
    r"|When a preference changes, mark|Keep stable communication|Save this file at|Replace the example|\[Agent works) ?.*"
)
ITEM = re.compile(r"(?:[-*+]|\d+[.)])\s+(.*)")


def at(*paths: str, default: Any = None) -> Any:
    """A field that stands at the first of these paths which is there, such as "schedule.kind"."""
    return Field(default, validation_alias=AliasChoices(*(AliasPath(*p.split(".")) for p in paths)))


class ForeignJob(BaseModel):
    """A job of one of the three, as it stands in a jobs.json and in OpenClaw's database."""

    id: str = ""
    name: str | None = None
    enabled: bool = True
    own: str | None = at("declarationKey")
    when: str = at("schedule.kind", default="")
    once: int | str | None = at("schedule.atMs", "schedule.at_ms", "schedule.at", "schedule.run_at")
    every_ms: int | None = at("schedule.everyMs", "schedule.every_ms")
    minutes: int = at("schedule.minutes", default=0)
    expression: str | None = at("schedule.expr")
    zone: str | None = at("schedule.tz")
    kind: str = at("payload.kind", default="agentTurn")
    text: str | None = at("payload.message", "payload.text", "prompt")
    delivery: str | None = at("delivery.mode")
    script: str | None = at("script", "trigger.script")
    skills: Sequence[str] | None = None
    times: int | None = at("repeat.times")

    @property
    def task(self) -> str:
        named = [f"Follow the skill {name}." for name in self.skills or ()]
        return clean("\n".join([self.text or "", *named])).strip()


@dataclass(frozen=True)
class Reader:
    """Reads a home folder or workspace for a chat in a time zone; `leaks` learns the secrets in it. What can be taken:
    notes (text: file), jobs by a key that stays theirs, skills; `left_out` says why the rest is not."""

    folder: Path
    chat: str
    zone: str
    now: datetime
    leaks: LeakDetector
    notes: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, JobSpec] = field(default_factory=dict)
    skills: list[Skill] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def read(self) -> None:
        for what, names in NEVER.items():
            for path in filter(Path.exists, map(self.folder.joinpath, names)):
                self.leave_out(path, f"{what} are never taken")
                for values in [] if path.is_dir() else SETTING.findall(self.text(path)):
                    self.leaks.watch(path.name, "".join(values))
        for place in (self.folder, *sorted(self.folder.glob("workspace*/"))):
            self.read_memory(place)
            self.read_jobs(place)
            self.read_skills(place)
            for path in filter(os.path.lexists, map(place.joinpath, STANDING)):
                self.leave_out(path, "what it says may become [agent] instructions")

    def leave_out(self, path: Path, why: object) -> None:
        told = f"{path.relative_to(self.folder)}: {HELD if self.is_secret(str(why)) else why}"
        if told not in self.left_out:
            self.left_out.append(told)

    def is_inside(self, path: Path) -> bool:
        """Whether neither a path nor a folder on the way to it is a link; the link is noted in `left_out`."""
        way = (path, *map(self.folder.joinpath, path.relative_to(self.folder).parents[:-1]))
        links = [each for each in way if each.is_symlink()]
        if links and os.path.lexists(path):
            self.leave_out(links[-1], "it is a link")
        return not links

    def is_secret(self, text: str) -> bool:
        return bool(self.leaks.find(text) or SECRET.search(text))

    def text(self, path: Path) -> str:
        """A file's text; "" for one that is not there or cannot be read; why it cannot is noted in `left_out`."""
        if not self.is_inside(path):
            return ""
        try:
            raw = read_plain_file(path, MOST_BYTES + 1)
            if len(raw) > MOST_BYTES:
                self.leave_out(path, f"what is behind its first {MOST_BYTES >> 20} MiB")
                raw = raw[:MOST_BYTES].rpartition(b"\n")[0]
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            self.leave_out(path, "it is not UTF-8 text")
        except OSError as error:
            if os.path.lexists(path):
                self.leave_out(path, error.strerror)
        return ""

    def read_memory(self, place: Path) -> None:
        days = [path for path in place.glob("memory/*.md") if DAY.match(path.name)]
        for path in (*map(place.joinpath, MEMORY), *sorted(days, reverse=True)):
            text, of_hermes = self.text(path), path.parent.name == "memories"
            day = f"{path.stem}: " if path in days else ""
            found = [*(text.split("\n§\n") if of_hermes else split_entries(text))]
            held = [entry for entry in found if self.is_secret(entry)]
            for entry in found:
                if entry not in held:
                    for part in wrap(day + clean(entry), NOTE_CHARACTERS) if entry else ():
                        self.notes.setdefault(part, str(path.relative_to(self.folder)))
            if held:
                self.leave_out(path, f"{len(held)} × what looks like a secret")
            if blanks := text and found.count(""):
                self.leave_out(path, f"{blanks} × what its template had")

    def read_jobs(self, place: Path) -> None:
        for path in filter(Path.is_file, map(place.joinpath, JOBS)):
            if not self.is_inside(path):
                continue
            try:
                rows = (
                    rows_of(path)
                    if path.suffix == ".sqlite"
                    else json.loads(self.text(path), strict=False)
                )
                rows = list(rows["jobs"] if isinstance(rows, dict) else rows)
            except (OSError, ValueError, TypeError, LookupError, RecursionError, sqlite3.Error):
                self.leave_out(path, "it holds no list of jobs")
                continue
            for number, row in enumerate(rows, 1):
                try:
                    known = from_json(row) if isinstance(row, bytes) else row
                    job = ForeignJob.model_validate(known)
                except ValueError:
                    self.leave_out(path, f"job {number} is not in a known form")
                    continue
                secret = self.is_secret(job.task)
                spec = HELD if secret else spec_of(job, self.chat, self.zone, self.now)
                if isinstance(spec, str):
                    self.leave_out(path, f"“{clean(job.name or job.id)}”: {spec}")
                else:
                    self.jobs[job.id or f"{job.task} {spec.when}"] = spec

    def read_skills(self, place: Path) -> None:
        manifest = self.text(place / "skills" / ".bundled_manifest").splitlines()
        bundled = {line.partition(":")[0] for line in manifest}
        found = [*place.glob(f"skills/*/{GUIDE}"), *place.glob(f"skills/*/*/{GUIDE}")]
        for guide in filter(self.is_inside, sorted(found)):
            try:
                skill = read_skill(guide.parent)
            except SkillError as error:
                self.leave_out(guide.parent, error)
                continue
            texts = {name: raw.decode("utf-8", "replace") for name, (raw, _) in skill.files.items()}
            held = [name for name, text in texts.items() if self.is_secret(text)]
            if skill.name in bundled:
                self.leave_out(guide.parent, "it comes with Hermes agent")
            elif held:
                self.leave_out(guide.parent / held[0], HELD)
            else:
                self.skills.append(skill)


def split_entries(text: str) -> Iterator[str]:
    """The items and paragraphs of a Markdown text, each behind its section's heading; "" for a blank of a template."""
    heading, parts = "", list[str]()
    for line in [*re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).splitlines(), ""]:
        bare, item = line.strip(), ITEM.fullmatch(line)
        parting = not bare or bare.startswith(("#", "```")) or set(bare) <= set("-*_=")
        if not item and not parting:
            parts.append(bare)
            continue
        if entry := " ".join(parts).replace("**", "").removeprefix("[x] "):
            told = f"{heading}: {entry}" if heading else entry
            yield "" if BLANK.fullmatch(entry) else told
        parts = [item[1]] if item else []
        if bare.startswith("#"):  # one alone is the title of the file
            heading = bare.lstrip("#").strip() if bare.startswith("##") else ""


def rows_of(path: Path) -> list[Any]:
    """The jobs in OpenClaw's database, as JSON, of a copy: reading may write beside it. Raises OSError and sqlite3.Error."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, path.name)
        for ending in ("", "-wal"):
            with suppress(FileNotFoundError):
                raw = read_plain_file(Path(f"{path}{ending}"), MOST_DATABASE)
                Path(f"{copy}{ending}").write_bytes(raw)
        with closing(sqlite3.connect(copy)) as database:
            sql = "SELECT CAST(job_json AS BLOB) FROM cron_jobs ORDER BY job_id"
            return [text for (text,) in database.execute(sql)]


def spec_of(job: ForeignJob, chat: str, zone: str, now: datetime) -> JobSpec | str:
    """Convert to a job of the chat, or return why none is like it. A time without a zone is in UTC, as in OpenClaw."""
    hindrances = {
        "it runs a script": job.script or job.kind in ("command", "script"),
        "its program made it for itself": job.own
        or job.kind not in ("agentTurn", "agent_turn", "systemEvent"),
        "it sends to a webhook": job.delivery == "webhook",
        f"it ends after {job.times} times": (job.times or 1) > 1,
        "it has no task, or a very long one": not 0 < len(job.task) <= TASK_CHARACTERS,
    }
    if why := next((why for why, holds in hindrances.items() if holds), ""):
        return why
    try:
        rule: Rule = Cron((job.expression or "").strip(), job.zone or zone)
        if isinstance(job.once, int):
            rule = Once(datetime.fromtimestamp(job.once / 1000, UTC))
        elif job.once:
            once = datetime.fromisoformat(job.once)
            rule = Once(once.replace(tzinfo=once.tzinfo or UTC).astimezone(UTC))
        elif (seconds := (job.every_ms or 0) // 1000 or job.minutes * 60) > 0:
            rule = Every(seconds, now)
        due = next_due(rule, now)
    except (ValueError, LookupError, OverflowError, OSError):
        return f"its time is not understood: {job.when} {job.expression or job.once or ''} {job.zone or ''}".strip()
    if due is None:
        return "its time has passed"
    kind = "remind" if job.task.lower().startswith("remind") else "task"
    when = job.expression or job.when
    spec = JobSpec(chat, kind, when, dump(rule), zone, job.task, {}, next_at=due)
    return spec if job.enabled else replace(spec, state="paused", next_at=None)
