import pytest

from agent.messages import User
from agent.store import Incoming, Store
from agent.store.turns import RenderedMessage
from tests.agent.store.conftest import Clock


async def test_what_comes_in_is_given_back_unchanged(store: Store, clock: Clock) -> None:
    said = Incoming(
        "tg:1",
        "telegram",
        "77",
        "look\nat this",
        "message",
        "5",
        "Ann",
        "an old line",
        ("report.pdf (2 KB)",),
        ("data:image/png;base64,AA==",),
        ("forwarded from Bob",),
        '{"message_id": 5}',
        1.5,
        1_799_999_990.0,
        author="111",
    )
    assert await store.inbox.add(said)
    [row] = await store.inbox.waiting("tg:1")
    assert (row.incoming, row.received_at) == (said, clock.now)


async def test_an_update_counts_once_whatever_comes_with_it(store: Store) -> None:
    assert await store.inbox.add(Incoming("tg:1", "telegram", "1", "one"))
    assert not await store.inbox.add(Incoming("tg:2", "telegram", "1", "another"))
    assert await store.inbox.add(Incoming("tg:1", "cli", "1", "of another source"))
    assert await store.inbox.chats_waiting() == [("tg:1", "telegram"), ("tg:1", "cli")]
    assert await store.inbox.count_waiting() == 2


async def test_an_edit_of_a_waiting_message_corrects_it_in_place(store: Store) -> None:
    await store.inbox.add(Incoming("tg:1", "telegram", "1", "teh cat", ref="9"))
    await store.inbox.add(Incoming("tg:1", "telegram", "2", "the cat", "edit", ref="9"))
    [row] = await store.inbox.waiting("tg:1")
    assert row.incoming.text == "the cat"


async def test_an_edit_of_a_taken_message_waits_and_knows_what_it_corrects(store: Store) -> None:
    await store.inbox.add(Incoming("tg:1", "telegram", "1", "teh cat", ref="9"))
    rows = await store.inbox.waiting("tg:1")
    await store.turns.begin("t1", rows, RenderedMessage("", User("teh cat")))
    edit = Incoming("tg:1", "telegram", "2", "the cat", "edit", ref="9")
    await store.inbox.add(edit)
    [row] = await store.inbox.waiting("tg:1")
    assert (row.incoming.text, await store.inbox.text_before_edit(row.incoming)) == (
        "the cat",
        "teh cat",
    )


async def test_an_edit_in_another_chat_corrects_nothing_here(store: Store) -> None:
    await store.inbox.add(Incoming("tg:1", "telegram", "1", "mine", ref="9"))
    await store.inbox.add(Incoming("tg:2", "telegram", "2", "theirs", "edit", ref="9"))
    [row] = await store.inbox.waiting("tg:1")
    assert row.incoming.text == "mine"


async def test_waiting_rows_can_be_put_aside(store: Store) -> None:
    for number in range(4):
        await store.inbox.add(Incoming("tg:1", "telegram", str(number), str(number)))
    rows = await store.inbox.waiting("tg:1")
    assert await store.inbox.discard("tg:1", [rows[0].id, rows[2].id]) == 2
    left = await store.inbox.waiting("tg:1")
    assert [row.incoming.text for row in left] == ["1", "3"]


async def test_a_chat_that_speaks_again_rests_no_more(store: Store) -> None:
    await store.chats.open("tg:1")
    await store.chats.set_blocked("tg:1", blocked=True)
    await store.inbox.add(Incoming("tg:1", "telegram", "1", "hello"))
    chat = await store.chats.get("tg:1")
    assert chat and not chat.blocked


async def test_half_a_surrogate_pair_cannot_stop_a_message(store: Store) -> None:
    await store.inbox.add(Incoming("tg:1", "telegram", "1", "bad \ud83d text", quote="\udc00"))
    [row] = await store.inbox.waiting("tg:1")
    assert (row.incoming.text, row.incoming.quote) == ("bad ? text", "?")


@pytest.mark.parametrize(
    "author",
    [
        "",
        "@eve:x",
        "@Tim:x",
        "@tim:x ",
        "@tim:y",
        "tim",
        "%",
        "@tim:x\0",
        "@tim",
        "@tim:x:8448",
        "@tim:x.org",
        "@t\u0456m:x",
    ],
)
async def test_only_its_author_corrects_a_message_or_takes_it_back(
    store: Store, author: str
) -> None:
    await store.inbox.add(Incoming("mx:1", "matrix", "1", "yes, do", ref="9", author="@tim:x"))
    edit = Incoming("mx:1", "matrix", "2", "no", "edit", ref="9", author=author)
    assert not await store.inbox.changes_message(edit)
    await store.inbox.add(edit)
    assert await store.inbox.take_back("matrix", "9", author) == ""
    rows = await store.inbox.waiting("mx:1")
    assert rows[0].incoming.text == "yes, do"
    await store.turns.begin("t1", rows[:1], RenderedMessage("", User("yes, do")))
    assert await store.inbox.take_back("matrix", "9", author) == ""
    assert await store.inbox.take_back("matrix", "9", "@tim:x") == "mx:1"
