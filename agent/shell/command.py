"""A typed async function becomes a command: its name, docstring and signature are its usage."""

import inspect
import posixpath
from argparse import SUPPRESS, ArgumentParser, HelpFormatter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NoReturn,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from agent.errors import UsageError
from agent.tools.context import ToolContext
from agent.tools.tool import Call

if TYPE_CHECKING:
    from agent.shell.broker import Broker, ClientStreams

WIDTH = 400  # of a usage line, so that it is one
HELP = ("--help", "-h")
PLAIN = "\0"  # marks an argument that is not an option; no argument can hold a NUL


class HelpAsked(Exception):
    """A command was asked for its help: `str(error)` is the help."""


@dataclass(frozen=True, slots=True)
class ShellCall:
    """One command of a bash call; agent/shell/__init__.py lists what it offers."""

    within: Call
    folder: str
    streams: "ClientStreams" = field(repr=False)
    questions: "Broker" = field(repr=False)

    @property
    def context(self) -> ToolContext:
        return self.within.context

    @property
    def chat(self) -> str:
        return self.within.chat

    @property
    def turn(self) -> str:
        return self.within.turn

    def path(self, path: str) -> str:
        """Resolve a path of the command's arguments against its folder, for agent.sandbox.files."""
        return posixpath.join(self.folder, path)

    async def write(self, text: str | bytes) -> None:
        await self.streams.write("O", encoded(text))

    async def warn(self, text: str | bytes) -> None:
        await self.streams.write("E", encoded(text))

    async def read(self) -> bytes:
        return await self.streams.read()

    async def approve(self, what: str, *, scope: str) -> None:
        """Return when nobody has to be asked or an owner has allowed `what`; ToolError with the reason when
        not. `scope` is an act of agent.trust.ACTS."""
        await self.questions.approve(what, scope)

    async def stranger(self, source: str) -> None:
        """Record that text of strangers, from `source`, follows; to be awaited before it is written."""
        await self.questions.stranger(source)

    async def extract(self, question: str, text: str) -> str:
        """Answer a question from a text of strangers, as Call.extract does."""
        with self.questions.waiting():
            return await self.within.extract(question, text)

    async def leaves(self, where: str, text: str) -> None:
        """Check a text before it leaves the machine; ToolError where it holds a secret."""
        with self.questions.waiting():
            await self.within.leaves(where, text)

    async def reserve(self, amounts: Mapping[str, int], *, host: str = "") -> None:
        """Count against the chat's daily budgets (agent.budgets); an owner may be asked."""
        with self.questions.waiting():
            await self.within.budget.reserve(amounts, host=host)


def encoded(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")


Function = Callable[..., Awaitable[None]]
Lines = Callable[[ToolContext], Sequence[str]]
"""The lines of a command in /commands.txt, for a chat."""


def no_lines(_context: ToolContext) -> Sequence[str]:
    """List no line for a command that the line of another one names."""
    return ()


class UsageParser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


@dataclass(frozen=True)
class ShellCommand:
    """A function as a command. `name` is what is typed: the program, and the subcommand if there is one. `raw`: the
    function gets the words as they were typed, including options and --help."""

    function: Function
    name: str
    help: str
    lines_of: Lines | None = None
    raw: bool = False

    @cached_property
    def parser(self) -> UsageParser:
        parser = UsageParser(
            prog=self.name,
            description=inspect.getdoc(self.function),
            add_help=False,
            allow_abbrev=False,
            formatter_class=partial(HelpFormatter, width=WIDTH, max_help_position=30),
        )
        hints = get_type_hints(self.function, include_extras=True)
        for parameter in list(inspect.signature(self.function).parameters.values())[1:]:
            add_argument(parser, parameter, hints[parameter.name])
        return parser

    @property
    def usage(self) -> str:
        if self.raw:
            return f"{self.name} --help"
        return self.parser.format_usage().removeprefix("usage: ").strip()

    def lines(self, context: ToolContext) -> Sequence[str]:
        if self.lines_of:
            return self.lines_of(context)
        return [f"{self.usage}  {self.help}"]

    def check(self, words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
        """The function's arguments. UsageError where they are wrong, HelpAsked where help is asked for."""
        if self.raw:
            return [*words], {}
        end = words.index("--") if "--" in words else len(words)
        if any(word in HELP for word in words[:end]):
            raise HelpAsked(self.parser.format_help())
        # argparse drops "--" before it parses what follows, so that is marked (PLAIN) instead.
        marked = [*words[:end], *(PLAIN + word for word in words[end + 1 :])]
        given = vars(self.parser.parse_intermixed_args(marked))
        positional: list[Any] = []
        options: dict[str, Any] = {}
        for parameter in list(inspect.signature(self.function).parameters.values())[1:]:
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += given[parameter.name]
            elif parameter.name not in given:
                continue
            elif parameter.kind is parameter.KEYWORD_ONLY:
                options[parameter.name] = given[parameter.name]
            else:
                positional.append(given[parameter.name])
        return positional, options


def plain(word: str) -> str:
    return word.removeprefix(PLAIN)


def number(word: str) -> int:
    return int(plain(word))


def add_argument(parser: UsageParser, parameter: inspect.Parameter, hint: Any) -> None:
    kind, help = hint, ""
    if get_origin(kind) is Annotated:
        kind, help = get_args(hint)[:2]
    if get_origin(kind) in (Union, UnionType):  # or None
        kind = next(each for each in get_args(kind) if each is not NoneType)
    name = parameter.name.strip("_").replace("_", "-")
    options: dict[str, Any] = {"help": help, "default": SUPPRESS}
    if kind is bool:
        options["action"] = "store_true"
    else:
        options["metavar"] = name.upper()
        options["type"] = number if kind is int else plain
    if get_origin(kind) is Literal:
        choices = [each for each in get_args(kind) if each]
        options |= {"choices": choices, "metavar": "|".join(choices)}
    if get_origin(kind) is list:
        options["action"] = "append"
    if parameter.kind is parameter.KEYWORD_ONLY:
        required = parameter.default is parameter.empty
        parser.add_argument(f"--{name}", dest=parameter.name, required=required, **options)
        return
    if parameter.kind is parameter.VAR_POSITIONAL:
        options |= {"nargs": "*", "default": []}
    elif parameter.default is not parameter.empty:
        options |= {"nargs": "?", "default": parameter.default}
    parser.add_argument(parameter.name, **options)


@overload
def command(function: Function) -> ShellCommand: ...


@overload
def command(*, lines: Lines, raw: bool = False) -> Callable[[Function], ShellCommand]: ...


def command(
    function: Function | None = None, *, lines: Lines | None = None, raw: bool = False
) -> ShellCommand | Callable[[Function], ShellCommand]:
    """Make a command of a typed async function; its file's name is its program's."""

    def made(function: Function) -> ShellCommand:
        program, own = function.__module__.rpartition(".")[2], function.__name__.strip("_")
        name = program if own == program else f"{program} {own.replace('_', '-')}"
        help = (inspect.getdoc(function) or "").partition("\n")[0]
        return ShellCommand(function, name, help, lines, raw)

    return made(function) if function else made


__all__ = ["HelpAsked", "ShellCall", "ShellCommand", "UsageError", "command", "no_lines"]
