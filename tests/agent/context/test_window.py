import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.context.cache_audit import CacheAudit
from agent.context.window import ModelWindow, WindowTooSmall, token_breakdown
from agent.errors import BackendAway
from agent.messages import Assistant, Message, ToolCall, ToolResult, User
from agent.model import Completion, Request
from agent.prompt import use_instructions
from agent.store import Incoming, Store, open_store
from agent.store.turns import OpenTurn, RenderedMessage
from agent.turn.conversation import StoredJournal
from backend.protocol import PERSON
from fakes.gpu_queue_local import LocalGpuQueue
from fakes.model_caching import CachingModel
from fakes.patience import SECONDS
from fakes.words import saying

SCHEMAS = (
    {"type": "function", "function": {"name": "bash"}},
    {"type": "function", "function": {"name": "grep"}},
)
SUMMARY = "The person wants the garden painted blue; file list.txt."


def reply(request: Request) -> Assistant:
    asked = "is about to be shortened" in request.messages[-1].text
    return Assistant(SUMMARY if asked else "ok")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "v.db") as opened:
        yield opened


@pytest.fixture
def model() -> CachingModel:
    return CachingModel(reply, n_ctx=4096)


@pytest.fixture
def window(store: Store, model: CachingModel) -> ModelWindow:
    return ModelWindow(store, model, LocalGpuQueue(), SCHEMAS)


async def turn(
    store: Store, *exchanges: tuple[str, str], last: str = "go on", notes: bool = False
) -> OpenTurn:
    """A conversation of finished exchanges, and an open turn."""
    for number, (words, answer) in enumerate((*exchanges, (last, ""))):
        await store.inbox.add(Incoming("tg:1", "s", f"{words[:20]}{number}", words))
        rows = await store.inbox.waiting("tg:1")
        shown, _ = await store.notes.to_show("tg:1")
        lines = (
            tuple((n.id, f"- {n.text} (2027-01-01)") for n in shown)
            if notes and number == 0
            else ()
        )
        head = "<context>\n" + "".join(line + "\n" for _, line in lines) + "</context>\n"
        open_turn = await store.turns.begin(
            f"t{number}", rows, RenderedMessage(head, User(head + words), lines)
        )
        if answer:
            await store.turns.add(open_turn, Assistant(answer))
    return open_turn


async def texts(store: Store) -> list[str]:
    _, entries = await store.transcript.current("tg:1")
    return [entry.message.text for entry in entries]


LONG = [(f"question {n} {'q' * 700}", f"answer {n} {'a' * 700}") for n in range(9)]


async def test_what_has_room_is_left_alone_without_counting(
    window: ModelWindow, store: Store, model: CachingModel
) -> None:
    open_turn = await turn(store, ("hello", "hi"))
    assert not await window.fit(open_turn, full=False)
    assert model.requests == []


async def test_before_a_call_that_would_not_fit_old_exchanges_become_a_summary(
    window: ModelWindow, store: Store, model: CachingModel
) -> None:
    open_turn = await turn(store, *LONG)
    before, begun = await texts(store), list[int]()
    assert await window.fit(open_turn, lambda: begun.append(len(model.requests)), full=False)
    assert len(begun) == 1 and begun[0] < len(model.requests), "it is told before the summary"
    asked = model.requests[-1]
    shown = [m.text for m in asked.messages[1:-1]]
    assert len(shown) >= 17
    assert shown == before[: len(shown)]
    assert (asked.tool_choice, asked.tools, asked.max_tokens) == ("none", SCHEMAS, 256)
    after = await texts(store)
    assert after[0].startswith("<context>\n") and SUMMARY in after[0]
    assert after[-1].endswith("go on")
    budget = await window.budget()
    size = await model.count(
        Request(
            (
                *asked.messages[:1],
                *[e.message for e in (await store.transcript.current("tg:1"))[1]],
            ),
            SCHEMAS,
        )
    )
    assert size <= budget.low
    assert len(await store.transcript.texts(open_turn.conversation)) == len(before)
    assert not await window.fit(open_turn, full=False)


async def test_a_server_that_refuses_the_prompt_gets_a_shorter_one(
    window: ModelWindow, store: Store
) -> None:
    open_turn = await turn(store, *LONG[:4])
    assert await window.fit(open_turn, full=True)
    assert SUMMARY in (await texts(store))[0]


async def test_a_prompt_that_has_nothing_to_lose_stays_and_says_so(
    window: ModelWindow, store: Store
) -> None:
    open_turn = await turn(store, ("hello", "Hi."))
    before = await texts(store)
    assert not await window.fit(open_turn, full=True)
    assert await texts(store) == before


async def test_without_a_model_an_extract_serves(
    window: ModelWindow, store: Store, model: CachingModel
) -> None:
    open_turn = await turn(store, *LONG)

    def away(request: Request) -> None:
        raise BackendAway("gone")

    model.before = away
    assert await window.fit(open_turn, full=False)
    first = (await texts(store))[0]
    assert "  person: question 5 qqq" in first
    assert "  I said: answer 5 aaa" in first


