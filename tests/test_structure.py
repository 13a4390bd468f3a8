"""The figures that `make structure` prints."""

import asyncio
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bench.structure.__main__ import table
from bench.structure.frames import Route, Unseen, frame_figures, own_frames
from bench.structure.probe import Named, Stacks
from bench.structure.source import source_figures

TREE = {
    "bot/__init__.py": "",
    "bot/app.py": '''
import agent.turn
from agent import texts
from agent.turn import Turn


class Step:
    """One."""

    def shown(self) -> str:
        """What
        is shown."""

        def _inner() -> str:
            return texts.HELLO

        return _inner()
''',
    "bot/localgram/__init__.py": "from agent.texts import HELLO\n",
    "agent/__init__.py": "",
    "agent/texts.py": 'HELLO = "hello"\n',
    "agent/turn.py": """
from collections.abc import Callable
from typing import TypeVar

Step = Callable[[], str]
STEPS = dict[str, str]
Found = TypeVar("Found")


class Turn:
    def __repr__(self) -> str:
        return "Turn"

    def _next(self) -> None:
        from backend.client import call

        call(
            self
        )
""",
    "backend/__init__.py": "",
    "backend/client.py": """
from typing import TYPE_CHECKING

from . import texts
from .deep import Found

if TYPE_CHECKING:
    from agent.turn import Turn


def call(turn: "Turn") -> None: ...
""",
    "backend/texts.py": "from backend.client import call\n",
    "backend/deep/__init__.py": "from .found import Found\n",
    "backend/deep/found.py": "class Found: ...\n",
    "backend/pocket/make.py": "class Found: ...\n",
    "pocket/train.py": "STEPS = 4\n\n",
    "bench/turn.py": "import bot.app\n",
    "tests/test_turn.py": "\n",
    "fakes/model.py": "\n\n\n",
    ".venv/agent/turn.py": "import nothing\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_lines_are_counted_by_package_and_what_is_not_the_core_apart(root: Path) -> None:
    figures = source_figures(root)
    assert figures["lines"] == {
        "bot": {"modules": 2, "lines": 17},
        "agent": {"modules": 3, "lines": 20},
        "backend": {"modules": 5, "lines": 14},
        "localgram": {"modules": 1, "lines": 1},
        "pocket": {"modules": 2, "lines": 3},
        "bench": {"modules": 1, "lines": 1},
        "tests": {"modules": 2, "lines": 4},
        "core": {"modules": 10, "lines": 51},
    }
    assert figures["folders"] == {"agent": 2, "backend": 2, "bot": 1, "backend/deep": 1}


def test_what_makes_code_hard_to_read_is_counted(root: Path) -> None:
    figures = source_figures(root)
    assert figures["core"] == {
        "modules": 10,
        "mean_module_lines": 5.1,
        "one_importer": {
            "agent.texts": "bot.app",
            "backend.deep": "backend.client",
            "backend.deep.found": "backend.deep",
            "backend.texts": "backend.client",
        },
        "functions": 5,
        "private_percent": 40.0,  # _inner and _next; not __repr__
        "function_lines": {"median": 1, "p90": 5},
        "function_lines_whole": {"median": 2, "p90": 8},
        "types_defined_again": {"Step": ["bot.app", "agent.turn"]},
        "cycles": [["agent.turn", "backend.client", "backend.texts"]],
        "cycles_at_import": [["backend.client", "backend.texts"]],
    }
    assert "agent.texts" not in figures["core and localgram"]["one_importer"]


def test_the_table_names_each_cycle_and_each_name_of_two_types(root: Path) -> None:
    text = "\n".join(table(source_figures(root)))
    assert "\n  2 Step: bot.app, agent.turn\n" in text
    assert text.endswith("\n * 3: agent.turn, backend.client, backend.texts")


WORKER = """
import asyncio

class Worker:
    async def run(self, look):
        return await self.guarded(self.pieces(look))

    async def guarded(self, pieces):
        async def first():
            async for piece in pieces:
                return piece

        return await asyncio.create_task(first())

    async def pieces(self, look):
        yield await asyncio.wait_for(ask(look), 5)


async def ask(look):
    return [await (lambda: asked(look))() for _ in range(1)][0]


async def asked(look):
    return look()


async def leave(look):
    async def later():
        return look()

    return asyncio.create_task(later())


async def meet(look):
    return await (await asyncio.create_task(leave(look)))


async def visit(look):
    return await wait_for(await leave(look))


async def wait_for(task):
    return await task
"""


@pytest.fixture
def stacks(tmp_path: Path) -> Iterator[Stacks]:
    stacks = Stacks(tmp_path)
    unwatch = stacks.watch()
    yield stacks
    unwatch()


@pytest.fixture
def worker(tmp_path: Path) -> ModuleType:
    file = tmp_path / "agent" / "worker.py"
    file.parent.mkdir()
    file.write_text(WORKER)
    spec = importlib.util.spec_from_file_location("worker", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_a_stack_goes_on_in_the_tasks_that_wait(stacks: Stacks, worker: ModuleType) -> None:
    async def hub() -> list[Named]:
        found: list[Named] = await worker.Worker().run(stacks.now)
        return found

    seen = await asyncio.create_task(hub())
    assert own_frames(Route("", "request", "Worker.run"), {"request": [seen]}) == [
        "agent.worker:Worker.run",
        "agent.worker:Worker.guarded",
        "agent.worker:Worker.guarded.first",
        "agent.worker:Worker.pieces",
        "agent.worker:ask",
        "agent.worker:asked",
    ]
    assert (__name__, "test_a_stack_goes_on_in_the_tasks_that_wait.hub", False) in seen


async def test_what_made_a_task_and_stands_no_longer_is_not_part_of_its_stack(
    stacks: Stacks, worker: ModuleType
) -> None:
    left = await worker.meet(stacks.now)
    assert [name for _, name, own in left if own] == ["leave.later"]
    left = await asyncio.create_task(worker.visit(stacks.now))
    assert [name for _, name, own in left if own] == ["visit", "leave.later"]


def test_a_route_that_nothing_took_is_told(stacks: Stacks) -> None:
    with pytest.raises(Unseen, match=r"^update: nothing passed there below Worker\.run$"):
        own_frames(Route("update", "inbox row", "Worker.run"), {})


async def test_a_message_and_a_turn_take_a_short_way() -> None:
    """At most twelve functions of ours lie between the ends of each route."""
    routes = (await frame_figures(Path(__file__).parent.parent))["routes"]
    assert {name: len(frames) for name, frames in routes.items() if len(frames) > 12} == {}


def test_in_our_own_core_nothing_imports_itself_and_no_two_types_share_a_name() -> None:
    core = source_figures(Path(__file__).parent.parent)["core"]
    assert (core["cycles"], core["types_defined_again"]) == ([], {})
