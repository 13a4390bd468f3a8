"""The smallest model on the tasks meant for it, through the real server, loop and sandbox."""

from importlib.resources import files
from pathlib import Path

import pytest

from agent.evaluate.runner import EvalSetup, run_task
from agent.evaluate.scores import Score, rates
from agent.evaluate.stage import open_stage
from agent.evaluate.tasks import suite
from agent.llm.openai import OpenAIModel
from agent.tools.registry import chosen
from backend.protocol import Endpoint
from fakes.journal_memory import MemoryApprovals
from fakes.llama_embedded import serve
from fakes.sandbox_box import LIMITS

POCKET = Path(str(files("backend.embedded").joinpath("pocket.gguf")))
# The committed model does 12 of 18; another processor's rounding may cost one.
COMPLETED = 0.6
VALID_CALLS = 0.9


@pytest.mark.slow
@pytest.mark.skipif(not POCKET.exists(), reason="the pocket model is not in this checkout")
async def test_pocket_does_the_easy_tasks(tmp_path: Path) -> None:
    tools = chosen(())
    schemas = [tool.schema for tool in tools]
    async with open_stage(tmp_path / "state", LIMITS) as played, serve(POCKET) as endpoint:

        async def source() -> Endpoint:
            return endpoint.model_copy(update={"sampling": {"temperature": 0.0}})

        async with OpenAIModel(source) as model:
            stage = EvalSetup(model, played, MemoryApprovals(), tools, schemas)
            scores: list[Score] = [await run_task(stage, task) for task in suite() if task.easy]
    found = rates(scores)
    failed = {score.task: score.fault for score in scores if score.fault}
    assert found.completed >= COMPLETED, failed
    assert found.valid_calls is not None
    assert found.valid_calls >= VALID_CALLS
