"""The facts as a short text in Markdown: what goes out when there is no model, too."""

from collections.abc import Sequence
from datetime import date

from agent.summary.facts import Facts, Range

BARS = 31
TODO_LETTERS = 60
_BLOCKS = "▁▂▃▄▅▆▇█"


def card(repo: str, span: Range, facts: Facts) -> str:
    """Every number of it is git's."""
    head = [
        f"**{repo}**, {_plural(facts.commits, 'commit')} on {facts.branch} up to `{facts.head}`",
        span.note,
        "This clone is shallow: what lies before its edge is not counted." if facts.shallow else "",
        _authors(facts),
        _days(facts),
    ]
    changes = "\n".join([_changes(facts), *_folders(facts)])
    more = "\n".join(filter(None, [_grew(facts), _todos(facts), _refs(facts)]))
    return "\n\n".join(filter(None, ["\n".join(filter(None, head)), changes, more]))


def _authors(facts: Facts) -> str:
    named = [f"{name} ({count:,})" for name, count in list(facts.by_author.items())[:6]]
    more = facts.authors - len(named)
    tail = f" and {more:,} more" if more > 0 else ""
    merges = f"; {_plural(facts.merges, 'merge')}" if facts.merges else ""
    return f"By {', '.join(named)}{tail}{merges}" if named else ""


def _days(facts: Facts) -> str:
    """A small chart: commits by day from the first to the last, or by several days where they are many."""
    days = {date.fromisoformat(day): count for day, count in facts.by_day.items()}
    if len(days) < 2:
        return ""
    first, last = min(days), max(days)
    step = -(-((last - first).days + 1) // BARS)
    bars = [0] * (((last - first).days) // step + 1)
    for day, count in days.items():
        bars[(day - first).days // step] += count
    every = "a day" if step == 1 else f"in {step} days"
    return f"`{_chart(bars)}` commits {every}, {first:%d %b} to {last:%d %b}"


def _chart(bars: Sequence[int]) -> str:
    most = max(bars)
    return "".join(" " if not n else _BLOCKS[-(-n * len(_BLOCKS) // most) - 1] for n in bars)


def _changes(facts: Facts) -> str:
    if not facts.files:
        return "No file differs between the two ends."
    extra = [f"{facts.tests:,} of them tests" if facts.tests else "no tests"]
    extra += [f"{facts.renamed:,} renamed"] if facts.renamed else []
    files = f"{_plural(facts.files, 'file')} changed ({', '.join(extra)})"
    return f"{files}, {_lines(facts.added, facts.removed)} lines"


def _folders(facts: Facts) -> list[str]:
    return [
        f"- {_name(folder.name)}: {_plural(folder.files, 'file')}, {_lines(folder.added, folder.removed)}"
        for folder in facts.folders[:5]
    ]


def _name(folder: str) -> str:
    return "top level" if folder == "./" else f"`{folder}`"


def _lines(added: int, removed: int) -> str:
    return f"+{added:,} −{removed:,}"


def _grew(facts: Facts) -> str:
    named = [f"`{path}` +{lines:,}" for path, lines in list(facts.grew.items())[:3]]
    return f"Grew most: {', '.join(named)}" if named else ""


def _todos(facts: Facts) -> str:
    if not facts.todos:
        return ""
    path, line = facts.todo[0]
    shown = line.replace("`", "'")
    shown = shown if len(shown) <= TODO_LETTERS else f"{shown[: TODO_LETTERS - 1]}…"
    first = "such as " if facts.todos > 1 else ""
    return f"{_plural(facts.todos, 'TODO')} added, {first}`{shown}` in `{path}`"


def _refs(facts: Facts) -> str:
    tags = f"Tags: {', '.join(facts.tags)}" if facts.tags else ""
    own = (facts.branch, f"origin/{facts.branch}")
    moved = [name for name in facts.moved if name not in own]
    branches = f"Other branches that moved: {', '.join(moved)}" if moved else ""
    return "\n".join(filter(None, [tags, branches]))


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
