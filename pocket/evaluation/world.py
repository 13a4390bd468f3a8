"""A pretended computer behind the product's tools: files, repositories, memory, plans.

Every call gets the result that a real one would get, so that a wrong call
has its honest error, from which a model may go on.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches, unified_diff
from fnmatch import fnmatchcase
from typing import Any

from pocket.evaluation.gauges import host_report
from pocket.evaluation.machine import Machine
from pocket.evaluation.shell import HOST_REPORT, Shell, found
from pocket.evaluation.when import Due, tell, understand


@dataclass(frozen=True, slots=True)
class Repository:
    """`changed` are lines of `git status --short`; `commit` the short hash of the next commit."""

    branch: str = "main"
    changed: tuple[str, ...] = ()
    diff: str = ""
    commit: str = "0000000"


@dataclass(frozen=True, slots=True)
class Setup:
    """How a computer is before a conversation; `memory` are (date, text), oldest first."""

    files: Mapping[str, str] = field(default_factory=dict)
    repositories: Mapping[str, Repository] = field(default_factory=dict)
    memory: Sequence[tuple[str, str]] = ()
    missing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Result:
    text: str
    ok: bool = True


class Failed(Exception):
    """A tool's error; the text is its advice to the model."""


class World:
    """Mutable; `files`, `committed`, `saved` and `planned` hold what calls have done."""

    def __init__(self, machine: Machine, setup: Setup) -> None:
        self.machine = machine
        self.files = dict(setup.files)
        self.repositories = dict(setup.repositories)
        self.memory = list(setup.memory)
        self.missing = setup.missing
        self.committed: list[tuple[str, str]] = []
        self.saved: list[str] = []
        self.planned: list[tuple[Due, str, str]] = []

    def call(self, name: str, arguments: Mapping[str, Any] | None) -> Result:
        """The result of one tool call, as the model is to see it."""
        if name not in _TOOLS:
            return Result(f"There is no tool {name}.", ok=False)
        tool, required = _TOOLS[name]
        missing = [key for key in required if key not in (arguments or {})]
        if arguments is None or missing:
            return Result(f"{(missing or ['arguments'])[0]} is missing.", ok=False)
        try:
            return tool(self, arguments)
        except Failed as error:
            return Result(str(error), ok=False)


def place(path: str) -> str:
    """A path below /workspace, as the files are named here."""
    return re.sub(r"^(/workspace/?|\./)+", "", path.strip()).strip("/")


def _bash(world: World, given: Mapping[str, Any]) -> Result:
    command = str(given["command"])
    appended = re.fullmatch(r"(?:echo|printf) (['\"]?)(.*?)(?:\\n)?\1 ?>> ?(\S+)", command)
    if appended:
        path = place(appended[3])
        world.files[path] = world.files.get(path, "").rstrip("\n") + f"\n{appended[2]}\n"
        return Result("(no output)")
    output, code = Shell(world.machine, world.files, world.missing).run(command)
    if code:
        return Result(f"{output}\nexit code: {code}", ok=False)
    return Result(output or "(no output)")


def _read(world: World, given: Mapping[str, Any]) -> Result:
    if given["path"] == HOST_REPORT:
        return Result(host_report(world.machine))
    lines = world.files[_known(world, given["path"])].splitlines()
    first, last = max(1, _whole(given, "first")), _whole(given, "last") or len(lines)
    return Result("\n".join(lines[first - 1 : last]))


def _whole(given: Mapping[str, Any], key: str) -> int:
    value = given.get(key)
    return value if isinstance(value, int) else 0


def _known(world: World, path: str) -> str:
    name = place(str(path))
    if name in world.files:
        return name
    folder = name.rpartition("/")[0]
    beside = [f for f in world.files if f.rpartition("/")[0] == folder]
    near = ", ".join(get_close_matches(name, beside, 3, 0.5))
    raise Failed(f"There is no file {path}." + (f" Near names are: {near}." if near else ""))


def _write(world: World, given: Mapping[str, Any]) -> Result:
    path, content = place(str(given["path"])), str(given["content"])
    existed = path in world.files
    world.files[path] = content
    return Result(f"{'replaced' if existed else 'created'} {path}, {len(content.encode())} bytes")


def _edit(world: World, given: Mapping[str, Any]) -> Result:
    path, old, new = _known(world, given["path"]), str(given["old"]), str(given["new"])
    text = world.files[path]
    count = text.count(old) if old else 0
    if count > 1:
        raise Failed(
            f"old occurs {count} times in {path}. Copy more of the lines around the one you mean."
        )
    if not count:
        raise Failed(_absent(old, text, path))
    world.files[path] = text.replace(old, new)
    return Result(f"edited {path}\n" + "\n".join(_changed(text, world.files[path])))


def _absent(old: str, text: str, path: str) -> str:
    lines = text.splitlines()
    near = get_close_matches(old, lines, 1, 0.4)
    if not near:
        return f"old does not occur in {path}. Read the file and copy the lines exactly."
    number = lines.index(near[0]) + 1
    return f"old does not occur in {path}. The nearest lines, from line {number}, are:\n{near[0]}"


def _changed(before: str, after: str) -> Iterator[str]:
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))
    return (line for line in lines[2:] if line.startswith(("+", "-")))