async def test_a_summary_of_the_summary_replaces_it(
    window: ModelWindow, store: Store, model: CachingModel
) -> None:
    open_turn = await turn(store, *LONG)
    await window.fit(open_turn, full=False)
    for n in range(16):
        await store.turns.add(open_turn, Assistant(f"more {n} {'m' * 700}"))
        await store.turns.add(open_turn, User("and?"))
    assert await window.fit(open_turn, full=False)
    assert "".join(await texts(store)).count(SUMMARY) == 1
    assert await store.transcript.summary(open_turn.conversation) == SUMMARY


async def test_notes_survive_the_message_that_showed_them(
    window: ModelWindow, store: Store
) -> None:
    await store.notes.add("tg:1", "allergic to nuts", pinned=True)
    open_turn = await turn(store, *LONG, notes=True)
    await window.fit(open_turn, full=False)
    first = (await texts(store))[0]
    assert "notes:\n- allergic to nuts (2027-01-01)\n</context>" in first
    notes, shown = await store.notes.to_show("tg:1")
    assert shown == {notes[0].id: "- allergic to nuts (2027-01-01)"}
    await store.notes.delete("tg:1", notes[0].id)
    assert "nuts" not in "".join(await texts(store))


async def test_the_whole_of_an_old_output_is_kept_in_a_file_and_named(
    store: Store, model: CachingModel
) -> None:
    files: list[tuple[str, str]] = []

    async def spill(chat: str, text: str, stranger: str) -> str:
        files.append((chat, text))
        return f"/workspace/.voltaire/out/{len(files)}.txt"

    window = ModelWindow(store, model, LocalGpuQueue(), SCHEMAS, spill)
    open_turn = await turn(store)
    outputs = [f"output {n} {'o' * 3500}" for n in range(5)]
    for n, output in enumerate(outputs):
        await store.turns.add(open_turn, Assistant("", (ToolCall(str(n), "bash", "{}"),)))
        await store.turns.add(open_turn, ToolResult(str(n), "bash", output))
    assert await window.fit(open_turn, full=False)
    assert files == [("tg:1", output) for output in outputs[:3]]
    said = await store.transcript.texts(open_turn.conversation)
    assert [s.text for s in said if s.role == "tool"] == outputs


async def test_idle_time_is_used_and_the_new_prompt_read_in(
    window: ModelWindow, store: Store, model: CachingModel
) -> None:
    open_turn = await turn(store, *LONG[:8])
    await store.turns.add(open_turn, Assistant("done"))
    assert not await window.fit(open_turn, full=False)  # it still fits: nobody is kept waiting
    await window.rest("tg:1")
    assert SUMMARY in (await texts(store))[0]
    warm = model.requests[-1]
    assert warm.max_tokens == 1
    assert [m.text for m in warm.messages[1:]] == await texts(store)
    before = len(model.requests)
    await window.rest("tg:1")
    assert len(model.requests) == before


async def test_idle_work_makes_way_at_once(
    window: ModelWindow, store: Store, model: CachingModel
) -> None:
    open_turn = await turn(store, *LONG[:8])
    begun, for_ever = asyncio.Event(), asyncio.Event()

    async def slow(request: Request):  # type: ignore[no-untyped-def]
        begun.set()
        await for_ever.wait()
        yield

    model.stream = slow  # type: ignore[method-assign]
    resting = asyncio.create_task(window.rest("tg:1"))
    await begun.wait()
    async with asyncio.timeout(SECONDS), window.queue("tg:2", PERSON, None):
        pass
    resting.cancel()
    await asyncio.wait([resting])
    assert "summary" not in (await texts(store))[0]
    assert open_turn


async def test_a_prompt_that_grew_meanwhile_is_not_compacted_behind_its_back(
    window: ModelWindow, store: Store, model: CachingModel
) -> None:
    open_turn = await turn(store, *LONG[:8])
    grown = asyncio.Event()
    stream = model.stream

    async def meanwhile(request: Request):  # type: ignore[no-untyped-def]
        if not grown.is_set():
            await store.turns.add(open_turn, User("new words"))
            grown.set()
        async for piece in stream(request):
            yield piece

    model.stream = meanwhile  # type: ignore[method-assign]
    before = await texts(store)
    await window.rest("tg:1")
    assert await texts(store) == [*before, "new words"]


async def test_a_window_that_is_too_small_is_refused_with_the_numbers(store: Store) -> None:
    window = ModelWindow(store, CachingModel(reply, n_ctx=2048), LocalGpuQueue(), SCHEMAS)
    with pytest.raises(
        WindowTooSmall,
        match=r"The window of 2,048 tokens is too small: .* take \d+, and at least [\d,]+ are needed",
    ):
        await window.check()
    await ModelWindow(store, CachingModel(reply, n_ctx=8192), LocalGpuQueue(), SCHEMAS).check()


