"""Between turns the next prompt is read, where the template changes it: given up, gone on with, never in the way."""

import asyncio
import io
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from agent.context.compaction_plan import sent
from agent.context.window import ModelWindow
from agent.errors import ContextFull
from agent.llm.openai import OpenAIModel
from agent.messages import Assistant, ToolCall, ToolResult, User
from agent.model import Ahead, Completion, ModelRefused, Request
from agent.store import Incoming, Store, open_store
from agent.store.pictures import data_url
from agent.store.turns import RenderedMessage
from backend.protocol import PERSON, Endpoint
from backend.server.llama import llama_server
from fakes import gguf_projector, scripted_gguf
from fakes.gpu_queue_local import LocalGpuQueue
from fakes.llama_embedded import serve
from fakes.model_caching import CachingModel
from fakes.patience import SECONDS
from fakes.scripted_gguf import make_scripted

# Drops the thoughts of turns that are over, as Qwen 3.5's and gpt-oss's do.
TEMPLATE = """\
{%- set last = namespace(user=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set last.user = loop.index0 %}{% endif %}{% endfor %}
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content and loop.index0 > last.user %}<think>{{ m.reasoning_content }}</think>{% endif %}
{{- m.content }}
{%- for call in m.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
DAYS = ("Sat 2026-11-28", "Sun 2026-11-29")
LONG = "It is as it should be. " * 1_200  # 7,000 tokens: seconds for the toy


async def a_turn(
    store: Store,
    chat: str = "tg:1",
    result: str = "done",
    images: tuple[str, ...] = (),
    head: str = "<context>\n</context>\n",
) -> int:
    """A finished turn with a thought, a call and its result; the conversation."""
    await store.inbox.add(Incoming(chat, "s", f"{chat} 1", "look"))
    rows = await store.inbox.waiting(chat)
    asked = User(f"{head}look", images)
    said = RenderedMessage(head, asked, ())
    turn = await store.turns.begin(f"turn of {chat}", rows, said)
    call = ToolCall("call00001", "bash", '{"command": "ls"}')
    for message in (
        Assistant("", (call,), thought="I look."),
        ToolResult("call00001", "bash", result),
        Assistant("There it is.", thought="That is it."),
    ):
        await store.turns.add(turn, message)
    return turn.conversation


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "v.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("toy") / "toy.gguf"
    make_scripted(path, [], TEMPLATE)
    return path


@asynccontextmanager
async def opened(endpoint: Endpoint) -> AsyncIterator[OpenAIModel]:
    async def same() -> Endpoint:
        return endpoint

    async with OpenAIModel(same) as model:
        yield model


def picture(colour: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (64, 48), colour).save(out, "PNG")
    return out.getvalue()


async def completed(model: OpenAIModel, request: Request) -> Completion:
    async for piece in model.stream(request):
        if isinstance(piece, Completion):
            return piece
    raise AssertionError


async def next_message(store: Store, model: OpenAIModel) -> Completion:
    _, entries = await store.transcript.current("tg:1")
    return await completed(model, Request((*sent(entries), User("<context>\nnow")), max_tokens=1))


async def busy(endpoint: Endpoint) -> bool:
    async with llama_server(endpoint.url, endpoint.api_key) as server:
        return (await server.slots(SECONDS)).processing


async def until(endpoint: Endpoint, *, processing: bool) -> None:
    async with asyncio.timeout(SECONDS):
        while await busy(endpoint) != processing:
            await asyncio.sleep(0.02)  # the server tells nobody


async def test_a_request_gets_through_at_once_and_the_rest_is_read_after_it(
    store: Store, toy: Path
) -> None:
    await a_turn(store, result=LONG)
    async with serve(toy, 16384) as endpoint, opened(endpoint) as model:
        window = ModelWindow(store, model, LocalGpuQueue(), ())
        window._served = "tg:1"
        resting = asyncio.create_task(window.rest("tg:1"))
        await until(endpoint, processing=True)
        async with asyncio.timeout(SECONDS), window.queue("tg:2", PERSON, None):
            assert not resting.done()
            await until(endpoint, processing=False)  # the server has stopped at its next batch
            assert await store.usage.read_ahead(0) == 0
        await resting
        assert await store.usage.read_ahead(0) > 1_000
        answer = await next_message(store, model)
        prompt, cached = answer.prompt_tokens or 0, answer.cached_tokens or 0
        assert prompt > 5_000 and prompt - cached < 24


@pytest.mark.parametrize("rolls_back", [True, False])
async def test_the_day_of_the_last_message_is_read_ahead_where_the_cache_rolls_back(
    store: Store, toy: Path, rolls_back: bool
) -> None:
    today, tomorrow = (f"<context>\nnow: {day} 09:30 UTC\n</context>\n" for day in DAYS)
    await a_turn(store, head=today)
    _, entries = await store.transcript.current("tg:1")
    read = []
    async with (
        serve(toy, 4096) as served,
        opened(served.model_copy(update={"rolls_back": rolls_back})) as model,
    ):
        for head in (today, tomorrow):
            await ModelWindow(store, model, LocalGpuQueue(), ()).warm("tg:1")
            asked = (*sent(entries), User(f"{head}go on"))
            answer = await completed(model, Request(asked, max_tokens=1))
            read.append((answer.prompt_tokens or 0) - (answer.cached_tokens or 0))
    assert read[1] < 60
    assert (read[0] <= read[1] - 8) == rolls_back, read


@pytest.mark.parametrize(
    ("sees", "colours"),
    [(True, ("red", "blue")), (False, ("red", "blue")), (True, ())],
    ids=["pictures", "no-longer-seen", "words-to-a-model-that-sees"],
)
async def test_what_a_model_sees_is_read_ahead_too(
    store: Store, toy: Path, tmp_path: Path, sees: bool, colours: tuple[str, ...]
) -> None:
    pictures = [data_url("image/png", picture(colour)) for colour in colours]
    await a_turn(store, result="It is as it should be. " * 30, images=tuple(pictures))
    projector = gguf_projector.make(tmp_path / "mmproj.gguf", scripted_gguf.WIDTH) if sees else None
    async with serve(toy, 16384, projector) as endpoint, opened(endpoint) as model:
        window = ModelWindow(store, model, LocalGpuQueue(), ())
        _, entries = await store.transcript.current("tg:1")
        await completed(model, Request(sent(entries)[:-1], max_tokens=1))  # the turn's last step
        window._served = "tg:1"
        await window.rest("tg:1")
        read = await store.usage.read_ahead(0)
        answer = await next_message(store, model)
        await window.warm("tg:1")
    prompt, cached = answer.prompt_tokens or 0, answer.cached_tokens or 0
    assert read > 150  # from where the thoughts were dropped: the result
    assert prompt - cached < 24


async def test_a_cancelled_worker_stops_the_server(store: Store, toy: Path) -> None:
    await a_turn(store, result=LONG)
    async with serve(toy, 16384) as endpoint, opened(endpoint) as model:
        resting = asyncio.create_task(ModelWindow(store, model, LocalGpuQueue(), ()).rest("tg:1"))
        await until(endpoint, processing=True)
        resting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await resting
        await until(endpoint, processing=False)


CHILD = """
import asyncio, sys
from pathlib import Path
from agent.context.window import ModelWindow
from agent.store import open_store
from backend.protocol import Endpoint
from fakes import gguf_projector, scripted_gguf
from fakes.gpu_queue_local import LocalGpuQueue
from tests.agent.context.test_read_ahead import opened

