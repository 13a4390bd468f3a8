"""A chat whose model changes in the middle: from one family's real template to another's, and back.

python -m bench.template_changes [--families NAME...]

For each pair of FAMILIES one conversation in three turns over the real server and the
real agent: the first model makes two calls, the second goes on with one behind words,
and the first makes one more. Each change happens between turns, as a switch of the
model does. Printed per pair: turns that ended with their answer, calls that were made
as they were meant, and calls and results, also those of the other model, that each
turn's last prompt shows.
"""

import argparse
import asyncio
import itertools
import logging
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from agent.approvals import Approvals
from agent.chats.assignment import Assignment, ChatOptions
from agent.chats.chats import Chats
from agent.context.window import ModelWindow
from agent.events import Emit, TurnFinished
from agent.llm.gpu_queue import QueuedModel
from agent.llm.openai import OpenAIModel
from agent.store import Incoming, open_store
from agent.tools.context import ToolContext
from agent.tools.registry import chosen
from agent.tools.tool import Call, Output
from agent.turn.loop import run_turn
from agent.turn.turn import Turn, TurnLimits
from backend.protocol import PERSON, Endpoint
from bench.templates import CONTEXT, MARK, SECONDS, Act, Actor, Ends, Server, said
from fakes import spoken
from fakes.gpu_queue_local import LocalGpuQueue
from fakes.llama_embedded import serve
from fakes.scripted_gguf import make_scripted

FAMILIES = (
    "Qwen3.5-4B",
    "google-gemma-4-31B-it",
    "google-gemma-2-2b-it",
    "openai-gpt-oss-120b",
    "meta-llama-Llama-3.1-8B-Instruct",
    "Mistral-Small-3.2-24B-Instruct-2506",
    "deepseek-ai-DeepSeek-V3.1",
    "GLM-4.7-Flash",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "LFM2.5-Instruct",
)
CHAT = "tg:1"
# Arguments and words that no two families write alike; no two turns have the same.
TURNS: tuple[tuple[Act, ...], ...] = (
    (
        Act("bash", {"command": "echo one \"two\" 'three'\n<b> {4} [5] \\6 ü", "seconds": 30}),
        Act("git_commit", {"repo": "notes", "message": "30", "files": ["a.txt", "b c.txt"]}),
        Act(words="Both are done."),
    ),
    (
        Act("write_file", {"path": "a/b.py", "content": "x = {'a': 1}\n\n# </end>\n"}, "I look into it first."),
        Act(words="It is written."),
    ),
    (
        Act("read_file", {"path": "c d/e.md"}),
        Act(words="You are welcome."),
    ),
)  # fmt: skip
ACTS = [act for turn in TURNS for act in turn]


@dataclass(frozen=True)
class Family:
    """A model file with the family's template, and each act in its words with the token that says it."""

    name: str
    model: Path
    texts: Mapping[int, tuple[str, int]]


@dataclass
class Change:
    """A conversation whose turns these families took; `shown` counts calls with their results in the prompts."""

    names: Sequence[str]
    turns: int = 0
    right: int = 0
    called: int = 0
    shown: int = 0
    wanted: int = 0
    failed: str = ""

    @property
    def survived(self) -> bool:
        found = (self.turns, self.right, self.shown, self.failed)
        return found == (len(self.names), self.called, self.wanted, "")


async def family(name: str, folder: Path) -> Family:
    template, model = spoken.template(name), folder / f"{name}.gguf"
    make_scripted(model, [], template)
    async with serve(model) as endpoint, Server(endpoint) as server:
        texts = await said(name, server, "default", ACTS)
    ids = make_scripted(model, list(texts.values()), template, context=CONTEXT)
    return Family(name, model, {act: (text, ids[text]) for act, text in texts.items()})


