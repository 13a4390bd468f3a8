import json
from dataclasses import replace

import pytest

from agent.context.user_message import render
from agent.context.window import ModelWindow
from agent.errors import ToolError
from agent.events import TokenUsage
from agent.memory.notes import ChatMemory, as_json, markdown
from agent.memory.search import rank, snippet
from agent.messages import Assistant
from agent.store import Incoming, Store
from agent.store.search import SearchHit
from agent.store.turns import TurnEnd
from fakes.gpu_queue_local import LocalGpuQueue
from fakes.model_caching import CachingModel
from fakes.words import saying
from tests.agent.store.conftest import Clock


async def said(store: Store, chat: str, words: str, reply: str = "ok") -> str:
    """One exchange; the id of its turn."""
    turn_id = f"{chat}-{await store.inbox.count_waiting()}-{words[:12]}-{store.clock()}"
    await store.inbox.add(Incoming(chat, "s", turn_id, words))
    rows = await store.inbox.waiting(chat)
    window = ModelWindow(store, CachingModel(lambda request: Assistant(reply)), LocalGpuQueue(), ())
    turn = await store.turns.begin(turn_id, rows, await render(window, rows, "UTC"))
    await store.turns.end(turn, TurnEnd(Assistant(reply), reply, "done", TokenUsage()))
    return turn_id


async def prompt_text(store: Store, chat: str) -> str:
    _, entries = await store.transcript.current(chat)
    return "\n".join(str(entry.message.text) for entry in entries)


async def test_a_note_knows_where_it_came_from(store: Store) -> None:
    turn = await said(store, "cli", "my dog is called Rex")
    memory = ChatMemory(store, "cli", "UTC")
    saved = await memory.remember("The dog is\n called   Rex", turn)
    assert saved == saying("saved", "The dog is called Rex") and saved != saying("before")
    again = await memory.remember("the dog IS called rex", turn)
    assert again == saying("before") and "The dog is called Rex" in again
    [note] = await store.notes.all("cli")
    assert note.source is not None
    [source] = [s for s in await store.transcript.texts(1) if s.id == note.source]
    assert source.text == "my dog is called Rex"


async def test_an_empty_note_is_no_note(store: Store) -> None:
    with pytest.raises(ToolError, match="empty"):
        await ChatMemory(store, "cli", "UTC").remember("  \n", "")


async def test_notes_are_shown_once_and_again_when_their_wording_changes(
    store: Store, clock: Clock
) -> None:
    note, _ = await store.notes.add("cli", "likes tea")
    await said(store, "cli", "one")
    await said(store, "cli", "two")
    assert (await prompt_text(store, "cli")).count("likes tea") == 1
    await store.notes.correct("cli", note.id, "likes coffee")
    await said(store, "cli", "three")
    text = await prompt_text(store, "cli")
    assert "- likes coffee (2027-01-15)" in text
    assert "no longer true: likes tea (2027-01-15)" in text
    await store.chats.new_conversation("cli")
    await said(store, "cli", "four")
    assert "likes tea" not in await prompt_text(store, "cli")
    assert "- likes coffee (2027-01-15)" in await prompt_text(store, "cli")


async def test_a_deleted_note_leaves_every_prompt_and_undo_brings_it_back(store: Store) -> None:
    note, _ = await store.notes.add("cli", "born in Ulm")
    await store.notes.add("cli", "likes tea")
    await said(store, "cli", "one")
    assert await store.notes.delete("cli", note.id)
    assert not await store.notes.delete("cli", note.id)
    assert "Ulm" not in await prompt_text(store, "cli")
    assert "likes tea" in await prompt_text(store, "cli")
    assert await store.search.candidates("cli", "Ulm") == []
    assert await store.notes.restore("cli", note.id)
    await said(store, "cli", "two")
    assert (await prompt_text(store, "cli")).count("born in Ulm") == 1
    assert [f.text for f in await store.search.candidates("cli", "Ulm")] == ["born in Ulm"]


async def test_notes_belong_to_their_chat(store: Store) -> None:
    note, _ = await store.notes.add("tg:1", "the code is 4711")
    assert not await store.notes.delete("tg:2", note.id)
    assert not await store.notes.correct("tg:2", note.id, "x")
    await said(store, "tg:2", "what is the code?")
    assert "4711" not in await prompt_text(store, "tg:2")
    assert await store.search.candidates("tg:2", "4711") == []