def _list(world: World, given: Mapping[str, Any]) -> Result:
    folder = place(str(given.get("path") or ""))
    inside = [f for f in world.files if not folder or f.startswith(f"{folder}/")]
    pattern = place(str(given["pattern"]))
    names = [
        f
        for f in inside
        if matches(f, pattern) or (folder and matches(f.removeprefix(f"{folder}/"), pattern))
    ]
    if not names:
        return Result(
            f"No file matches {given['pattern']} in /{'/'.join(filter(None, ['workspace', folder]))}."
        )
    return Result("\n".join(names))


def matches(name: str, pattern: str) -> bool:
    """As the tool's globs: without a slash a pattern is held against the file's own name."""
    if pattern in ("", ".", "*", "**", "**/*"):
        return True
    if "/" not in pattern:
        return fnmatchcase(name.split("/")[-1], pattern)
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("**/", ""))


def _grep(world: World, given: Mapping[str, Any]) -> Result:
    sought = str(given["pattern"])
    try:
        pattern, note = re.compile(sought), ""
    except re.error:
        pattern, note = (
            re.compile(re.escape(sought)),
            "\n[pattern is not a regular expression, so it was searched as plain text]",
        )
    glob, where = str(given.get("glob") or "*"), str(given.get("path") or "")
    chosen = {name: text for name, text in world.files.items() if matches(name, place(glob))}
    lines = found(chosen, pattern, [where] if where else [])
    return Result(("\n".join(lines) or f"No line matches {sought} in /workspace.") + note)


def _repository(world: World, given: Mapping[str, Any]) -> tuple[str, Repository]:
    asked = str(given["repo"])
    name = re.sub(r"^/repos/", "", asked).rstrip("/") if not asked.startswith("/workspace") else "."
    name = name or "."
    if name not in world.repositories:
        known = ", ".join(name for name in world.repositories if name != ".") or "none"
        raise Failed(f"There is no git repository at /workspace/{asked}. Configured are: {known}.")
    return name, world.repositories[name]


def _status(world: World, given: Mapping[str, Any]) -> Result:
    _, repository = _repository(world, given)
    changed = "\n".join(repository.changed) or "nothing to commit, working tree clean"
    return Result(f"branch {repository.branch}\n{changed}")


def _diff(world: World, given: Mapping[str, Any]) -> Result:
    return Result(_repository(world, given)[1].diff or "no changes")


def _commit(world: World, given: Mapping[str, Any]) -> Result:
    name, repository = _repository(world, given)
    if not repository.changed:
        raise Failed("There is nothing to commit, the working tree is clean.")
    message, count = str(given["message"]), len(given.get("files") or repository.changed)
    world.committed.append((name, message))
    world.repositories[name] = Repository(repository.branch)
    return Result(
        f"[{repository.branch} {repository.commit}] {message}\n{count} file{'s' if count > 1 else ''} changed"
    )


def _remember(world: World, given: Mapping[str, Any]) -> Result:
    note = str(given["note"])
    world.saved.append(note)
    world.memory.append((f"{world.machine.now:%Y-%m-%d}", note))
    return Result(f"Saved: {note}")


_SMALL = re.compile(
    r"the|and|for|was|what|did|about|our|with|you|say|said|that|are|who|when|where|which|how|does"
)


def _recall(world: World, given: Mapping[str, Any]) -> Result:
    words = {
        w for w in re.findall(r"[\w-]{3,}", str(given["query"]).lower()) if not _SMALL.fullmatch(w)
    }
    lines = [f"{day} {text}" for day, text in world.memory if any(_alike(w, text) for w in words)]
    return Result("\n".join(lines) or "nothing found")


def _alike(word: str, text: str) -> bool:
    return any(t == word or (min(len(t), len(word)) > 3 and (t.startswith(word) or word.startswith(t)))
               for t in re.findall(r"[\w-]+|\w+", text.lower()))  # fmt: skip


def _schedule(world: World, given: Mapping[str, Any]) -> Result:
    due = understand(str(given["when"]), world.machine.now)
    if due is None:
        raise Failed(
            "I did not understand when that is. Say it like: in 20 minutes, tomorrow at 9, every weekday at 8."
        )
    kind, task = str(given.get("kind") or ""), str(given["task"])
    world.planned.append((due, task, kind))
    what = {"remind": f"Reminder “{task}”", "summary": f"Summary of {task}"}.get(
        kind, f"Task “{task}”"
    )
    return Result(f"Planned as job {10 + len(world.planned)}: {what}, {tell(due)}.")


def _send(world: World, given: Mapping[str, Any]) -> Result:
    return Result(f"sent {_known(world, given['path'])}")


_Tool = Callable[[World, Mapping[str, Any]], Result]
_TOOLS: Mapping[str, tuple[_Tool, tuple[str, ...]]] = {
    "bash": (_bash, ("command",)),
    "read_file": (_read, ("path",)),
    "write_file": (_write, ("path", "content")),
    "edit_file": (_edit, ("path", "old", "new")),
    "list_files": (_list, ("pattern",)),
    "grep": (_grep, ("pattern",)),
    "git_status": (_status, ("repo",)),
    "git_diff": (_diff, ("repo",)),
    "git_commit": (_commit, ("repo", "message")),
    "remember": (_remember, ("note",)),
    "recall": (_recall, ("query",)),
    "schedule": (_schedule, ("when", "task")),
    "send_file": (_send, ("path",)),
}
