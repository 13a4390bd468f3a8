"""What came of it all, counted in the chats and in the database."""

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench.campaign.people import Jobs, Talker, Terminal, copies

Memory = Mapping[str, float | None]


@dataclass(frozen=True)
class Count:
    """Of the messages and reminders. `wrong` names each that was lost or doubled."""

    sent: int
    answered: int
    lost: int
    doubled: int
    wrong: tuple[str, ...]


def messages(talkers: Sequence[Talker]) -> Count:
    """A button that was pressed may bring one more copy: the person asked for it."""
    sent = sum(len(talker.said) for talker in talkers)
    counts = {f"{t.name}: {m.text!r} ({m.id})": t.count(m) for t in talkers for m in t.said}
    more = {
        talker.name: sum(max(0, talker.count(said) - 1) for said in talker.said)
        - talker.reader.pressed
        for talker in talkers
    }
    doubled = {name: extra for name, extra in more.items() if extra > 0}
    lost = [f"{name}: no answer" for name, count in counts.items() if not count]
    wrong = (*lost, *(f"{name}: {extra} more than asked" for name, extra in doubled.items()))
    return Count(sent, sent - len(lost), len(lost), sum(doubled.values()), wrong)


def reminders(jobs: Jobs) -> Count:
    found = {word: (talker, copies(talker, word)) for talker, word in jobs.made}
    lost = [f"{talker.name}: {word} never came" for word, (talker, n) in found.items() if not n]
    twice = {word: n - 1 for word, (talker, n) in found.items() if n - 1 > talker.reader.pressed}
    wrong = (*lost, *(f"{word} came {extra + 1} times" for word, extra in twice.items()))
    return Count(len(found), len(found) - len(lost), len(lost), sum(twice.values()), wrong)


@dataclass(frozen=True)
class Books:
    """What the database says at the end. `unsettled` are sentences on texts that were never sent, or are in doubt
    and nobody was told."""

    reasons: Counter[str]
    uncertain: int
    unsettled: Sequence[str]
    asked_twice: Sequence[str]


def books(database: Path) -> Books:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as found:
        turns = found.execute("SELECT reason, count(*) FROM turns GROUP BY reason")
        reasons = Counter({reason or "open": count for reason, count in turns})
        states = Counter(dict(found.execute("SELECT state, count(*) FROM outbox GROUP BY state")))
        rows = found.execute(
            "SELECT chat, id, state, attempts, error FROM outbox"
            " WHERE state IN ('waiting', 'sending') OR state = 'uncertain' AND notice_id = ''"
        ).fetchall()
        twice = found.execute(
            "SELECT words FROM inbox WHERE source = 'cli' GROUP BY words HAVING count(*) > 1"
        ).fetchall()
    unsettled = [
        f"{chat}: text {id} is {state}, attempts {attempts}, last error {error!r}"
        for chat, id, state, attempts, error in rows
    ]
    asked_twice = [f"{words} was asked twice" for (words,) in twice]
    return Books(reasons, states["uncertain"], unsettled, asked_twice)


@dataclass(frozen=True)
class Outcome:
    """Of a whole campaign; times in seconds, memory in MiB by process."""

    seconds: float
    injected: Counter[str]
    skipped: Mapping[str, str]
    messages: Count
    reminders: Count
    terminal: Terminal
    notices: int
    pressed: int
    books: Books
    silence: float
    lives: Mapping[str, int]
    start: Memory
    end: Memory
    left: Sequence[str]

    @property
    def wrong(self) -> list[str]:
        left = (f"left running: {line}" for line in self.left)
        books = self.books
        told = [*self.messages.wrong, *self.reminders.wrong, *self.terminal.wrong]
        return [*told, *books.unsettled, *books.asked_twice, *left]

    def text(self) -> str:
        """One table."""
        rows = [*self._faults(), ("", ""), *self._people(), ("", ""), *self._processes()]
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {value}".rstrip() for name, value in rows]
        return "\n".join([*lines, *(f"WRONG: {line}" for line in self.wrong)])

    def _faults(self) -> list[tuple[str, str]]:
        rows = [(name, str(count)) for name, count in sorted(self.injected.items())]
        skipped = [(name, f"not here: {why}") for name, why in self.skipped.items()]
        return [("faults injected", str(self.injected.total())), *rows, *skipped]

    def _people(self) -> list[tuple[str, str]]:
        said, rang, asked = self.messages, self.reminders, self.terminal
        failed = {k: n for k, n in self.books.reasons.items() if k not in ("done", "")}
        told = ", ".join(f"{count} {reason}" for reason, count in failed.items())
        return [
            ("messages sent", str(said.sent)),
            ("answered", f"{said.answered}" + (f" (turns that ended otherwise: {told})" if told else "")),
            ("lost", str(said.lost)),
            ("doubled", str(said.doubled)),
            ("reminders, sent texts, triggers", str(rang.sent)),
            ("of these lost, doubled", f"{rang.lost}, {rang.doubled}"),
            ("asked in the terminal", f"{asked.asked}: {asked.answered} answered, {asked.killed} killed, {asked.refused} refused with a sentence"),
            ("uncertain and told", f"{self.notices}, button pressed {self.pressed} times"),
            ("longest silence", f"{self.silence:.1f} s"),
        ]  # fmt: skip

    def _processes(self) -> list[tuple[str, str]]:
        lives = [(f"{name} started", f"{count} times") for name, count in self.lives.items()]
        memory = [
            (f"memory of {name}, start and end", f"{_mib(self.start[name])}, {_mib(self.end[name])}")
            for name in self.start
        ]  # fmt: skip
        return [*lives, *memory, ("processes left over", str(len(self.left)))]


def _mib(amount: float | None) -> str:
    return "?" if amount is None else f"{amount:.1f} MiB"