async def test_more_notes_than_have_room_pinned_ones_first(store: Store) -> None:
    first, _ = await store.notes.add("cli", f"number 0 {'x' * 200}")
    for number in range(1, 30):
        await store.notes.add("cli", f"number {number} {'x' * 200}")
    await store.notes.pin("cli", first.id, True)
    await said(store, "cli", "hello")
    text = await prompt_text(store, "cli")
    assert "number 0 " in text
    assert "number 29 " in text
    assert "number 1 " not in text
    assert len(text) < 3000


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("oven", "I bought new ovens in Köln"),
        ("ovens", "The oven is hot"),
        ("koln", "I bought new ovens in Köln"),
        ("KÖLN?", "I bought new ovens in Köln"),
        ("birthday mother", "My mother's birthday is on 3 May"),
        ("handschuh", "Der Ofenhandschuh hängt links"),
        ("天気", "今日の天気は晴れです"),
        ("4711", "invoice 4711 was paid"),
        ('"; DROP TABLE notes --', "drop the table on the left"),
        ("AND OR NOT NEAR(", "and then there was none"),
    ],
)
async def test_words_are_found_again(store: Store, query: str, found: str) -> None:
    for text in (
        "I bought new ovens in Köln",
        "My mother's birthday is on 3 May",
        "The oven is hot",
        "Der Ofenhandschuh hängt links",
        "今日の天気は晴れです",
        "invoice 4711 was paid",
        "drop the table on the left",
        "and then there was none",
    ):
        await said(store, "cli", text, reply="")
    memories = await ChatMemory(store, "cli", "UTC").recall(query, 5)
    assert found in [memory.text.removeprefix("the person: ") for memory in memories]


async def test_nothing_found_is_nothing(store: Store) -> None:
    memory = ChatMemory(store, "cli", "UTC")
    assert await memory.recall("anything", 5) == []
    await said(store, "cli", "hello there")
    assert await memory.recall("zebra", 5) == []
    assert await memory.recall("?!", 5) == []


async def test_rare_words_notes_and_newer_ones_win(store: Store, clock: Clock) -> None:
    for days, text in (
        (0, "the red car"),
        (370, "note: the red car is Ann's"),
        (29, "the red car again"),
        (1, "the house"),
        (0, "the the the the"),
    ):
        clock.pass_(days * 86_400)
        if text.startswith("note: "):
            await store.notes.add("cli", text.removeprefix("note: "))
        else:
            await said(store, "cli", text, reply="")
    best = rank(await store.search.candidates("cli", "the red car"), store.clock(), 3)
    assert [one.text for one in best] == [
        "the red car is Ann's",
        "the red car again",
        "the red car",
    ]


@pytest.mark.timeout(20)  # it took minutes, in which nobody was answered
def test_texts_of_megabytes_hold_up_nobody() -> None:
    long = "plüm tree " * 1_000_000
    found = [SearchHit("user", n, f"{long}{n}", 0.0) for n in range(8)]
    best = rank([*found, replace(found[0], id=9)], 0.0, 9)
    assert [one.id for one in best] == [*range(8)]
    assert all("plüm" in snippet(one.text, "nothing plum") for one in best)


def test_a_snippet_shows_the_place() -> None:
    text = f"{'before ' * 200}the plum tree {'after ' * 200}"
    cut = snippet(text, "plums tree", 60)
    assert "tree" in cut
    assert cut.startswith("... ")
    assert len(cut) < 80


async def test_the_export_holds_everything_and_its_fences_hold(store: Store) -> None:
    await store.notes.add("cli", "likes tea")
    await store.chats.set("cli", voice="low")
    turn = await said(store, "cli", "hello\nthere", reply="hi")
    from agent.messages import ToolResult

    rows = await store.turns.last("cli")
    assert rows
    await store.turns.add(rows[0], ToolResult("a", "bash", "a ```` fence"))
    memory = ChatMemory(store, "cli", "Europe/Paris")
    export = await memory.export()
    at = "2027-01-15T09:00:00+01:00"
    assert export == {
        "chat": "cli",
        "exported_at": at,
        "settings": {"voice": "low"},
        "notes": [{"text": "likes tea", "pinned": False, "saved_at": at, "from": None}],
        "conversations": [
            {
                "id": 1,
                "title": "hello there",
                "created_at": at,
                "messages": [
                    {"id": 1, "role": "user", "at": at, "text": "hello\nthere"},
                    {"id": 2, "role": "assistant", "at": at, "text": "hi"},
                    {"id": 3, "role": "tool", "at": at, "text": "a ```` fence"},
                ],
            }
        ],
    }
    assert json.loads(as_json(export)) == export
    page = markdown(export)
    assert "- likes tea (2027-01-15)" in page
    assert "`````\na ```` fence\n`````" in page
    assert turn
