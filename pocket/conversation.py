"""Whole conversations: exchanges of all families behind one prefix."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from pocket.context import Tail
from pocket.dialogue import BEYOND, NO_TOOL, Answer, Call, Exchange, Message, Result, User, World
from pocket.noise import reworded, spoken, unquoted
from pocket.prefix import Prefix
from pocket.wishes import chains, files, git, machine, manage, memory, sequels, sums, talk
from pocket.words import number

Family = Callable[[World], Exchange]

FAMILIES: dict[Family, float] = {
    machine.reading: 16,
    machine.command: 3,
    machine.host_file: 5,
    sums.sums: 26,
    files.listing: 10,
    files.reading: 10,
    files.key: 5,
    files.writing: 16,
    files.append: 4,
    files.editing: 18,
    files.set_key: 5,
    files.search: 15,
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
    memory.shown: 1.5,
    memory.remind: 7,
    memory.summary: 9,
    memory.task: 2.5,
    talk.small: 15,
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
    chains.second_command: 3,
    chains.second_time: 2,
    chains.failure: 4,
    chains.echo: 3,
}
MISTAKES = 0.12  # of the exchanges before the last


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
    for to_come in reversed(range(exchanges)):
        if to_come and random.random() < MISTAKES:
            messages += _mistaken(random, prefix, tail)
            continue
        family = chains.echo if random.random() < drills else _family(random)
        messages += _exchange(family, world, prefix, tail)
    return Conversation(tuple(messages))


def _family(random: Random) -> Family:
    return random.choices(tuple(FAMILIES), tuple(FAMILIES.values()))[0]


def _mistaken(random: Random, prefix: Prefix, tail: Tail) -> Exchange:
    """A wish that is not served as it should: one mistake must not make the model repeat it."""
    wish, *right = _exchange(_family(random), World(random), prefix, tail)
    _, *others = _exchange(_family(random), World(random), prefix, tail)
    wrong = random.choice(
        (others, others, _endless(right, random), [Answer(NO_TOOL)], [Answer(BEYOND)])
    )
    return [
        wish,
        *(replace(m, learned=False) if isinstance(m, Call | Answer) else m for m in wrong),
    ]


def _endless(messages: Exchange, random: Random) -> Exchange:
    """The same, but the last answer repeats a piece of itself until it is cut off."""
    *before, last = messages
    assert isinstance(last, Answer)
    words = last.text.split(" ")
    end = random.randint(1, len(words))
    again = words[max(0, end - random.randint(1, 3)) : end] * random.randint(2, 40)
    return [*before, Answer(" ".join((*words[:end], *again)))]


def exchange(random: Random, family: Family, prefix: Prefix) -> Exchange:
    """One exchange of a family, as a conversation may begin."""
    return _exchange(family, World(random), prefix, Tail(random, 0.88 if prefix.text else 0.0))


def _exchange(family: Family, world: World, prefix: Prefix, tail: Tail) -> Exchange:
    first, *rest = family(world)
    assert isinstance(first, User)
    missing = [m for m in rest if isinstance(m, Call) and m.name not in prefix.names()]
    if missing:
        rest = [Answer(NO_TOOL)]
    kept = _kept(first.words, rest)
    words = reworded(unquoted(first.words, world.random, kept), world.random, kept)
    words = spoken(words, world.random, kept)
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
