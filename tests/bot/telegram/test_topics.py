"""Topics in a private chat: each has a conversation of its own, and they do not wait for each other."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.messages import User
from agent.model import Request
from bot.localgram import Localgram, Message, Topic, is_final
from fakes.bot_running import OWNER, TOKEN, House
from fakes.model_scripted import Reply, says
from fakes.patience import SECONDS


@pytest.fixture
async def gram() -> AsyncIterator[Localgram]:
    async with Localgram(TOKEN, topics=True) as gram:
        yield gram


@pytest.fixture
def house(gram: Localgram, tmp_path: Path) -> House:
    owner = gram.user("Olga Owner", id=OWNER, username="olga", started=True)
    return House(gram, tmp_path, owner, lambda request: says(f"heard {', '.join(words(request))}"))


def words(request: Request) -> list[str]:
    """What the person has said in this conversation, the last line of each message."""
    said = [m.text for m in request.messages if isinstance(m, User)]
    return [text.splitlines()[-1] for text in said]


async def ask(house: House, text: str, topic: Topic | None) -> Message:
    """The answer that came to the same topic."""
    thread = topic.thread if topic else None
    await house.owner.send(text, thread=thread)
    return await house.owner.next_message(where=lambda m: is_final(m) and m.thread == thread)


async def test_each_topic_has_a_conversation_of_its_own(house: House) -> None:
    async with house.open() as run:
        work, home = [await house.owner.create_topic(name) for name in ("Work", "Home")]
        answers = [
            await ask(house, "w1", work),
            await ask(house, "h1", home),
            await ask(house, "m1", None),
            await ask(house, "w2", work),
            await ask(house, "h2", home),
        ]
        chats = {chat.key for chat in await run.store.chats.recent()}
    assert [(a.thread, a.text) for a in answers] == [
        (work.thread, "heard w1"),
        (home.thread, "heard h1"),
        (None, "heard m1"),
        (work.thread, "heard w1, w2"),
        (home.thread, "heard h1, h2"),
    ]
    assert chats == {"tg:111", f"tg:111:{work.thread}", f"tg:111:{home.thread}"}


async def test_a_busy_topic_keeps_no_other_waiting(house: House) -> None:
    release = asyncio.Event()

    def script(request: Request) -> Reply:
        [word] = words(request)
        return says(f"{word} " * 8, hold=release.wait if word == "slow" else None)

    house.script = script
    async with house.open():
        slow, quick = [await house.owner.create_topic(name) for name in ("Slow", "Quick")]
        await house.owner.send("slow", thread=slow.thread)
        async with asyncio.timeout(SECONDS):
            while house.owner.draft(thread=slow.thread) is None:
                await house.owner.chat().feed.changed()
        answer = await ask(house, "quick", quick)
        assert house.owner.draft(thread=quick.thread) is None
        release.set()
        late = await house.owner.next_message(where=lambda m: m.thread == slow.thread)
    assert (answer.thread, late.thread) == (quick.thread, slow.thread)
    assert late.text == " ".join(["slow"] * 8)


async def test_the_button_under_a_draft_stops_its_topic_alone(house: House) -> None:
    release = asyncio.Event()
    house.script = lambda request: says("Let me see", hold=release.wait)
    async with house.open():
        one, two = [await house.owner.create_topic(name) for name in ("One", "Two")]
        for topic in (one, two):
            await house.owner.send("hi", thread=topic.thread)
            async with asyncio.timeout(SECONDS):
                while house.owner.draft(thread=topic.thread) is None:
                    await house.owner.chat().feed.changed()
        await house.owner.stop_draft(thread=two.thread)
        stopped = await house.owner.next_message(where=lambda m: m.thread == two.thread)
        release.set()
        whole = await house.owner.next_message(where=lambda m: m.thread == one.thread)
    assert (stopped.text, whole.text) == ("Let me see\n\nStopped.", "Let me see")


async def test_new_ends_the_conversation_of_its_topic_alone(house: House) -> None:
    async with house.open():
        work, home = [await house.owner.create_topic(name) for name in ("Work", "Home")]
        await ask(house, "w1", work)
        await ask(house, "h1", home)
        told = await ask(house, "/new", work)
        again = [await ask(house, "w2", work), await ask(house, "h2", home)]
    assert told.thread == work.thread
    assert [a.text for a in again] == ["heard w2", "heard h1, h2"]


async def test_a_button_in_a_topic_acts_there(house: House) -> None:
    async with house.open() as run:
        work = await house.owner.create_topic("Work")
        house.gram.fault("sendMessage", "drop")
        await house.owner.send("w1", thread=work.thread)
        notice = await house.owner.next_message(where=lambda m: m.keyboard)
        await house.owner.press(notice, "Show again")
        answer = await house.owner.next_message(where=is_final)
        async with asyncio.timeout(SECONDS):
            while await run.store.outbox.next(f"tg:111:{work.thread}"):
                await asyncio.sleep(0.01)
    assert (notice.thread, answer.thread, answer.text) == (work.thread, work.thread, "heard w1")
