"""What the backend is told of a request: its signs of life, and how it ended."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest

from agent.errors import BackendAway
from agent.llm.queued_model import GpuHold, QueuedModel, ReportingHold
from agent.messages import User
from agent.model import ModelRefused, Request
from backend.client import GpuLease
from backend.protocol import CompletionReport, Priority
from fakes.model_scripted import Line, ScriptedModel, refused, says

ASKED = Request((User("hello"),))


@dataclass
class Listener:
    """The part of a lease that holds are made of."""

    reports: list[CompletionReport] = field(default_factory=list)
    heartbeats: list[int] = field(default_factory=list)
    wanted: object = None

    async def report(self, report: CompletionReport) -> None:
        self.reports.append(report)

    async def heartbeat(self, tokens: int) -> None:
        self.heartbeats.append(tokens)

    def model(self, line: Line) -> QueuedModel:
        @asynccontextmanager
        async def queue(chat: str, priority: Priority, on_wait: object) -> AsyncIterator[GpuHold]:
            yield ReportingHold(cast("GpuLease", self), chat)

        return QueuedModel(ScriptedModel.of(line), queue, "cli")


@pytest.mark.parametrize(
    ("line", "report"),
    [
        (
            says("Hi"),
            CompletionReport(
                chat="cli", status=200, prompt_tokens=100, cached_tokens=80, completion_tokens=10
            ),
        ),
        (
            says("Hi", finish_reason="cut", tokens=None),
            CompletionReport(chat="cli", status=0),
        ),
        (refused(500, "no"), CompletionReport(chat="cli", status=500)),
        (BackendAway("gone"), CompletionReport(chat="cli", status=0)),
    ],
)
async def test_every_completion_is_reported_once(line: Line, report: CompletionReport) -> None:
    listener = Listener()
    try:
        async for _ in listener.model(line).stream(ASKED):
            pass
    except (BackendAway, ModelRefused):
        pass
    assert listener.reports == [report]
