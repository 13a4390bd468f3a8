from dataclasses import replace

import pytest

from agent.context.compaction_plan import estimate_bytes
from agent.events import TokenUsage
from agent.messages import Assistant, Message, ToolCall, ToolResult, User
from agent.store import Incoming, Store
from agent.store.transcript import Compaction
from agent.store.turns import OpenTurn, RenderedMessage, TurnEnd
from fakes.stored import grant

ODD: list[Message] = [
    User("<context>\n</context>\nhé 🎉\r\n\x00 end", ("data:image/png;base64,AA==",)),
    Assistant("I look.", (ToolCall("a", "bash", '{ "command" :"ls  -l\\n" }'),)),
    ToolResult("a", "bash", "x\ty\n"),
    Assistant("", (ToolCall("b", "bash", "{}"),), raw="<tool_call>{}</tool_call>"),
    ToolResult("b", "bash", ""),
    Assistant("So.", (ToolCall("c", "bash", "{}"),), words="So.\n\n"),
    ToolResult("c", "bash", ""),
    Assistant(" done \n", thought="Hm.\n\n 🎉"),
]


async def begin(store: Store, chat: str = "cli", id: str = "t1", words: str = "hello") -> OpenTurn:
    await store.inbox.add(Incoming(chat, "s", f"{chat}{id}", words))
    rows = await store.inbox.waiting(chat)
    return await store.turns.begin(
        id,
        rows,
        RenderedMessage("<context>\n</context>\n", User(f"<context>\n</context>\n{words}")),
    )


async def prompt(store: Store, turn: OpenTurn) -> list[Message]:
    return [entry.message for entry in (await store.turns.progress(turn)).entries]


def ended(text: str = "hi", *payloads: str) -> TurnEnd:
    return TurnEnd(Assistant(text), text, "done", TokenUsage(10, 5, 2), payloads)


async def test_messages_come_back_to_the_letter(store: Store) -> None:
    turn = await begin(store)
    for message in ODD:
        await store.turns.add(turn, message)
    assert (await prompt(store, turn))[1:] == ODD


CALLS = Assistant("", tuple(ToolCall(f"{n}", "x", "{}") for n in range(32)))


@pytest.mark.parametrize(
    "messages",
    [
        ODD,
        [CALLS] * 9,
        [User("four pictures", ("data:,",) * 4)],
        [Assistant("ä" * 9000, thought="ä" * 9000)],
    ],
)
async def test_the_size_of_a_prompt_is_never_told_too_small(
    store: Store, messages: list[Message]
) -> None:
    turn = await begin(store)
    for message in messages:
        await store.turns.add(turn, message)
    entries = (await store.turns.progress(turn)).entries
    weighed = sum(estimate_bytes(entry.message) for entry in entries)
    assert weighed <= await store.transcript.size("cli") < 2 * weighed + 10_000
    short = {entry.id: entry.message for entry in entries}
    await store.transcript.compact(turn.conversation, Compaction(entries[-1].id, short, (), ""))
    assert weighed <= await store.transcript.size("cli")
    assert await store.transcript.size("nobody") == 0


async def test_a_prompt_that_has_grown_meanwhile_is_not_compacted(store: Store) -> None:
    turn = await begin(store)
    [entry] = (await store.turns.progress(turn)).entries
    decided = Compaction(entry.id, {}, [entry.id], "They said hello.")
    await store.turns.add(turn, ODD[1])
    grown = await prompt(store, turn)
    assert not await store.transcript.compact(turn.conversation, decided)
    assert await prompt(store, turn) == grown
    assert await store.transcript.summary(turn.conversation) == ""


async def test_a_turn_takes_its_rows_and_ends_them_with_its_reply(store: Store) -> None:
    turn = await begin(store)
    assert await store.inbox.waiting("cli") == []
    assert await store.turns.unfinished("cli") == replace(turn, resumed=1)
    [row] = await store.turns.end(turn, ended("hi", '{"text": "hi"}'))
    parcel = await store.outbox.get(row)
    assert parcel and (parcel.turn, parcel.payload, parcel.state) == (
        "t1",
        '{"text": "hi"}',
        "waiting",
    )
    assert await store.turns.unfinished("cli") is None
    assert await store.inbox.chats_waiting() == []
    assert await store.turns.last("cli") == (turn, "hi")


async def test_ending_twice_sends_once(store: Store) -> None:
    turn = await begin(store)
    assert len(await store.turns.end(turn, ended("hi", "1"))) == 1
    assert await store.turns.end(turn, ended("hi", "1")) == []
    assert await store.outbox.counts() == {"waiting": 1}
    assert len(await prompt(store, turn)) == 2


