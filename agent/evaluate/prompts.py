"""The prompts that are compared: ours, a naive one, and ours with one thing changed.

ours       as every conversation has it: what the shell can do besides stands in /commands.txt
naive      two sentences, the time in the system text
no-plan    ours, without the command `plan`
use-plan   ours, told in the system text to begin long work with `plan set`
examples   ours, with two worked examples in the system text
listed     the commands of the shell as tools of their own, with schemas in every prompt
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Literal, get_args

from agent.messages import Assistant, Message, System, User
from agent.prompt import context_block, system_text
from agent.shell.registry import SKILLS

Prompt = Literal["ours", "naive", "no-plan", "use-plan", "examples", "listed"]
PROMPTS: tuple[Prompt, ...] = get_args(Prompt)
TOKENS_PER_EXCHANGE = 100

NAIVE = """You are a helpful AI assistant. You have access to tools. Current time: {now}.
Use the tools when they are needed to help the user."""

USE_PLAN = """Plan
- Begin work of more than three steps with: plan set "STEP" "STEP" ... in bash. After each step: plan done NUMBER. The person sees it."""

OF_COMMANDS = " When you lack a way to do something: bash, cat /commands.txt."

SUBJECTS = ("tea", "bridges", "swallows", "salt", "clouds", "paper", "violins", "maps")
QUESTION = "Tell me something about {subject}, part {part}."
ANSWER = (
    "Here is part {part} about {subject}. People have known {subject} for a very long time, and "
    "in most countries there is a word, a song and at least one museum for it. What is made "
    "well lasts, what is made quickly is soon forgotten, and {subject} is no exception. Those "
    "who look closely will find more than they expected, and those in a hurry will find that "
    "there is always another day for it."
)


def system_of(prompt: Prompt, now: datetime, skills: Sequence[tuple[str, str]] = ()) -> str:
    """The system text; `skills` (names and descriptions) stand in it where no command lists them."""
    match prompt:
        case "naive":
            return NAIVE.format(now=now.isoformat(timespec="seconds"))
        case "use-plan":
            return f"{system_text()}\n\n{USE_PLAN}"
        case "examples":
            examples = files("agent.evaluate").joinpath("examples.txt").read_text("utf-8")
            return f"{system_text()}\n\n{examples.strip()}"
        case "listed":
            text = system_text().replace(OF_COMMANDS, "")
            told = [f"{name}  {description}" for name, description in skills]
            return "\n".join([text, *(["", SKILLS, *told] if told else [])])
    return system_text()


def opening_messages(
    prompt: Prompt,
    ask: str,
    now: datetime,
    zone: str,
    said_before: int,
    skills: Sequence[tuple[str, str]] = (),
) -> list[Message]:
    """The messages when the task is asked, after about `said_before` tokens of conversation."""
    talk = list(small_talk(said_before))
    asked = ask if prompt == "naive" else context_block(now, zone) + ask
    return [System(system_of(prompt, now, skills)), *talk, User(asked)]


def small_talk(tokens: int) -> Iterator[Message]:
    """The same exchanges each time, which have nothing to do with the task."""
    for number in range(tokens // TOKENS_PER_EXCHANGE):
        subject = SUBJECTS[number % len(SUBJECTS)]
        yield User(QUESTION.format(subject=subject, part=number))
        yield Assistant(ANSWER.format(subject=subject, part=number))
