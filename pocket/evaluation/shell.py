"""The pretended computer's bash: commands that look, and nothing else.

A command is a list of pipelines, joined by && or ;. What is not known here
answers as bash would, with exit code 127, and touches nothing.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise

from pocket.evaluation import arithmetic
from pocket.evaluation.gauges import GAUGES, Refused, host_report, meminfo
from pocket.evaluation.machine import Machine

HOST_REPORT = "/host.txt"
NOTHING = re.compile(r" ?2> ?(?:/dev/null|&1)")
QUOTED_OR = re.compile(r"""('[^']*'|"[^"]*")|(\|\||&&|;|\|)""")


class NotFound(Exception):
    """No such command here."""


@dataclass(frozen=True, slots=True)
class Shell:
    """`files` maps paths below /workspace to texts; `missing` are commands this machine lacks."""

    machine: Machine
    files: Mapping[str, str]
    missing: frozenset[str] = frozenset()

    def run(self, command: str) -> tuple[str, int]:
        """Output and exit code."""
        command = NOTHING.sub("", command)
        summed = arithmetic.output(command)
        if summed is not None:
            return summed, 0
        try:
            return "\n".join(filter(None, map(self._pipeline, _pipelines(command)))), 0
        except NotFound as error:
            return f"bash: line 1: {error}: command not found", 127
        except Refused as error:
            return str(error), 1
        except (ValueError, re.error) as error:  # unbalanced quotes, a bad pattern
            return f"bash: {error}", 2

    def _pipeline(self, commands: Sequence[str]) -> str:
        first, *rest = (shlex.split(command) for command in commands)
        text = self._command(first)
        for argv in rest:
            text = _filter(argv, text)
        return text

    def _command(self, argv: Sequence[str]) -> str:
        name, *arguments = argv or [""]
        if name in self.missing:
            raise NotFound(name)
        if name in GAUGES:
            return GAUGES[name](self.machine, arguments)
        if name not in _COMMANDS:
            raise NotFound(name)
        return _COMMANDS[name](self, arguments)


def _pipelines(command: str) -> list[list[str]]:
    """The command's pipelines, each a list of commands."""
    pipelines = [[""]]
    position = 0
    for mark in QUOTED_OR.finditer(command):
        if mark[1]:
            continue
        pipelines[-1][-1] += command[position : mark.start()]
        position = mark.end()
        if mark[2] == "|":
            pipelines[-1].append("")
        else:
            pipelines.append([""])
    pipelines[-1][-1] += command[position:]
    return [pipeline for pipeline in pipelines if any(part.strip() for part in pipeline)]


def _filter(argv: Sequence[str], text: str) -> str:
    name, *arguments = argv or [""]
    if name not in _FILTERS:
        raise NotFound(name)
    return "\n".join(_FILTERS[name](arguments, text.splitlines()))


def _count(arguments: Sequence[str]) -> int:
    """The number that head or tail is given."""
    numbers = re.findall(r"\d+", " ".join(arguments))
    return int(numbers[0]) if numbers else 10


