"""Real chat templates on the real server, under the real agent: a few families by day, all of them by `make templates`."""

import asyncio
import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from agent.approvals import Approvals
from agent.channels import Assignment, NoChannels
from agent.chats.chats import Chats
from agent.context.window import ModelWindow
from agent.events import Emit, TurnFinished
from agent.llm.openai import OpenAIModel
from agent.llm.queued_model import QueuedModel
from agent.store import Incoming, open_store
from agent.tools.context import ToolContext
from agent.tools.registry import chosen
from agent.tools.tool import Call, Output
from agent.turn.loop import run_turn
from agent.turn.turn import Turn, TurnLimits
from backend.protocol import PERSON, Endpoint
from fakes import spoken
from fakes.gguf_maker import Kind
from fakes.gpu_queue_local import LocalGpuQueue
from fakes.llama_embedded import serve
from fakes.scripted_gguf import make_scripted
from fakes.template_conversation import (
    BEYOND,
    CONTEXT,
    KNOWN,
    MARK,
    MODES,
    SECONDS,
    WAITED,
    Act,
    Actor,
    Ends,
    Row,
    Server,
    measure,
    said,
)

pytestmark = pytest.mark.skipif(
    not (spoken.FOLDER / ".stamp").exists(), reason="the templates are fetched by `make test`"
)
# Of each form of calls and thoughts one family.
SAMPLE = (
    "Qwen3.5-4B",
    "google-gemma-2-2b-it",
    "openai-gpt-oss-120b",
    "Mistral-Small-3.2-24B-Instruct-2506",
    "deepseek-ai-DeepSeek-V3.1",
    "LFM2.5-Instruct",
)
BY_DAY = (SAMPLE[2],)
long = [pytest.mark.slow, pytest.mark.timeout(3600)]


def check(row: Row) -> None:
    """A tool step reads again at most what the template drops of the answer before it; nobody waits for more."""
    if row.template not in KNOWN:
        assert row.sound, row
    assert not row.rereads and not row.waits, row


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in BY_DAY else long) for name in SAMPLE]
)
async def test_calls_and_results_are_seen_again_and_nobody_waits_for_the_template(
    name: str,
) -> None:
    (row,) = await measure(name, ("default",), long=())
    assert row.sound, row
    assert statistics.median(row.waited) <= WAITED, row
    assert max(row.beyond) <= BEYOND, row


@pytest.mark.parametrize("name", [pytest.param(name, marks=long) for name in spoken.templates()])
async def test_every_template_in_each_way_to_think(name: str) -> None:
    for row in await measure(name, tuple(MODES)):
        check(row)


@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param(k, n, marks=long) for k in ("lfm2", "gemma3") for n in spoken.COMMON],
)
async def test_models_that_cannot_go_back(kind: Kind, name: str) -> None:
    for row in await measure(name, tuple(MODES), kind):
        check(row)


@pytest.mark.slow
async def test_words_before_a_call_are_repeated_by_a_template_without_thoughts() -> None:
    """A blank line behind the words is not read again either."""
    name = "unsloth-mistral-Devstral-Small-2507"
    (row,) = await measure(name, ("default",), long=(), blank="\n\n")
    assert row.sound and max(row.beyond) <= BEYOND, row


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=long) for kind in ("lfm2", "gemma3")])
async def test_nobody_waits_for_models_that_cannot_go_back_nor_after_ten_long_calls(
    kind: Kind,
) -> None:
    (row,) = await measure("Qwen3.5-4B", ("default",), kind)
    assert row.sound, row
    assert max(row.message) > 10_000  # the template drops the turn's thoughts
    assert max(row.waited) <= WAITED, row


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("mistralai-Ministral-3-14B-Reasoning-2512", "lfm2"),  # takes no calls as text
        *(pytest.param(n, c, marks=long) for n in spoken.COMMON for c in spoken.CROSSED),
    ],
)
async def test_a_call_in_another_familys_format_is_read(name: str, calls: str) -> None:
    (row,) = await measure(name, ("off",), long=(), calls=calls)
    check(row)


# -- a chat whose model changes ---------------------------------------------------

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


async def family(name: str, folder: Path) -> Family:
    template, model = spoken.template(name), folder / f"{name}.gguf"
    make_scripted(model, [], template)
    async with serve(model) as endpoint, Server(endpoint) as server:
        texts = await said(name, server, "default", ACTS)
    ids = make_scripted(model, list(texts.values()), template, context=CONTEXT)
    return Family(name, model, {act: (text, ids[text]) for act, text in texts.items()})


async def converse(families: Sequence[Family], path: Path) -> None:
    """A turn of each family, whose server is started for it and ended behind it, as a switch does: each call is
    made as it was meant, and each prompt shows all calls and results, also those of the other families."""
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

        async with Chats(store, run, window, NoChannels(), Ends(ended)) as chats:
            for number, (each, acts) in enumerate(zip(families, itertools.cycle(TURNS))):
                async with serve(each.model, CONTEXT) as served:
                    place.append(served.model_copy(update={"profile": each.name}))
                    before = len(ran)
                    actor.begin([each.texts[id(act)] for act in acts])
                    await chats.submit(Incoming(CHAT, "test", str(number), f"Message {number}."))
                    finished = await asyncio.wait_for(ended.get(), SECONDS)
                    await chats.tasks.ended()  # what is read while nobody waits
                assert (finished.reason, finished.text) == ("done", acts[-1].words), each.name
                wanted = [act for act in acts if act.tool]
                for act, (tool, given) in zip(wanted, ran[before:], strict=True):
                    kept = {name: value for name, value in given.items() if name in act.arguments}
                    assert (tool, kept) == (act.tool, act.arguments), each.name
                made += wanted
                last = actor.asked[-1].prompt
                for at, act in enumerate(made, start=1):
                    assert spoken.mark_of(act.arguments) in last, (each.name, act)
                    assert f"{MARK}{at}." in last, (each.name, act)


async def test_a_chat_with_calls_goes_on_with_models_of_other_families(tmp_path: Path) -> None:
    """Among them one that refuses ids of calls which are not its own, and one without roles for calls."""
    names = ("Qwen3.5-4B", "Mistral-Small-3.2-24B-Instruct-2506", "google-gemma-2-2b-it")
    first, second, third = [await family(name, tmp_path) for name in names]
    await converse([first, second, third, second], tmp_path / "chat.db")


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_a_chat_survives_a_change_between_any_two_families(tmp_path: Path) -> None:
    others = (
        "google-gemma-4-31B-it",
        "meta-llama-Llama-3.1-8B-Instruct",
        "GLM-4.7-Flash",
        "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    )
    families = [await family(name, tmp_path) for name in (*SAMPLE, *others)]
    for number, (first, second) in enumerate(itertools.combinations(families, 2)):
        await converse([first, second, first], tmp_path / f"{number}.db")
