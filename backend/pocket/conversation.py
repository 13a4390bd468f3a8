"""Whole conversations: exchanges of all families behind one prefix."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from backend.pocket.dialogue import NO_TOOL, Answer, Call, Exchange, Message, Result, User, World
from backend.pocket.noise import reworded, spoken
from backend.pocket.prefix import Prefix
from backend.pocket.sentences import fact, line
from backend.pocket.wishes import chains, files, git, machine, manage, memory, sequels, sums, talk
from backend.pocket.words import number, person

Family = Callable[[World], Exchange]

FAMILIES: dict[Family, float] = {
    machine.reading: 18,
    machine.command: 3,
    machine.host_file: 6,
    sums.sums: 23,
    files.listing: 10,
    files.reading: 10,
    files.key: 5,
    files.writing: 16,
    files.append: 4,
    files.editing: 18,
    files.set_key: 5,
    files.search: 14,
    files.sending: 4,
    files.unclear: 0.7,
    files.attached: 1.2,
    manage.manage: 3,
    git.status: 5,
    git.diff: 4.5,
    git.commit: 7,
    memory.remember: 6,
    memory.recall: 15,
    memory.noted: 0.7,
    memory.shown: 2.5,
    memory.remind: 7,
    memory.summary: 9,
    memory.task: 2.5,
    talk.small: 12,
    talk.beyond: 30,
    sequels.about_file: 7,
    sequels.about_repo: 6,
    sequels.about_machine: 3,
    chains.then_read: 1,
    chains.then_send: 0.7,
    chains.list_read: 1,
    chains.edit_diff: 0.8,
    chains.status_commit: 0.8,
    chains.find_read: 0.8,
    chains.two_readings: 1,
    chains.second_path: 7,
    chains.second_edit: 5,
    chains.no_repo: 5,
    chains.second_command: 4,
    chains.second_time: 2,
    chains.failure: 4,
    chains.echo: 3,
}
ZONES = (
    "Europe/Paris",
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Tokyo",
    "Europe/London",
    "Australia/Sydney",
)


@dataclass(frozen=True, slots=True)
class Conversation:
    messages: tuple[Message, ...]


def conversation(
    random: Random, prefix: Prefix, exchanges: int, drills: float = 0.0, context: float = 0.88
) -> Conversation:
    """`exchanges` wishes in a row; a share of `drills` is pure copying, a share has context blocks."""
    world = World(random)
    tail = Tail(random, context)
    messages: list[Message] = []
    for _ in range(exchanges):
        family = (
            chains.echo
            if random.random() < drills
            else random.choices(tuple(FAMILIES), tuple(FAMILIES.values()))[0]
        )
        messages += _exchange(family, world, prefix, tail)
    return Conversation(tuple(messages))


def exchange(random: Random, family: Family, prefix: Prefix) -> Exchange:
    """One exchange of a family, as a conversation may begin."""
    return _exchange(family, World(random), prefix, Tail(random, 0.88 if prefix.text else 0.0))


def _exchange(family: Family, world: World, prefix: Prefix, tail: "Tail") -> Exchange:
    first, *rest = family(world)
    assert isinstance(first, User)
    missing = [m for m in rest if isinstance(m, Call) and m.name not in prefix.names()]
    if missing:
        rest = [Answer(NO_TOOL)]
    kept = _kept(first.words, rest)
    words = spoken(reworded(first.words, world.random, kept), world.random, kept)
    return [User(tail.before(words, first)), *(_cut(m, world.random) for m in rest)]


def _kept(words: str, rest: Exchange) -> list[str]:
    """What calls and answers copy from the words."""
    arguments = [
        v
        for m in rest
        if isinstance(m, Call)
        for v in m.arguments.values()
        if isinstance(v, str) and len(v) > 1
    ]
    return arguments + [m.text for m in rest if isinstance(m, Answer) and m.text in words]


def _cut(message: Message, random: Random) -> Message:
    """Now and then a result carries the note that some of it was cut."""
    if isinstance(message, Result) and message.text.count("\n") > 7 and random.random() < 0.3:
        return Result(
            f"{message.text}\n[{number(random)} lines cut; whole output in /workspace/.voltaire/out/{number(random)}.txt]"
        )
    return message


class Tail:
    """The context block before a person's words: the time moves on, the rest comes and goes."""

    def __init__(self, random: Random, share: float) -> None:
        self.random = random
        self.day, self.hour, self.minute = (
            random.randint(1, 28),
            random.randint(0, 23),
            random.randint(0, 59),
        )
        self.month, self.zone = random.randint(1, 12), random.choice(ZONES)
        self.given = random.random() < share
        self.sender = person(random) if random.random() < 0.25 else ""

    def before(self, words: str, user: User) -> str:
        if not self.given and not user.notes and not user.files:
            return words
        self.minute = min(59, self.minute + self.random.randint(0, 3))
        return "\n".join(("<context>", *self._lines(user), "</context>", words))

    def _lines(self, user: User) -> list[str]:
        random = self.random
        weekday = random.choice("Mon Tue Wed Thu Fri Sat Sun".split())
        lines = [
            f"now: {weekday} 2026-{self.month:02}-{self.day:02} {self.hour:02}:{self.minute:02} {self.zone}"
        ]
        if self.sender:
            lines.append(f"from: {self.sender}")
        notes = user.notes or [
            fact(random) for _ in range(random.randint(1, 4) if random.random() < 0.04 else 0)
        ]
        if notes:
            lines.append("notes:")
            lines += [
                f"- {note} (2026-{random.randint(1, 12):02}-{random.randint(1, 28):02})"
                for note in notes
            ]
        if random.random() < 0.03:
            lines.append(f"reply to: {line(random)}")
        lines += [f"file: {file}" for file in user.files]
        return lines
