"""What web, documents, skills and plans cost as commands of the shell, and as listed tools: python -m bench.abilities

    python -m bench.abilities [--pocket] [--prompt NAME ...] [--kind NAME ...]

Plays the tasks of `voltaire eval` for these abilities with a model that knows their solutions, in each form, through
the real loop and sandbox, and prints the tokens (o200k) of the fixed prefix and, per task, the calls, and the tokens that
are read when each request's beginning is cached, and when nothing is. A model that does not know the commands reads
/commands.txt first: the scripted one does so once in each task. With --pocket the demo model plays instead, and
what it completed is printed as well; `voltaire eval --prompt ours --prompt listed` does that with any model.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rs_bpe.bpe import openai

from agent.evaluate.listed import listed_tools
from agent.evaluate.prompts import PROMPTS, Prompt, system_of
from agent.evaluate.runner import EvalSetup, run_task
from agent.evaluate.scores import Score, rates
from agent.evaluate.stage import open_stage
from agent.evaluate.tasks import EvalTask, suite
from agent.llm.openai import OpenAIModel, message_json
from agent.messages import ToolResult
from agent.model import Model, Request
from agent.tools.registry import chosen
from backend.protocol import Endpoint
from fakes.journal_memory import MemoryApprovals
from fakes.llama_embedded import serve
from fakes.model_scripted import Line, ScriptedModel, calls, says
from fakes.sandbox_box import LIMITS
from fakes.task_solutions import SOLUTIONS, SOLUTIONS_LISTED

KINDS = ("web", "documents", "skills", "plans")
COMPARED: tuple[Prompt, ...] = ("ours", "listed")
READING = calls("bash", command="cat /commands.txt")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pocket", action="store_true", help="play them with the demo model")
    parser.add_argument("--prompt", action="append", choices=PROMPTS, help="repeatable")
    parser.add_argument("--kind", action="append", help="of tasks; repeatable")
    asked = parser.parse_args()
    tasks = [task for task in suite() if task.kind in (asked.kind or KINDS)]
    prompts = asked.prompt or COMPARED
    return asyncio.run(pocket(tasks, prompts) if asked.pocket else scripted(tasks, prompts))


def o200k(text: str) -> int:
    return len(openai.o200k_base().encode(text))


def compact(content: object) -> str:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


@dataclass
class TokenCount:
    """Over the requests of one task: what is read where each begins as the one before, and where not."""

    read: int = 0
    again: int = 0
    _last: str = field(default="")

    def request(self, request: Request, schemas: Sequence[Any]) -> None:
        whole = compact([*schemas]) + "".join(compact(message_json(m)) for m in request.messages)
        size = o200k(whole)
        self.again += size
        same = whole.startswith(self._last)
        self.read += o200k(whole[len(self._last) :]) if same and self._last else size
        self._last = whole


def knowing(task: EvalTask, prompt: Prompt, count: TokenCount) -> ScriptedModel:
    """A model that knows the way, and in our form looks up the commands first."""
    steps, answer = (SOLUTIONS_LISTED if prompt == "listed" else SOLUTIONS)[task.name]
    left = [calls(tool, **arguments) for tool, arguments in steps]
    if prompt != "listed":
        left.insert(0, READING)

    def script(request: Request) -> Line:
        count.request(request, request.tools)
        if left:
            return left.pop(0)
        last = request.messages[-1]
        assert isinstance(last, ToolResult)
        return says(f"It is: {last.text}" if answer is None else answer)

    return ScriptedModel(script, n_ctx=1 << 17)


def prefix_tokens(prompt: Prompt) -> int:
    """Of system text and tools, without the lines of skills."""
    tools = [*chosen(()), *(listed_tools() if prompt == "listed" else ())]
    return o200k(system_of(prompt, datetime.now(UTC))) + o200k(
        compact([tool.schema for tool in tools])
    )


async def scripted(tasks: Sequence[EvalTask], prompts: Sequence[Prompt]) -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        async with open_stage(Path(folder), LIMITS) as stage:
            print(f"{'':<20}{'prefix':>8}{'done':>8}{'calls':>8}{'read':>9}{'uncached':>10}")
            for prompt in prompts:
                print(f"{prompt:<20}{prefix_tokens(prompt):>8}")
                for kind in dict.fromkeys(task.kind for task in tasks):
                    scores, counts = list[Score](), list[TokenCount]()
                    for task in (task for task in tasks if task.kind == kind):
                        counts.append(TokenCount())
                        model = knowing(task, prompt, counts[-1])
                        scores.append(await run_task(setup_of(model, stage), task, prompt))
                    failed += sum(bool(score.fault) for score in scores)
                    row(kind, scores, counts)
    return int(failed > 0)


def row(kind: str, scores: Sequence[Score], counts: Sequence[TokenCount]) -> None:
    found = rates(scores)
    done = sum(not score.fault for score in scores)
    read = sum(count.read for count in counts) / len(counts)
    again = sum(count.again for count in counts) / len(counts)
    print(
        f"  {kind:<18}{'':>8}{f'{done}/{len(scores)}':>8}{found.calls:>8.1f}{read:>9.0f}{again:>10.0f}"
    )


def setup_of(model: Model, stage: Any) -> EvalSetup:
    tools = chosen(())
    return EvalSetup(model, stage, MemoryApprovals(), tools, [tool.schema for tool in tools])


async def pocket(tasks: Sequence[EvalTask], prompts: Sequence[Prompt]) -> int:
    with (
        tempfile.TemporaryDirectory() as folder,
        as_file(files("backend.embedded").joinpath("pocket.gguf")) as weights,
    ):
        async with open_stage(Path(folder), LIMITS) as stage, serve(weights) as endpoint:

            async def source() -> Endpoint:
                return endpoint.model_copy(update={"sampling": {"temperature": 0.0}})

            async with OpenAIModel(source) as model:
                for prompt in prompts:
                    scores = []
                    for task in tasks:
                        score = await run_task(setup_of(model, stage), task, prompt)
                        scores.append(score)
                        print(f"  {prompt:<10}{task.name:<24}{score.fault or 'done'}", flush=True)
                    found = rates(scores)
                    valid = "-" if found.valid_calls is None else f"{found.valid_calls:.0%}"
                    print(
                        f"{prompt}: {found.completed:.0%} of {found.tasks} done, {valid} valid calls, "
                        f"{found.calls:.1f} calls, {found.tokens:.0f} tokens, {found.seconds:.1f} s a task"
                    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
