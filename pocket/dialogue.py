"""Messages of an invented conversation, and what is known in it so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from pocket.grammar import expand

Value = str | int | list[str]

BEYOND = (
    "I am only a demonstration model, and this is beyond me. For real work, give me a real model."
)
NO_TOOL = "I have no tool for that here."


@dataclass(frozen=True, slots=True)
class User:
    """A person's words; `notes` and `files` are lines of the context block before them."""

    words: str
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: Mapping[str, Value]
    learned: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    learned: bool = True


# What is not `learned` is a mistake that stands in the conversation.
Message = User | Call | Result | Answer
Exchange = list[Message]


PLAIN = 8  # that many of the wordings, the first, are the plainest


@dataclass(slots=True)
class World:
    """What one conversation has seen: the last file, its lines, the last repository, notes.

    `shown` are topics and notes from context blocks.
    """

    random: Random
    path: str = ""
    lines: list[str] = field(default_factory=list)
    repo: str = ""
    notes: list[str] = field(default_factory=list)
    shown: list[tuple[str, str]] = field(default_factory=list)

    def say(self, templates: Sequence[str], **slots: str) -> User:
        slots.setdefault("n", str(self.random.randint(1, 900)))
        templates = templates[:PLAIN] if self.chance(0.35) else templates
        return User(expand(self.random.choice(templates), self.random, slots))

    def chance(self, share: float) -> bool:
        return self.random.random() < share


def call(name: str, /, **arguments: Value) -> Call:
    return Call(name, arguments)


def shell(command: str) -> Call:
    return Call("bash", {"command": command})


def quote(text: str, shown: int = 8) -> str:
    """Tool output in an answer: one line as it is, more in a code block, the first `shown` of many."""
    lines = text.strip("\n").split("\n")
    if len(lines) == 1:
        return lines[0]
    cut = [*lines[:shown], "..."] if len(lines) > shown else lines
    return "\n".join(("```", *cut, "```"))
