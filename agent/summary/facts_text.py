"""The facts as a short text in Markdown; without a model it is the whole summary."""

from collections.abc import Sequence
from datetime import date

from agent.summary.commit_range import CommitRange
from agent.summary.git_facts import RepoFacts

MAX_BARS = 31
TODO_CHARACTERS = 60
BLOCKS = "▁▂▃▄▅▆▇█"


def facts_text(repo: str, span: CommitRange, facts: RepoFacts) -> str:
    """Every number in it is git's."""
    head = [
        f"**{repo}**, {plural(facts.commits, 'commit')} on {plain(facts.branch)} up to `{facts.head}`",
        span.note,
        "This clone is shallow: what lies before its edge is not counted." if facts.shallow else "",
        authors_line(facts),
        days_chart(facts),
    ]
    changes = "\n".join([changes_line(facts), *folder_lines(facts)])
    more = "\n".join(filter(None, [growth_line(facts), todos_line(facts), refs_lines(facts)]))
    return "\n\n".join(filter(None, ["\n".join(filter(None, head)), changes, more]))


def authors_line(facts: RepoFacts) -> str:
    named = [f"{plain(name)} ({count:,})" for name, count in list(facts.by_author.items())[:6]]
    more = facts.authors - len(named)
    tail = f" and {more:,} more" if more > 0 else ""
    merges = f"; {plural(facts.merges, 'merge')}" if facts.merges else ""
    return f"By {', '.join(named)}{tail}{merges}" if named else ""


def days_chart(facts: RepoFacts) -> str:
    """A small chart: commits by day from the first to the last, or by several days where they are many."""
    days = {date.fromisoformat(day): count for day, count in facts.by_day.items()}
    if len(days) < 2:
        return ""
    first, last = min(days), max(days)
    step = -(-((last - first).days + 1) // MAX_BARS)
    counts = [0] * (((last - first).days) // step + 1)
    for day, count in days.items():
        counts[(day - first).days // step] += count
    every = "a day" if step == 1 else f"in {step} days"
    return f"`{bars(counts)}` commits {every}, {first:%d %b} to {last:%d %b}"


def bars(counts: Sequence[int]) -> str:
    most = max(counts)
    return "".join(BLOCKS[-(-n * len(BLOCKS) // most) - 1] if n else " " for n in counts)


def changes_line(facts: RepoFacts) -> str:
    if not facts.files:
        return "No file differs between the two ends."
    extra = [f"{facts.tests:,} of them tests" if facts.tests else "no tests"]
    extra += [f"{facts.renamed:,} renamed"] if facts.renamed else []
    files = f"{plural(facts.files, 'file')} changed ({', '.join(extra)})"
    return f"{files}, {line_counts(facts.added, facts.removed)} lines"


def folder_lines(facts: RepoFacts) -> list[str]:
    return [
        f"- {folder_name(folder.name)}: {plural(folder.files, 'file')}, {line_counts(folder.added, folder.removed)}"
        for folder in facts.folders[:5]
    ]


def folder_name(folder: str) -> str:
    return "top level" if folder == "./" else code(folder)


def line_counts(added: int, removed: int) -> str:
    return f"+{added:,} −{removed:,}"


def growth_line(facts: RepoFacts) -> str:
    named = [f"{code(path)} +{lines:,}" for path, lines in list(facts.grew.items())[:3]]
    return f"Grew most: {', '.join(named)}" if named else ""


def todos_line(facts: RepoFacts) -> str:
    if not facts.todos:
        return ""
    path, line = facts.todo[0]
    shown = line if len(line) <= TODO_CHARACTERS else f"{line[: TODO_CHARACTERS - 1]}…"
    first = "such as " if facts.todos > 1 else ""
    return f"{plural(facts.todos, 'TODO')} added, {first}{code(shown)} in {code(path)}"


def refs_lines(facts: RepoFacts) -> str:
    tags = f"Tags: {', '.join(map(plain, facts.tags))}" if facts.tags else ""
    own = (facts.branch, f"origin/{facts.branch}")
    moved = [name for name in facts.moved if name not in own]
    branches = f"Other branches that moved: {', '.join(map(plain, moved))}" if moved else ""
    return "\n".join(filter(None, [tags, branches]))


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def plain(name: str) -> str:
    """A name that somebody else chose, without what Markdown would read as a mark."""
    return "".join(c for c in name if c not in "*`[]<>~|\\")


def code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`"
