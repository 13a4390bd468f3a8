"""The two prompts that are compared, with more or less said before."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from agent.messages import Assistant, Message, System, User
from agent.prompt import ContextBlock, render_message, system_text

Prompt = Literal["ours", "naive"]
TOKENS_PER_EXCHANGE = 100

NAIVE = """You are a helpful AI assistant. You have access to tools. Current time: {now}.
Use the tools when they are needed to help the user."""

_SUBJECTS = ("tea", "bridges", "swallows", "salt", "clouds", "paper", "violins", "maps")
_ASKED = "Tell me something about {subject}, part {part}."
_TOLD = (
    "Here is part {part} about {subject}. People have known {subject} for a very long time, and "
    "in most countries there is a word, a song and at least one museum for it. What is made "
    "well lasts, what is made quickly is soon forgotten, and {subject} is no exception. Those "
    "who look closely will find more than they expected, and those in a hurry will find that "
    "there is always another day for it."
)


def opening(prompt: Prompt, ask: str, now: datetime, zone: str, said_before: int) -> list[Message]:
    """The transcript when the task is asked; `said_before` is in tokens, about."""
    talk = list(_talk(said_before))
    if prompt == "naive":
        system = NAIVE.format(now=now.isoformat(timespec="seconds"))
        return [System(system), *talk, User(ask)]
    return [System(system_text()), *talk, User(render_message(ask, ContextBlock(now, zone)))]


def _talk(tokens: int) -> Iterator[Message]:
    """Exchanges about nothing that matters, the same each time."""
    for number in range(tokens // TOKENS_PER_EXCHANGE):
        subject = _SUBJECTS[number % len(_SUBJECTS)]
        yield User(_ASKED.format(subject=subject, part=number))
        yield Assistant(_TOLD.format(subject=subject, part=number))
