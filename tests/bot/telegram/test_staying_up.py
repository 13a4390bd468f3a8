"""Polling: starting, staying, and what was said while nobody listened."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from urllib.parse import urlsplit

import aiohttp
import pytest

from backend.server.launch import free_port
from bot.messaging_apps import AppHealth, AppUnavailable
from bot.telegram.updates import POLL_SECONDS
from fakes.bot_running import TOKEN, TelegramScenario
from fakes.localgram import Localgram, is_final
from fakes.patience import SECONDS, soon
from fakes.words import saying


def said(scenario: TelegramScenario) -> list[str]:
    return [m.text for m in scenario.owner.messages() if m.sender.is_bot]


async def trouble(poll: object) -> str:
    """What polling complains of, as soon as it does."""
    async with asyncio.timeout(SECONDS):
        while not (sentence := poll.problem()):  # type: ignore[attr-defined]
            await asyncio.sleep(0.01)
    return str(sentence)


async def steal(gram: Localgram) -> None:
    """Ask for updates beside the bot, as another copy of it would."""
    async with aiohttp.ClientSession() as session:
        url = f"{gram.url}/bot{TOKEN}/getUpdates"
        async with session.post(url, data={"timeout": "0"}) as answer:
            assert answer.status == 200


async def test_a_wrong_token_is_one_sentence(scenario: TelegramScenario) -> None:
    scenario.config = {"token": "4242:wrong"}
    with pytest.raises(ExceptionGroup) as group:
        async with scenario.open() as run:
            assert run.serving
            await run.serving
    [told] = group.value.exceptions
    assert isinstance(told, AppUnavailable) and told.refused
    assert "token" in str(told)


async def test_a_server_that_is_away_at_start_is_told_and_waited_for(
    scenario: TelegramScenario,
) -> None:
    port = free_port()
    scenario.config = {"base_url": f"http://127.0.0.1:{port}"}
    async with scenario.open() as run:
        assert await trouble(run.bot.poll) == saying("Telegram", "Connection refused")
        assert run.bot.health.problem and run.bot.health.username is None
        assert run.serving and not run.serving.done()
        gram = urlsplit(scenario.gram.url)
        async with forwarded(port, str(gram.hostname), int(gram.port or 0)):
            await scenario.owner.ask("hi")
            assert run.bot.health == AppHealth(run.bot.health.username, run.bot.poll.last_at, None)


@asynccontextmanager
async def forwarded(port: int, host: str, to: int) -> AsyncIterator[None]:
    """What comes to the port goes to another one."""

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(1 << 16):
                writer.write(piece)
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_connection(host, to)
        await asyncio.gather(pipe(reader, here), pipe(there, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()


async def test_the_first_poll_waits_for_no_update(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        await soon(lambda: run.bot.poll.last_at, POLL_SECONDS - 5)


async def test_another_poller_elsewhere_is_named_and_outlived(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        await scenario.owner.ask("hi")
        await steal(scenario.gram)
        sentence = await trouble(run.bot.poll)
        await scenario.owner.ask("hi")
    assert "another copy" in sentence.lower()
    assert run.bot.poll.problem() is None


@pytest.mark.parametrize("fault", ["drop", "flood"])
async def test_polling_goes_on_after(scenario: TelegramScenario, fault: str) -> None:
    scenario.gram.fault("getUpdates", fault, seconds=1.0)  # type: ignore[arg-type]
    async with scenario.open():
        await scenario.owner.send("hi")
        await scenario.owner.next_message()
        await scenario.owner.ask("again")
    assert said(scenario) == ["Hello.", "Hello."]


async def test_nothing_is_acknowledged_that_is_not_kept(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        await scenario.owner.ask("hi")
        file = scenario.folder / "voltaire.db"
        other = sqlite3.connect(file, SECONDS, isolation_level=None, check_same_thread=False)
        with ExitStack() as stack:
            stack.callback(other.close)
            # In a thread: what the bot is just writing is finished by this loop.
            await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
            await scenario.owner.send("are you there?")
            polls = scenario.gram.world.updates.polls
            await asyncio.sleep(0.3)
            assert len(scenario.gram.world.updates.pending()) == 1
            assert scenario.gram.world.updates.polls <= polls + 1
            other.execute("ROLLBACK")
        await scenario.owner.next_message(where=is_final)
        assert len(run.model.requests) == 2


async def test_what_was_said_while_off_is_answered_in_order(
    scenario: TelegramScenario, gram: Localgram
) -> None:
    async with scenario.open():
        await scenario.owner.ask("hi")
    for word in ("one", "two", "three"):
        await scenario.owner.send(word)
    async with scenario.open() as run:
        async with asyncio.timeout(SECONDS):
            while len(said(scenario)) < 4:
                await scenario.owner.next_message()
        words = [r.messages[-1].text.rpartition("\n")[2] for r in run.model.requests]
    assert words == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("choice", "told", "answered"),
    [
        ("Only the last", "Answering 1, skipping 6.", 1),
        ("None", "Answering 0, skipping 7.", 0),
    ],
)
async def test_many_messages_while_off_are_one_card(
    scenario: TelegramScenario, choice: str, told: str, answered: int
) -> None:
    scenario.late = 100.0
    for number in range(7):
        await scenario.owner.send(f"message {number}")
    async with scenario.open() as run:
        card = await scenario.owner.next_message(where=lambda m: m.keyboard)
        assert run.model.requests == []
        await scenario.owner.press(card, choice)
        decided = await scenario.owner.until(card, lambda m: not m.keyboard)
        async with asyncio.timeout(SECONDS):
            while len(run.model.requests) < answered:
                await scenario.owner.next_message(where=is_final)
        await scenario.owner.ask("/help")
        assert len(run.model.requests) == answered
    assert card.text.startswith("You sent 7 messages")
    assert decided.text == told


def test_the_token_is_in_no_sentence(scenario: TelegramScenario) -> None:
    assert TOKEN not in repr(scenario.telegram)


async def test_numbers_that_begin_anew_after_a_quiet_week_lose_nothing(
    scenario: TelegramScenario,
) -> None:
    async with scenario.open():
        await scenario.owner.ask("hi")
        scenario.gram.world.updates._next -= 1_000_000
        with scenario.gram.hold("getUpdates") as hold:
            await scenario.owner.send("a week later")
            await hold.reached()  # the question that acknowledges it
            await scenario.owner.send("and one more")
            hold.release()
            answers = [await scenario.owner.next_message(where=is_final) for _ in range(2)]
    assert [answer.text for answer in answers] == ["Hello.", "Hello."]
