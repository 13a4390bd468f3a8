"""What the backend hears of a completion."""

import pytest

from agent.errors import BackendAway
from agent.llm.reported import ReportedModel
from agent.messages import User
from agent.model import Completion, ModelRefused, Request
from backend.client import BackendUnavailable
from backend.protocol import CompletionReport
from fakes.model_scripted import Line, ScriptedModel, refused, says

ASKED = Request((User("hello"),))


async def reported(line: Line) -> tuple[list[CompletionReport], int]:
    heard: list[CompletionReport] = []

    async def tell(report: CompletionReport) -> None:
        heard.append(report)

    model = ReportedModel(ScriptedModel.of(line), tell, "cli")
    count = 0
    try:
        async for _ in model.stream(ASKED):
            count += 1
    except (BackendAway, ModelRefused):
        pass
    return heard, count


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
    assert (await reported(line))[0] == [report]


async def test_a_backend_that_does_not_listen_disturbs_nobody() -> None:
    async def tell(report: CompletionReport) -> None:
        raise BackendUnavailable("gone")

    model = ReportedModel(ScriptedModel.of(says("Hi")), tell, "cli")
    *_, last = [piece async for piece in model.stream(ASKED)]
    assert isinstance(last, Completion)
    assert last.text == "Hi"
