import asyncio
import io
import itertools
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import pytest

from agent.approvals import Approvals, AskOwners
from agent.errors import ToolError
from agent.events import Event, TextDelta, TurnFinished
from agent.leaks import LeakDetector
from agent.model import Model
from agent.tools.context import ToolContext
from agent.tools.tool import Call, Output, Tool, tool
from agent.turn.loop import run_turn
from agent.turn.turn import Constrain, Turn, TurnLimits, at_once
from fakes.journal_memory import MemoryApprovals, MemoryJournal
from fakes.model_scripted import Line, ScriptedModel

OneKind = TypeVar("OneKind")


@dataclass
class Bench:
    """Tools that note what was done with them, and a turn over a journal in memory."""

    journal: MemoryJournal = field(default_factory=MemoryJournal)
    rows: MemoryApprovals = field(default_factory=MemoryApprovals)
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    limits: TurnLimits = field(default_factory=TurnLimits)
    constrain: Constrain = "never"
    ask: AskOwners | None = None
    approvals: Approvals | None = None
    ready: Any = at_once
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    leaks: LeakDetector = field(default_factory=LeakDetector)
    browser: Any = None
    files_there: frozenset[str] = frozenset()
    contents: dict[str, bytes] = field(default_factory=dict)
    refused: str = ""  # why nothing can be planned
    without: str = ""  # the name of a tool that is not there
    sends: bool = False  # whether files can be sent
    reads: bool = False
    began: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def constraint(self) -> Constrain:
        return self.constrain

    @property
    def files(self) -> "Bench":
        """In place of a sandbox's."""
        return self

    async def open(self, path: str) -> io.BytesIO:
        if path not in self.files_there and path not in self.contents:
            raise ToolError("There is no such file.")
        return io.BytesIO(self.contents.get(path, b"text"))

    def tools(self) -> list[Tool]:
        async def bash(call: Call, command: str, seconds: int = 120) -> Output:
            """Run a command."""
            self.ran.append(("bash", {"command": command}))
            if command == "fail":
                raise ToolError("exit code 1")
            if command in self.failures:
                raise ToolError(self.failures[command])
            if command == "bug":
                raise KeyError(command)
            if command == "wait":
                self.began.set()
                await self.release.wait()
            call.progress("half")
            if command == "curl":
                call.strangers.append("page http://example.org/")
            return Output(self.results.get(command, f"ran {command}"))

        async def remember(call: Call, note: str) -> Output:
            """Save a note."""
            self.ran.append(("remember", {"note": note}))
            return Output("saved")

        async def recall(call: Call, query: str) -> Output:
            """Search notes."""
            self.ran.append(("recall", {"query": query}))
            found = self.results.get("notes", "")
            return Output(found or f"Nothing was found about {query}.", found=bool(found))

        async def schedule(call: Call, when: str, task: str) -> Output:
            """Plan."""
            self.ran.append(("schedule", {"asked": call.asked}))
            if self.refused:
                raise ToolError(self.refused)
            return Output(f"Planned as job 1: {task}, {when}", shown=f"Reminder “{task}”, {when}")

        async def git_commit(call: Call, repo: str, message: str) -> Output:
            """Commit."""
            await call.approve(f"commit to {repo}: {message}", scope=f"commit:{repo}")
            self.ran.append(("git_commit", {"repo": repo}))
            return Output("committed")

        async def git_status(call: Call, repo: str) -> Output:
            """Status."""
            raise ToolError(f"There is no git repository at {repo}. There is none.")

        async def list_files(call: Call, pattern: str) -> Output:
            """List files."""
            self.ran.append(("list_files", {"pattern": pattern}))
            return Output(self.results["list"])

        async def grep(call: Call, pattern: str) -> Output:
            """Search in files."""
            self.ran.append(("grep", {"pattern": pattern}))
            return Output(self.results["list"])

        async def write_file(call: Call, path: str, content: str) -> Output:
            """Write."""
            self.ran.append(("write_file", {"path": path}))
            self.contents[path] = content.encode()
            return Output("written")

        async def read_file(call: Call, path: str, first: int = 1, last: int = 0) -> Output:
            """Read a file."""
            lines = (await self.open(path)).read().decode().splitlines()
            return Output("\n".join(lines[first - 1 : last or None]))

        async def send_file(call: Call, path: str) -> Output:
            """Send a file."""
            self.ran.append(("send_file", {"path": path}))
            return Output(f"sent {path}, 4 bytes")

        return [
            tool(one)
            for one in (
                *(write_file, bash, remember, recall),
                *(schedule, git_commit, git_status, list_files, grep),
                *((send_file,) if self.sends else ()),
                *((read_file,) if self.reads else ()),
            )
            if one.__name__ != self.without
        ]

    def turn(self, model: Model) -> Turn:
        tools = self.tools()
        numbers = itertools.count(1)
        return Turn(
            model=model,
            journal=self.journal,
            tools=tools,
            schemas=[one.schema for one in tools],
            context=ToolContext(
                sandbox=cast("Any", self),
                leaks=self.leaks,
                browser=self.browser,
                file_sender=cast("Any", self) if self.sends else None,
            ),
            approvals=self.approvals or Approvals(self.rows, self.ask, new_id=lambda: "ask1"),
            limits=self.limits,
            ready=self.ready,
            stop=self.stop,
            new_id=lambda: f"call{next(numbers)}",
            constrain=self.constraint,
        )

    async def run(self, *lines: Line) -> TurnFinished:
        self.model = ScriptedModel.of(*lines)
        return await self.run_with(self.model)

    async def run_with(self, model: Model) -> TurnFinished:
        finished = await run_turn(self.turn(model), self.events.append)
        assert self.events[-1] == finished
        assert [e for e in self.events if isinstance(e, TurnFinished)] == [finished]
        assert finished.text.strip()
        return finished

    def of(self, *kinds: type[OneKind]) -> list[OneKind]:
        return [event for event in self.events if isinstance(event, kinds)]

    @property
    def shown(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))


@pytest.fixture
def bench() -> Bench:
    return Bench()
