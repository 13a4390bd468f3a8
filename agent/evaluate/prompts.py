"""The two prompts that are compared, with more or less conversation before."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from agent.messages import Assistant, Message, System, User
from agent.prompt import context_block, system_text

Prompt = Literal["ours", "naive"]
TOKENS_PER_EXCHANGE = 100

NAIVE = """You are a helpful AI assistant. You have access to tools. Current time: {now}.
Use the tools when they are needed to help the user."""

SUBJECTS = ("tea", "bridges", "swallows", "salt", "clouds", "paper", "violins", "maps")
QUESTION = "Tell me something about {subject}, part {part}."
ANSWER = (
    "Here is part {part} about {subject}. People have known {subject} for a very long time, and "
    "in most countries there is a word, a song and at least one museum for it. What is made "
    "well lasts, what is made quickly is soon forgotten, and {subject} is no exception. Those "
    "who look closely will find more than they expected, and those in a hurry will find that "
    "there is always another day for it."
)


def opening_messages(
    prompt: Prompt, ask: str, now: datetime, zone: str, said_before: int
) -> list[Message]:
    """The messages when the task is asked, after about `said_before` tokens of conversation."""
    talk = list(small_talk(said_before))
    if prompt == "naive":
        system = NAIVE.format(now=now.isoformat(timespec="seconds"))
        return [System(system), *talk, User(ask)]
    return [System(system_text()), *talk, User(context_block(now, zone) + ask)]


def small_talk(tokens: int) -> Iterator[Message]:
    """The same exchanges each time, which have nothing to do with the task."""
    for number in range(tokens // TOKENS_PER_EXCHANGE):
        subject = SUBJECTS[number % len(SUBJECTS)]
        yield User(QUESTION.format(subject=subject, part=number))
        yield Assistant(ANSWER.format(subject=subject, part=number))
