"""A repository of any number of commits, made at once by `git fast-import`, and what is true of it."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

AUTHORS = ("Ada Lovelace", "Grace Hopper", "Zoë Ångström", "Karen Jones", "李 雷")
FOLDERS = ("src", "docs", "tests", "tools/deep")
START = 1_700_000_000  # a commit every ten minutes from there


@dataclass
class Truth:
    """What is so by construction."""

    commits: int = 0
    by_author: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)  # of each file at the end
    todos: int = 0


def make(path: Path, commits: int) -> Truth:
    """Each commit adds lines to one of some hundred files; one in fifty adds a TODO."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(path)], check=True)
    truth = Truth()
    importing = subprocess.Popen(
        ["git", "-C", str(path), "fast-import", "--quiet"], stdin=subprocess.PIPE
    )
    assert importing.stdin
    with importing.stdin as stream:
        for part in _stream(commits, truth):
            stream.write(part)
    assert importing.wait() == 0
    return truth


def _stream(commits: int, truth: Truth) -> Iterator[bytes]:
    files: dict[str, str] = {}
    for number in range(commits):
        author = AUTHORS[number * number % len(AUTHORS)]
        name = f"{FOLDERS[number % len(FOLDERS)]}/f{number % 97}.txt"
        # A file begins anew when it is long, so that the stream does not grow with the square.
        before = files.get(name, "") if files.get(name, "").count("\n") < 40 else ""
        files[name] = before + (f"TODO: {number}\n" if number % 50 == 0 else f"line {number}\n")
        truth.commits += 1
        truth.by_author[author] += 1
        yield _commit(number, author, name, files[name])
    for name, text in files.items():
        truth.lines[name] = text.count("\n")
        truth.todos += text.count("TODO")


def _commit(number: int, author: str, name: str, text: str) -> bytes:
    who = f"{author} <a@example.org> {START + number * 600} +0000"
    message, content = f"Change {number} of {name}".encode(), text.encode()
    return (
        f"commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata {len(message)}\n".encode()
        + message
        + f"\nM 100644 inline {name}\ndata {len(content)}\n".encode()
        + content
        + b"\n"
    )