def _awk(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """{print $N}, of all lines, of one by number, or of those that match."""
    form = r"(?:NR ?== ?(\d+)|/(\S+)/)?\s*\{ ?print \$(\d{1,2}) ?\}"
    program = re.fullmatch(form, arguments[-1] if arguments else "")
    if not program:
        raise NotFound("awk")
    row, word, column = program.groups()
    chosen = [
        line
        for number, line in enumerate(lines, 1)
        if (not row or number == int(row)) and re.search(word or "", line)
    ]
    return [("", *line.split(), *[""] * 99)[int(column)] for line in chosen]


def _matching(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    pattern, _ = _pattern(arguments)
    return [line for line in lines if pattern.search(line)]


def _pattern(arguments: Sequence[str]) -> tuple[re.Pattern[str], list[str]]:
    """grep's pattern and the files behind it."""
    words = [a for a in arguments if not a.startswith("-")]
    if not words:
        raise Refused("Usage: grep [OPTION]... PATTERNS [FILE]...")
    insensitive = any("i" in a for a in arguments if re.fullmatch(r"-\w+", a))
    return re.compile(words[0], re.I if insensitive else 0), words[1:]


_FILTERS: Mapping[str, Callable[[Sequence[str], Sequence[str]], list[str]]] = {
    "awk": _awk,
    "grep": _matching,
    "head": lambda arguments, lines: list(lines[: _count(arguments)]),
    "tail": lambda arguments, lines: list(lines[-_count(arguments) :]),
    "sort": lambda arguments, lines: sorted(lines),
    "wc": lambda arguments, lines: [str(len(lines))],
    "cat": lambda arguments, lines: list(lines),
}


def _ls(shell: Shell, arguments: Sequence[str]) -> str:
    path = next((a for a in arguments if not a.startswith("-")), ".")
    folder = _relative(path)
    if "*" in folder:
        return "\n".join(sorted(name for name in shell.files if fnmatchcase(name, folder)))
    inside = sorted({_child(name, folder) for name in shell.files if _inside(name, folder)})
    if not inside and folder:
        raise Refused(f"ls: cannot access '{path}': No such file or directory")
    long = any("l" in a for a in arguments if a.startswith("-"))
    return "\n".join(
        f"-rw-r--r-- 1 1000 1000 {len(name) * 37} {name}" if long else name for name in inside
    )


def _find(shell: Shell, arguments: Sequence[str]) -> str:
    where = next((a for a in arguments[:1] if not a.startswith("-")), ".")
    name = next(
        (value for flag, value in pairwise(arguments) if flag == "-name"),
        "*",
    )
    inside = (path for path in shell.files if _inside(path, _relative(where)))
    return "\n".join(f"./{path}" for path in inside if fnmatchcase(path.split("/")[-1], name))


def _relative(path: str) -> str:
    return re.sub(r"^(/workspace(?=/|$)|\.(?=/|$))", "", path).strip("/")


def _inside(name: str, folder: str) -> bool:
    return not folder or name.startswith(f"{folder}/")


def _child(name: str, folder: str) -> str:
    return name.removeprefix(f"{folder}/" if folder else "").split("/")[0]


def _cat(shell: Shell, arguments: Sequence[str]) -> str:
    return "\n".join(_text(shell, a).rstrip("\n") for a in arguments if not a.startswith("-"))


def _text(shell: Shell, path: str) -> str:
    if path == HOST_REPORT:
        return host_report(shell.machine)
    if path == "/proc/meminfo":
        return meminfo(shell.machine)
    if path == "/etc/hostname":
        return shell.machine.host
    name = _relative(path)
    if name not in shell.files:
        raise Refused(f"cat: {path}: No such file or directory")
    return shell.files[name]


def _ends(shell: Shell, arguments: Sequence[str], kind: str) -> str:
    """head and tail of a file."""
    paths = [a for a in arguments if not re.fullmatch(r"-.*|\d+", a)]
    count = [a for a in arguments if a not in paths]
    return "\n".join(_FILTERS[kind](count, _cat(shell, paths).splitlines()))


def _grep(shell: Shell, arguments: Sequence[str]) -> str:
    pattern, places = _pattern(arguments)
    if places == [HOST_REPORT]:
        return "\n".join(
            line for line in host_report(shell.machine).splitlines() if pattern.search(line)
        )
    return "\n".join(found(shell.files, pattern, places))


def found(
    files: Mapping[str, str], pattern: re.Pattern[str], where: Sequence[str] = ()
) -> list[str]:
    """path:line:text of every match in the files at or below `where` (everywhere if empty)."""
    places = [_relative(place) for place in where]
    chosen = [n for n in files if not places or any(p == n or _inside(n, p) for p in places)]
    return [
        f"{name}:{number}:{line}"
        for name in chosen
        for number, line in enumerate(files[name].splitlines(), 1)
        if pattern.search(line)
    ]


_COMMANDS: Mapping[str, Callable[[Shell, Sequence[str]], str]] = {
    "ls": _ls,
    "find": _find,
    "cat": _cat,
    "head": lambda shell, arguments: _ends(shell, arguments, "head"),
    "tail": lambda shell, arguments: _ends(shell, arguments, "tail"),
    "grep": _grep,
    "pwd": lambda shell, arguments: "/workspace",
    "cd": lambda shell, arguments: "",
    "echo": lambda shell, arguments: " ".join(arguments),
}
