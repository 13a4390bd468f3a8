"""The prompts that are compared: ours, a naive one, and ours with one thing changed.

ours       as every conversation has it: what the shell can do besides stands in /commands.txt
naive      two sentences, the time in the system text
no-plan    ours, without the command `plan`
use-plan   ours, told in the system text to begin long work with `plan set`
examples   ours, with two worked examples in the system text
listed     the commands of the shell as tools of their own, with schemas in every prompt
"""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import Field

from agent.errors import ToolError, UsageError
from agent.messages import Assistant, Message, System, User
from agent.prompt import context_block, system_text
from agent.sandbox.bubblewrap import WORKSPACE
from agent.shell import registry
from agent.shell.broker import Broker
from agent.shell.command import ShellCall, ShellCommand
from agent.shell.registry import SKILLS
from agent.tools.tool import Call, Output, Tool

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


LEFT_OUT = "json_"  # for pipes, which tools do not have
CUT = "[{size} bytes in all; the rest was left out. Ask for a part of it.]"


@cache
def listed_tools() -> tuple[Tool, ...]:
    """A tool for each command of each program, except commands that take raw words."""
    return tuple(
        tool_of(command)
        for program in registry.names()
        for command in registry.commands(program).values()
        if not command.raw
    )


def tool_of(command: ShellCommand) -> Tool:
    hints = get_type_hints(command.function, include_extras=True)
    fields: dict[str, tuple[Any, Any]] = {}
    python: dict[str, str] = {}  # the function's names, by the tool's
    several = ""
    for parameter in list(inspect.signature(command.function).parameters.values())[1:]:
        if parameter.name == LEFT_OUT:
            continue
        kind, about = hints[parameter.name], ""
        if get_origin(kind) is Annotated:
            kind, about = get_args(kind)[:2]
        name = parameter.name.strip("_")
        if parameter.kind is parameter.VAR_POSITIONAL:
            several, kind = name, list[kind]  # type: ignore[valid-type]
        described = Annotated[kind, Field(description=about)] if about else kind
        wanted = parameter.default is parameter.empty
        fields[name] = described, ... if wanted else parameter.default
        python[name] = parameter.name

    async def run(call: Call, **given: Any) -> Output:
        words = given.pop(several, [])
        streams = GatheredStreams(call.output_limit)
        shell = ShellCall(call, WORKSPACE, streams, Broker(call))
        try:
            await command.function(shell, *words, **{python[name]: v for name, v in given.items()})
        except UsageError as error:
            raise ToolError(f"{error}. {tool.signature}") from None
        return Output(streams.text())

    tool = Tool(run, command.name.replace(" ", "_").replace("-", "_"), command.help, fields)
    return tool


@dataclass
class GatheredStreams:
    """agent.shell.command.Streams that collect the output for a tool; there is no standard input."""

    most: int  # bytes
    _written: bytearray = field(default_factory=bytearray)

    async def write(self, kind: Literal["O", "E"], content: bytes) -> None:
        self._written += content

    async def read(self) -> bytes:
        return b""

    def text(self) -> str:
        """Whole lines, as many as fit."""
        if len(self._written) <= self.most:
            return self._written.decode("utf-8", "replace").rstrip("\n") or "(no output)"
        kept = self._written[: self.most].rpartition(b"\n")[0]
        return f"{kept.decode('utf-8', 'replace')}\n{CUT.format(size=len(self._written))}"
