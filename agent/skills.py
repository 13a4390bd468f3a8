"""Skills: folders with a SKILL.md that tell the agent how something is done, added by the owner alone.

The form is the published one: front matter with `name` and `description`, then instructions, and the files
that they mention. A skill that is added is copied below the state directory and pinned by a hash of all of
it; the sandbox shows that copy at /skills/NAME, read-only. Once its source or the copy differs from
what was pinned, it is not shown until an owner has looked at it and added it again.
"""

import hashlib
import json
import logging
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agent.files import replacing
from agent.sandbox.output_buffer import clean
from agent.sandbox.rootfs import make_directory

log = logging.getLogger(__name__)

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
DESCRIPTION = 1024  # characters, the published limit
MOST_FILES, MOST_BYTES = 200, 8 << 20
MOST_TEXT = 2 << 20  # bytes; an owner is shown all of it
FRONT_MATTER = 16 << 10  # characters that are looked through
GUIDE = "SKILL.md"
PINS = "pins.json"
LEFT_OUT = {".git", "__pycache__", ".DS_Store"}


class SkillError(Exception):
    """A skill cannot be added or read; `str` is one sentence for the owner."""


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill; `files` has by path in `folder` each file's content, and whether it is executable."""

    name: str
    description: str
    folder: Path
    files: Mapping[str, tuple[bytes, bool]]

    @property
    def sha256(self) -> str:
        """The SHA-256 of the names, modes and contents of all files."""
        whole = hashlib.sha256()
        for path, (content, program) in sorted(self.files.items()):
            head = json.dumps([path, program, len(content)])
            whole.update(head.encode() + b"\n" + content)
        return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class Pin:
    """A skill as it was when the owner added it from the folder `source`."""

    name: str
    description: str
    source: str
    sha256: str


_PINS = TypeAdapter(list[Pin])


def read_skill(folder: Path) -> Skill:
    """The skill in a folder. SkillError says what is wrong with it."""
    try:
        files = dict(files_below(folder))
    except OSError as error:
        raise SkillError(f"{folder} cannot be read: {error.strerror}.") from None
    if GUIDE not in files:
        raise SkillError(f"{folder} holds no {GUIDE}, so it is no skill.")
    guide = folder / GUIDE
    try:
        facts = front_matter(files[GUIDE][0].decode())
    except UnicodeDecodeError:
        raise SkillError(f"{guide} is not UTF-8 text.") from None
    name, description = facts.get("name", ""), clean(facts.get("description", ""))
    if sum(len(content) for content, _ in files.values() if is_text(content)) > MOST_TEXT:
        raise SkillError(
            f"{folder} has more than {MOST_TEXT >> 20} MiB of text, too much to look at."
        )
    if not all(path.isprintable() for path in files):
        raise SkillError(f"{folder} has a file whose name holds more than can be shown.")
    if not NAME.fullmatch(name):
        raise SkillError(
            f"{guide}: the name {name!r} must be of small letters, digits and hyphens, at most 64."
        )
    if not 0 < len(description) <= DESCRIPTION:
        raise SkillError(f"{guide}: its description must have 1 to {DESCRIPTION} characters.")
    return Skill(name, description, folder, files)


def is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def files_below(folder: Path) -> Iterator[tuple[str, tuple[bytes, bool]]]:
    count = size = 0
    for place, folders, names in os.walk(folder, onerror=_fail):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        for name in sorted((*names, *folders)):
            path = Path(place, name)
            found = path.lstat()
            if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
                raise SkillError(f"{path} is a link or a device; a skill is of plain files.")
            if name in LEFT_OUT:
                continue
            content = b""
            if stat.S_ISREG(found.st_mode):
                content = read_plain_file(path, MOST_BYTES - size + 1)
            count, size = count + 1, size + len(content)
            if count > MOST_FILES or size > MOST_BYTES:
                raise SkillError(
                    f"{folder} has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB."
                )
            if stat.S_ISREG(found.st_mode):
                inner = path.relative_to(folder).as_posix()
                yield inner, (content, bool(found.st_mode & stat.S_IXUSR))


