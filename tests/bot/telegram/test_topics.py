"""Topics in a private chat: each has a conversation of its own, and they do not wait for each other."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.messages import User
from agent.model import Request
from bot.localgram import Message, Topic
from fakes.bot_running import OWNER, TOKEN, TelegramScenario
from fakes.localgram import Localgram, is_final
from fakes.model_scripted import says
from fakes.patience import SECONDS
from fakes.telegram_person import create_topic


@pytest.fixture
async def gram() -> AsyncIterator[Localgram]:
    async with Localgram(TOKEN, topics=True) as gram:
        yield gram


@pytest.fixture
def scenario(gram: Localgram, tmp_path: Path) -> TelegramScenario:
    owner = gram.user("Olga Owner", id=OWNER, username="olga", started=True)
    return TelegramScenario(
        gram, tmp_path, owner, script=lambda request: says(f"heard {', '.join(words(request))}")
    )


def words(request: Request) -> list[str]:
    """What the person has said in this conversation, the last line of each message."""
    said = [m.text for m in request.messages if isinstance(m, User)]
    return [text.splitlines()[-1] for text in said]


async def ask(scenario: TelegramScenario, text: str, topic: Topic | None) -> Message:
    """The answer that came to the same topic."""
    thread = topic.thread if topic else None
    await scenario.owner.send(text, thread=thread)
    return await scenario.owner.next_message(where=lambda m: is_final(m) and m.thread == thread)


async def test_each_topic_has_a_conversation_of_its_own(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        work, home = [await create_topic(scenario.owner, name) for name in ("Work", "Home")]
        answers = [
            await ask(scenario, "w1", work),
            await ask(scenario, "h1", home),
            await ask(scenario, "m1", None),
            await ask(scenario, "w2", work),
            await ask(scenario, "h2", home),
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


async def test_the_button_under_a_draft_stops_its_topic_alone(scenario: TelegramScenario) -> None:
    release = asyncio.Event()
    scenario.script = lambda request: says("Let me see", hold=release.wait)
    async with scenario.open():
        one, two = [await create_topic(scenario.owner, name) for name in ("One", "Two")]
        for topic in (one, two):
            await scenario.owner.send("hi", thread=topic.thread)
            async with asyncio.timeout(SECONDS):
                while scenario.owner.draft(thread=topic.thread) is None:
                    await scenario.owner.chat().feed.changed()
        await scenario.owner.stop_draft(thread=two.thread)
        stopped = await scenario.owner.next_message(where=lambda m: m.thread == two.thread)
        release.set()
        whole = await scenario.owner.next_message(where=lambda m: m.thread == one.thread)
    assert (stopped.text, whole.text) == ("Let me see\n\nStopped.", "Let me see")


async def test_a_button_in_a_topic_acts_there(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        work = await create_topic(scenario.owner, "Work")
        scenario.gram.fault("sendMessage", "drop")
        await scenario.owner.send("w1", thread=work.thread)
        notice = await scenario.owner.next_message(where=lambda m: m.keyboard)
        await scenario.owner.press(notice, "Show again")
        answer = await scenario.owner.next_message(where=is_final)
        async with asyncio.timeout(SECONDS):
            while await run.store.outbox.next(f"tg:111:{work.thread}"):
                await asyncio.sleep(0.01)
    assert (notice.thread, answer.thread, answer.text) == (work.thread, work.thread, "heard w1")