async def test_useful_context_bounds_the_window(store: Store) -> None:
    async def useful() -> int:
        return 6000

    window = ModelWindow(
        store, CachingModel(reply, n_ctx=32768), LocalGpuQueue(), SCHEMAS, useful=useful
    )
    assert (await window.budget()).limit == 6000


async def test_a_text_that_alone_is_too_large_is_cut_as_it_enters(
    store: Store, window: ModelWindow
) -> None:
    assert await window.enter("tg:1", "x" * 4096) == "x" * 4096
    cut = await window.enter("tg:1", "x" * 100_000)
    assert len(cut) < 4096
    assert [line for line in cut.splitlines() if line.strip("x")] == [saying(" 96,928 ")]


async def test_context_adds_up(window: ModelWindow, store: Store) -> None:
    assert list(await token_breakdown(store, window, "tg:1")) == [
        "system text",
        "tool bash",
        "tool grep",
        "notes",
        "summary",
        "transcript",
        "free",
    ]
    await store.notes.add("tg:1", "allergic to nuts", pinned=True)
    open_turn = await turn(store, *LONG, notes=True)
    await window.fit(open_turn, full=False)
    tokens = await token_breakdown(store, window, "tg:1")
    assert sum(tokens.values()) == 4096
    assert tokens["notes"] == 8
    assert tokens["summary"] > 10
    assert tokens["transcript"] > 200


async def test_instructions_are_counted_apart(window: ModelWindow, store: Store) -> None:
    plain = await token_breakdown(store, window, "tg:1")
    use_instructions("Say tu, never vous.")
    try:
        told = await token_breakdown(store, window, "tg:1")
    finally:
        use_instructions("")
    assert told.pop("instructions") == plain["free"] - told["free"] > 0
    assert told == {**plain, "free": told["free"]}


async def test_a_call_that_reads_again_what_it_knew_is_logged(
    caplog: pytest.LogCaptureFixture, model: CachingModel
) -> None:
    caplog.set_level("INFO", "agent.context.cache_audit")
    record = CacheAudit()

    async def call(*messages: object):  # type: ignore[no-untyped-def]
        async for piece in model.stream(Request(messages)):  # type: ignore[arg-type]
            completion = piece
        return record.compare(1, messages, completion)  # type: ignore[arg-type]

    history: list[Message] = [User("u" * 400)]
    await call(*history)
    history += [Assistant("ok"), User("more")]
    reuse = await call(*history)
    assert (reuse.reread <= 16, reuse.difference) == (True, "")
    assert caplog.records == []
    history[0] = User("changed " + "u" * 400)
    reuse = await call(*history)
    assert reuse.reread > 90
    assert reuse.difference == saying("message 0: User, text", "character 0", "became 'changed ")
    assert [r.levelname for r in caplog.records] == ["INFO"]


async def test_a_sub_tasks_calls_are_kept_and_disturb_no_comparison(
    store: Store, window: ModelWindow
) -> None:
    journal = StoredJournal(store, await turn(store), window, "UTC")
    sent = (await journal.open()).messages
    await journal.called(Completion("", (), "", "tool_calls", 1000, 900, 10), sent)
    await journal.called(Completion("x", (), "", "stop", 400, 0, 20), None)
    await journal.called(Completion("done", (), "", "stop", 1100, 1009, 5), sent)
    async with store.database.read() as tx:
        rows = await tx.all("SELECT purpose, turn, prompt_tokens, reread FROM usage ORDER BY id")
    assert rows == [("turn", "t0", 1000, 0), ("sub-task", "t0", 400, 0), ("turn", "t0", 1100, 1)]


async def test_the_fixed_prefix_is_counted_once_for_each_window(
    store: Store, model: CachingModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, count = list[Request](), model.count

    async def counting(request: Request) -> int:
        counted.append(request)
        return await count(request)

    monkeypatch.setattr(model, "count", counting)
    window = ModelWindow(store, model, LocalGpuQueue(), SCHEMAS)
    budgets = [await window.budget() for _ in range(2)]
    assert (len(counted), counted[0].tools) == (1, SCHEMAS)
    assert budgets[0] == budgets[1]
    assert budgets[0].prefix == await count(counted[0])
    model.n_ctx = 8192
    assert (await window.budget()).limit == 8192
    assert len(counted) == 2


async def test_a_text_enters_whole_while_the_window_is_not_known(
    store: Store, model: CachingModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> int:
        raise BackendAway("gone")

    monkeypatch.setattr(model, "window", away)
    window = ModelWindow(store, model, LocalGpuQueue(), SCHEMAS)
    assert await window.enter("tg:1", "x" * 100_000) == "x" * 100_000
    assert await window.roomy([User("x" * 100_000)])
    assert not await window.fit(await turn(store), full=True)