def read_plain_file(path: Path, most: int) -> bytes:
    """Read at most that many bytes, whatever the file has become since it was looked at. Raises OSError for a link."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""


def _fail(error: OSError) -> None:
    raise error


def front_matter(text: str) -> dict[str, str]:
    """The keys between two lines of "---", within the first FRONT_MATTER characters. Of YAML it reads what skills use:
    plain, quoted and folded strings."""
    lines = text.removeprefix("\ufeff")[:FRONT_MATTER].split("\n")
    if lines[0].strip() != "---":
        return {}
    found: dict[str, list[str]] = {}
    key, block = "", False
    for line in lines[1:]:
        if line.strip() == "---":
            return {key: _unquoted(" ".join(filter(None, parts))) for key, parts in found.items()}
        if match := re.match(r"([\"']?)([A-Za-z][\w-]*)\1 *:(?:\s+(.*))?$", line):
            key, value = match[2], _uncommented(match[3] or "")
            block = re.fullmatch(r"[>|][-+\d]*", value) is not None
            found[key] = [] if block else [value]
        elif key and line.startswith((" ", "\t")):
            found[key].append(line.strip() if block else _uncommented(line))
    return {}


def _uncommented(line: str) -> str:
    """Remove a comment that holds no quotation mark, as what is quoted may hold " #"."""
    value, _, comment = f" {line}".partition(" #")
    return (line if {*comment} & {*"\"'"} else value).strip()


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        escaped = "''" if value[0] == "'" else '\\"'
        return value[1:-1].replace(escaped, value[0])
    return value


@dataclass(frozen=True)
class SkillShelf:
    """The skills of a state directory; `shown` is /skills of its sandboxes."""

    state: Path

    @property
    def folder(self) -> Path:
        return self.state / "skills"

    @property
    def shown(self) -> Path:
        return self.state / "sandbox" / "root" / "skills"

    def pins(self) -> list[Pin]:
        """All that were added, by name."""
        try:
            return _PINS.validate_json((self.folder / PINS).read_bytes())
        except FileNotFoundError:
            return []
        except (OSError, ValidationError) as error:
            log.error("no skills: %s cannot be read: %s", self.folder / PINS, error)  # noqa: TRY400
            return []

    def offered(self) -> list[Pin]:
        """The skills that the agent sees."""
        return [pin for pin in self.pins() if (self.shown / pin.name).is_dir()]

    def problem(self, pin: Pin) -> str:
        """Why an added skill must not be shown; empty where it may."""
        source = Path(pin.source)
        for folder in (self.folder / pin.name, source):
            try:
                if folder == source and not os.path.exists(source):  # noqa: PTH110 - False where nobody may look
                    continue  # the copy stays what it was
                same = read_skill(folder).sha256 == pin.sha256
            except SkillError as error:
                return str(error)
            if not same:
                return f"{folder} has changed since it was added; look at it with voltaire skills add {source}."
        return ""

    def add(self, skill: Skill) -> None:
        """Store the skill as it was read, replacing one of the same name, and show it."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        write_files(skill, self.folder / skill.name)
        pin = Pin(skill.name, skill.description, str(skill.folder.resolve()), skill.sha256)
        self._keep([pin, *(each for each in self.pins() if each.name != pin.name)])
        self.show()

    def remove(self, name: str) -> None:
        if name not in {pin.name for pin in self.pins()}:
            raise SkillError(f"There is no skill {name}; voltaire skills list shows what there is.")
        self._keep([pin for pin in self.pins() if pin.name != name])
        shutil.rmtree(self.folder / name, ignore_errors=True)
        self.show()

    def show(self) -> None:
        """Make /skills hold the skills that are pinned and unchanged, and nothing else."""
        pins = self.pins()
        if not pins and not self.shown.exists():
            return
        make_directory(self.shown)
        good = {}
        for pin in pins:
            if why := self.problem(pin):
                log.warning("the skill %s is not offered: %s", pin.name, why)
            else:
                good[pin.name] = pin
        for there in list(self.shown.iterdir()):
            if there.name not in good:
                shutil.rmtree(there)
        for name, pin in good.items():
            there = self.shown / name
            if _hash_of(there) != pin.sha256:
                write_files(read_skill(self.folder / name), there)

    def _keep(self, pins: list[Pin]) -> None:
        pins = sorted(pins, key=lambda pin: pin.name)
        with replacing(self.folder / PINS, sync=True) as new:
            new.write_text(json.dumps([asdict(pin) for pin in pins], indent=1), "utf-8")


def _hash_of(folder: Path) -> str:
    try:
        return read_skill(folder).sha256
    except SkillError:
        return ""


def write_files(skill: Skill, folder: Path) -> None:
    """Replace the folder with the skill's files, readable by everybody whatever the umask."""
    fresh = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    for path, (content, program) in skill.files.items():
        target = fresh / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(0o755 if program else 0o644)
    for place, _, _ in os.walk(fresh):
        Path(place).chmod(0o755)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