async def main():
    endpoint = Endpoint.model_validate_json(sys.argv[2])
    async with open_store(Path(sys.argv[1])) as store, opened(endpoint) as model:
        await ModelWindow(store, model, LocalGpuQueue(), ()).rest("tg:1")

asyncio.run(main())
"""


async def test_a_program_that_is_killed_meanwhile_leaves_nothing_behind(
    store: Store, tmp_path: Path, toy: Path
) -> None:
    await a_turn(store, result=LONG)
    before = await store.transcript.current("tg:1")
    async with serve(toy, 16384) as endpoint, opened(endpoint) as model:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", CHILD, str(tmp_path / "v.db"), endpoint.model_dump_json())
        )
        await until(endpoint, processing=True)
        os.kill(child.pid, signal.SIGKILL)
        await child.wait()
        await until(endpoint, processing=False)
        assert await store.transcript.current("tg:1") == before
        await ModelWindow(store, model, LocalGpuQueue(), ()).rest("tg:1")
        answer = await next_message(store, model)
        assert (answer.prompt_tokens or 0) - (answer.cached_tokens or 0) < 24


@dataclass
class Changing(CachingModel):
    """Its template changes what it was sent, so that `repeats` is not so."""

    repeats: bool = False
    others_kept: bool = False

    async def ahead(self, request: Request, *, changed: bool = False) -> Ahead | None:
        return None if changed and self.repeats else Ahead((1, 2, 3), self.others_kept)


@pytest.mark.parametrize(
    ("fields", "read"),
    [
        ({}, True),
        ({"repeats": True}, False),
        ({"read_ahead": False}, False),
        ({"served": "tg:2"}, False),
        ({"served": "tg:2", "others_kept": True}, True),
    ],
    ids=["changed", "append-only", "off", "slot-of-another", "kept-in-ram"],
)
async def test_it_reads_where_that_saves_something_and_takes_nothing_from_others(
    store: Store, fields: dict[str, object], read: bool
) -> None:
    await a_turn(store)
    model = Changing(lambda request: Assistant("ok"))
    model.repeats = bool(fields.get("repeats"))
    model.others_kept = bool(fields.get("others_kept"))
    read_ahead = bool(fields.get("read_ahead", True))
    window = ModelWindow(store, model, LocalGpuQueue(), (), read_ahead=read_ahead)
    window._served = str(fields.get("served", "tg:1"))
    await window.rest("tg:1")
    assert [request.prompt for request in model.requests] == [(1, 2, 3)] * read


@pytest.mark.parametrize(
    "error", [ContextFull("long"), ModelRefused(400, "no")], ids=["too-long", "refused"]
)
async def test_what_the_server_refuses_is_left_for_the_next_message(
    store: Store, error: Exception
) -> None:
    await a_turn(store)
    model = Changing(lambda request: Assistant("ok"))

    def refused(request: Request) -> None:
        raise error

    model.before = refused
    window = ModelWindow(store, model, LocalGpuQueue(), ())
    window._served = "tg:1"
    await window.rest("tg:1")
    assert await store.usage.read_ahead(0) == 0