async def test_a_started_call_is_known_until_its_result_is_there(store: Store) -> None:
    turn = await begin(store)
    await store.turns.add(turn, Assistant("", (ToolCall("a", "bash", "{}"),)))
    await store.turns.started(turn, "a")
    assert (await store.turns.progress(turn)).started == {"a"}
    await store.turns.add(turn, ToolResult("a", "bash", "ok"))
    assert (await store.turns.progress(turn)).started == frozenset()


async def test_a_record_holds_what_stood_before_a_turn_and_its_own(store: Store) -> None:
    first = await begin(store)
    await store.turns.end(first, ended("one"))
    second = await begin(store, id="t2", words="again?")
    await store.turns.end(second, ended("two"))
    of_first, of_second = await store.turns.record("t1"), await store.turns.record("t2")
    assert of_first and of_second and await store.turns.record("t3") is None
    assert (of_first.before, of_second.before) == ((), of_first.own)
    assert [m.text.rpartition("\n")[2] for m in of_second.own] == ["again?", "two"]
    assert (of_second.chat, of_second.reason) == ("cli", "done")


async def test_another_try_cuts_the_tail_and_asks_again_once(store: Store) -> None:
    first = await begin(store)
    await store.turns.end(first, ended("one"))
    second = await begin(store, id="t2", words="again?")
    await store.turns.end(second, ended("two"))
    assert await store.turns.retry(second)
    assert not await store.turns.retry(second)
    assert [e.turn for e in await store.transcript.prompt(first.conversation)] == ["t1", "t1"]
    [row] = await store.inbox.waiting("cli")
    assert row.incoming.text == "again?"
    assert [said.text for said in await store.transcript.texts(first.conversation)] == [
        "hello",
        "one",
        "again?",
        "two",
    ]


async def test_conversations_begin_anew_and_are_resumed_in_their_chat_alone(store: Store) -> None:
    old = await begin(store, words="about cats")
    await store.turns.end(old, ended("cats"))
    fresh = await store.chats.new_conversation("cli")
    new = await begin(store, id="t2", words="about dogs")
    assert new.conversation == fresh != old.conversation
    assert [m.text for m in await prompt(store, new)] == ["<context>\n</context>\nabout dogs"]
    listed = await store.chats.conversations("cli")
    assert [(c.title, bool(c.current)) for c in listed] == [
        ("about dogs", True),
        ("about cats", False),
    ]
    assert not await store.chats.resume("tg:9", old.conversation)
    assert await store.chats.resume("cli", old.conversation)
    chat = await store.chats.get("cli")
    assert chat and chat.conversation == old.conversation


async def test_a_migrated_group_keeps_everything(store: Store) -> None:
    turn = await begin(store, chat="tg:-1")
    await store.turns.end(turn, ended("hi", "1"))
    await store.notes.add("tg:-1", "likes tea")
    assert await store.chats.rename("tg:-1", "tg:-100")
    assert not await store.chats.rename("tg:-1", "tg:-100")
    assert [n.text for n in await store.notes.all("tg:-100")] == ["likes tea"]
    assert await store.outbox.chats_waiting() == ["tg:-100"]
    assert [f.text for f in await store.search.candidates("tg:-100", "hello")] == ["hello"]


async def test_a_question_does_not_find_itself(store: Store) -> None:
    turn = await begin(store, words="what did I note about wifi?")
    await store.notes.add("cli", "the wifi password is tulip42")
    found = await store.search.candidates("cli", "wifi")
    assert [hit.text for hit in found] == ["the wifi password is tulip42"]
    await store.turns.end(turn, ended("tulip42", "1"))
    assert len(await store.search.candidates("cli", "wifi")) == 2, "as what was said before"


async def test_a_forgotten_chat_is_gone_from_everywhere(store: Store) -> None:
    turn = await begin(store, chat="tg:1", words="my secret is plum")
    await store.turns.end(turn, ended("plum it is", "1"))
    await store.notes.add("tg:1", "secret: plum", turn=turn.id)
    await grant(store, "tg:1", "commit:x", "9")
    await store.chats.forget("tg:1")
    await store.chats.open("tg:1")
    assert await store.search.candidates("tg:1", "plum") == []
    async with store.database.read() as tx:
        assert await tx.value("SELECT count(*) FROM said WHERE said MATCH 'plum'") == 0
        for table in ("transcript", "notes", "inbox", "outbox", "turns", "conversations", "grants"):
            assert await tx.value(f"SELECT count(*) FROM {table}") == 0, table
