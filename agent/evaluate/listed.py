"""Commands of the shell as tools of their own, as other agents offer such abilities: the same functions, with their
schemas in every prompt, so that only the form is compared."""

import inspect
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import Field

from agent.errors import ToolError, UsageError
from agent.sandbox.bubblewrap import WORKSPACE
from agent.shell import registry
from agent.shell.broker import Broker
from agent.shell.command import ShellCall, ShellCommand
from agent.tools.tool import Call, Output, Tool

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