async def conversation(families: Sequence[Family], path: Path) -> Change:
    """A turn of each family; its server is started for it, and ended behind it, as a switch does."""
    found = Change([each.name for each in families])
    place, ran = list[Endpoint](), list[tuple[str, Mapping[str, Any]]]()
    made = list[Act]()

    async def answered(tool: str, _: Call, **arguments: Any) -> Output:
        ran.append((tool, arguments))
        return Output(f"{MARK}{len(ran)}.")

    async def endpoint() -> Endpoint:
        return place[-1]

    async with open_store(path) as store, OpenAIModel(endpoint) as model:
        queue, ended = LocalGpuQueue(), asyncio.Queue[TurnFinished]()
        actor = Actor(model)
        tools = [replace(tool, function=partial(answered, tool.name)) for tool in chosen([])]
        schemas = tuple(tool.schema for tool in tools)
        window = ModelWindow(store, model, queue, schemas)

        async def run(assignment: Assignment, emit: Emit) -> TurnFinished:
            turn = Turn(
                model=QueuedModel(actor, queue, assignment.chat, PERSON),
                journal=assignment.journal,
                tools=tools,
                schemas=schemas,
                context=ToolContext(sandbox=cast("Any", None)),
                approvals=Approvals(store.approvals, None),
                limits=TurnLimits(trouble_seconds=0.0, away_seconds=5.0),
            )
            return await run_turn(turn, emit)

        options = ChatOptions(frozenset({"bench"}))
        async with Chats(store, run, window, options, Ends(ended)) as chats:
            for number, (each, acts) in enumerate(zip(families, itertools.cycle(TURNS))):
                async with serve(each.model, CONTEXT) as served:
                    place.append(served.model_copy(update={"profile": each.name}))
                    before = len(ran)
                    actor.begin([each.texts[id(act)] for act in acts])
                    await chats.submit(Incoming(CHAT, "bench", str(number), f"Message {number}."))
                    finished = await asyncio.wait_for(ended.get(), SECONDS)
                    await chats.tasks.ended()  # what is read while nobody waits
                judge(found, acts, finished, ran[before:])
                made += [act for act in acts if act.tool]
                last = actor.asked[-1].prompt if actor.asked else ""
                found.wanted += len(made)
                found.shown += sum(
                    spoken.mark_of(act.arguments) in last and f"{MARK}{at}." in last
                    for at, act in enumerate(made, start=1)
                )
    return found


def judge(
    found: Change,
    acts: Sequence[Act],
    finished: TurnFinished,
    ran: Sequence[tuple[str, Mapping[str, Any]]],
) -> None:
    wanted = [(act.tool, act.arguments) for act in acts if act.tool]
    found.called += len(wanted)
    for (tool, arguments), (made, given) in zip(wanted, ran, strict=False):
        kept = {name: value for name, value in given.items() if name in arguments}
        found.right += (made, kept) == (tool, arguments)
    found.turns += (finished.reason, finished.text) == ("done", acts[-1].words)
    if (finished.reason, finished.text) != ("done", acts[-1].words):
        found.failed = found.failed or f"{finished.reason}: {finished.text}"
    elif len(ran) != len(wanted):
        found.failed = found.failed or f"{len(ran)} calls in place of {len(wanted)}"


async def every_pair(names: Sequence[str]) -> list[Change]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        families = [await family(name, Path(folder)) for name in names]
        for number, (first, second) in enumerate(itertools.combinations(families, 2)):
            path = Path(folder) / f"{number}.db"
            rows.append(await conversation([first, second, first], path))
            print(line(rows[-1]), flush=True)
    return rows


def line(row: Change) -> str:
    pair = " and ".join(name[:30] for name in row.names[:2])
    figures = f"{row.turns} turns, {row.right} calls right, {row.shown} of {row.wanted} shown"
    return f"{pair:<66}{figures}{'  ' * bool(row.failed)}{' '.join(row.failed.split())[:150]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    asked = parser.parse_args()
    logging.getLogger("agent").setLevel(logging.CRITICAL)  # the table says it
    rows = asyncio.run(every_pair(asked.families))
    survived = sum(row.survived for row in rows)
    print(f"{len(rows)} pairs, there and back: {survived} conversations survived")
    return 0 if survived == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
