"""Pictures of prompts: kept once by hash, given back to the byte, gone with the prompt that showed them."""

from agent.messages import User
from agent.store import Store
from agent.store.pictures import data_url
from agent.store.transcript import Compaction
from tests.agent.store.test_turns import begin, prompt

RED = data_url("image/png", b"\x89PNG red" * 9000)
BLUE = data_url("image/jpeg", b"\xff\xd8\xff blue")


async def kept(store: Store) -> int:
    return int(await store.database.value("SELECT count(*) FROM pictures"))


async def test_a_picture_is_kept_once_and_comes_back_to_the_byte(store: Store) -> None:
    turn = await begin(store)
    shown = User("<context>\n</context>\nlook", (RED, BLUE)), User("again", (RED,))
    for message in shown:
        await store.turns.add(turn, message)
    assert tuple((await prompt(store, turn))[1:]) == shown
    assert await kept(store) == 2
    longest = await store.database.value("SELECT max(length(extra)) FROM transcript")
    assert longest < 300
    record = await store.turns.record(turn.id)
    assert record and record.own[1:] == shown


async def test_a_picture_leaves_with_its_last_message_of_the_prompt(store: Store) -> None:
    turn = await begin(store)
    for words, urls in (("one", (RED,)), ("two", (RED, BLUE)), ("three", (BLUE,))):
        await store.turns.add(turn, User(words, urls))
    entries = (await store.turns.progress(turn)).entries
    ids = {entry.message.text: entry.id for entry in entries if isinstance(entry.message, User)}
    short = {ids["two"]: User("tw", (BLUE,))}
    gone = [ids["one"]]
    await store.transcript.compact(turn.conversation, Compaction(ids["three"], short, gone, ""))
    assert (await prompt(store, turn))[1:] == [User("tw", (BLUE,)), User("three", (BLUE,))]
    assert await kept(store) == 1
    gone = [ids["two"], ids["three"]]
    await store.transcript.compact(turn.conversation, Compaction(ids["three"], {}, gone, ""))
    assert await kept(store) == 0


async def test_a_picture_that_is_no_longer_there_is_left_out(store: Store) -> None:
    turn = await begin(store)
    await store.turns.add(turn, User("look", (RED, BLUE)))
    await store.database.execute("DELETE FROM pictures WHERE kind = 'image/png'")
    assert (await prompt(store, turn))[1:] == [User("look", (BLUE,))]
