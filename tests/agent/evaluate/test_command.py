"""`voltaire eval` as a person runs it, against a server that knows the solutions."""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from agent.evaluate.tasks import suite
from fakes.command_line import start_voltaire
from fakes.model_scripted import Line, ModelServer, calls, says
from fakes.patience import SECONDS
from fakes.task_solutions import SOLUTIONS
from fakes.words import saying

NAMES = {task.ask: task.name for task in suite()}


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder with a path short enough for a UNIX socket."""
    folder = Path(tempfile.mkdtemp(prefix="ve"))
    yield folder
    rmtree(folder)


def solve(request: Any) -> Line:
    messages = request["messages"]
    asked = max(n for n, message in enumerate(messages) if message["role"] == "user")
    name = next(NAMES[ask] for ask in NAMES if messages[asked]["content"].endswith(ask))
    steps, answer = SOLUTIONS[name]
    step = sum(message["role"] == "assistant" for message in messages[asked:])
    if step < len(steps):
        tool, arguments = steps[step]
        return calls(tool, **arguments)
    return says(messages[-1]["content"] if answer is None else answer)


async def evaluated(folder: Path, url: str, *options: str) -> tuple[int, str, str]:
    config = folder / "config.toml"
    config.write_text(
        f'[backend]\nkind = "external"\nurl = "{url}"\n[state]\ndir = "{folder / "s"}"\n'
    )
    process = await start_voltaire(
        *("--config", str(config), "eval", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    return process.returncode or 0, out.decode(), err.decode()


async def test_scores_of_both_prompts_and_no_task_twice(state: Path) -> None:
    options = ("--task", "find-word", "--task", "rename-file", "--json")
    async with ModelServer(script=solve) as server:
        code, out, err = await evaluated(state, server.url, *options)
        assert (code, err) == (0, "")
        found = json.loads(out)
        assert found["model"] == "scripted"
        assert [(p, r["tasks"], r["completed"]) for p, r in found["prompt"].items()] == [
            ("ours", 2, 1.0),
            ("naive", 2, 1.0),
        ]
        assert list(found["kind and prompt"]) == [
            "edit, ours",
            "edit, naive",
            "find, ours",
            "find, naive",
        ]
        assert len(server.requests) == 8
        again, out_again, _ = await evaluated(state, server.url, *options)
        assert (again, json.loads(out_again)) == (0, found)
        assert not (state / "s" / "voltaire.db").exists(), "the state is the bot's"
        assert len(server.requests) == 8


async def test_an_unknown_task_is_wrong_usage(state: Path) -> None:
    code, _, err = await evaluated(state, "http://127.0.0.1:9", "--task", "dance")
    assert code == 2
    assert err == saying("dance", "chains, code, documents, edit,")
