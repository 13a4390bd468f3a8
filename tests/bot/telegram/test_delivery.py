"""Sends that go wrong: nothing is lost in silence, nothing comes twice unasked."""

import asyncio

import pytest

from bot.channel import OutgoingMessage
from bot.telegram.app import TelegramApp
from bot.texts import Texts
from fakes.bot_running import RunningBot, TelegramScenario
from fakes.localgram import is_final
from fakes.model_scripted import says
from fakes.patience import SECONDS
from fakes.telegram_person import block, unblock


def finals(scenario: TelegramScenario) -> list[str]:
    answers = [m for m in scenario.owner.messages() if m.sender.is_bot and is_final(m)]
    return [m.text for m in answers if m.edited is None]


async def postponed(run: RunningBot[TelegramApp]) -> str:
    """Why the oldest waiting text could not be sent."""
    async with asyncio.timeout(SECONDS):
        while not ((row := await run.store.outbox.next("tg:111")) and row.error):
            await asyncio.sleep(0.01)
    return row.error


async def drained(run: RunningBot[TelegramApp]) -> None:
    """Nothing waits to be sent any more."""
    async with asyncio.timeout(SECONDS):
        while await run.store.outbox.next(f"tg:{111}"):
            await asyncio.sleep(0.01)


async def test_an_answer_lost_on_its_way_back_is_told_and_not_repeated(
    scenario: TelegramScenario,
) -> None:
    scenario.gram.fault("sendMessage", "execute_then_drop")
    async with scenario.open() as run:
        asked = await scenario.owner.send("hi")
        notice = await scenario.owner.next_message(where=lambda m: m.keyboard)
        assert notice.reply_to == asked.id
        assert notice.text == Texts().in_doubt
        assert notice.buttons == ["Show again"]
        assert await run.store.outbox.counts() == {"uncertain": 1}
    assert finals(scenario) == ["Hello."]


async def test_a_send_that_never_arrived_is_shown_once_by_its_button(
    scenario: TelegramScenario,
) -> None:
    scenario.gram.fault("sendMessage", "drop")
    async with scenario.open() as run:
        await scenario.owner.send("hi")
        notice = await scenario.owner.next_message(where=lambda m: m.keyboard)
        assert finals(scenario) == []
        first = await scenario.owner.press(notice, "Show again")
        again = await scenario.owner.press(notice, "Show again")
        answers = [await scenario.owner.answer(first), await scenario.owner.answer(again)]
        await scenario.owner.next_message(where=is_final)
        told = await scenario.owner.until(notice, lambda m: not m.keyboard)
        await drained(run)
    assert [a.text for a in answers] == ["", Texts().not_in_doubt]
    assert told.text == "Sent again."
    assert finals(scenario) == ["Hello."]


@pytest.mark.parametrize("fault", ["truncate", "delay"])
async def test_half_an_answer_and_a_late_one_are_in_doubt(
    scenario: TelegramScenario, fault: str
) -> None:
    scenario.config = {"answer_seconds": 0.5}
    scenario.gram.fault("sendMessage", fault, seconds=30.0)  # type: ignore[arg-type]
    async with scenario.open():
        await scenario.owner.send("hi")
        await scenario.owner.next_message(where=lambda m: m.keyboard)
    assert finals(scenario) == ["Hello."]


@pytest.mark.parametrize("fault", ["bad_gateway", "unauthorized"])
async def test_what_was_surely_not_sent_is_sent_again(
    scenario: TelegramScenario, fault: str
) -> None:
    scenario.gram.fault("sendMessage", fault)  # type: ignore[arg-type]
    async with scenario.open() as run:
        await scenario.owner.ask("hi")
        await drained(run)
        assert await run.store.outbox.counts() == {}
    assert finals(scenario) == ["Hello."]


async def test_flood_control_is_obeyed_in_its_chat_alone(scenario: TelegramScenario) -> None:
    other = scenario.gram.user("Mia Member")
    scenario.config = {"allow": frozenset({other.id})}
    scenario.gram.fault("sendMessage", "flood", seconds=4, chat=scenario.owner.id)
    async with scenario.open() as run:
        started = asyncio.get_running_loop().time()
        await scenario.owner.send("hi")
        assert "Flood control exceeded" in await postponed(run)
        await other.ask("hi")
        early = finals(scenario)
        assert early == [] or asyncio.get_running_loop().time() - started > 4
        await scenario.owner.next_message(where=is_final)
        assert asyncio.get_running_loop().time() - started > 4
    assert finals(scenario) == ["Hello."]


async def test_a_chat_that_blocked_the_bot_rests_until_it_is_back(
    scenario: TelegramScenario,
) -> None:
    async with scenario.open() as run:
        await scenario.owner.ask("hi")
        await block(scenario.owner)
        await run.store.outbox.add("tg:111", [OutgoingMessage("while away").to_json()])
        assert "blocked" in await postponed(run)
        async with asyncio.timeout(SECONDS):
            while not (chat := await run.store.chats.get("tg:111")) or not chat.blocked:
                await asyncio.sleep(0.01)
        assert [c.error for c in scenario.gram.called("sendMessage")].count("") == 1
        await unblock(scenario.owner)
        late = await scenario.owner.next_message(where=lambda m: m.text == "while away")
    assert is_final(late)


async def test_an_owner_who_never_wrote_is_told_once_they_do(scenario: TelegramScenario) -> None:
    second = scenario.gram.user("Otto Owner")
    scenario.config = {"owners": frozenset({second.id})}
    async with scenario.open() as run:
        await run.store.outbox.add(f"tg:{second.id}", [OutgoingMessage("news").to_json()])
        async with asyncio.timeout(SECONDS):
            while not (chat := await run.store.chats.get(f"tg:{second.id}")) or not chat.blocked:
                await asyncio.sleep(0.01)
        await second.send("/help")
        news = await second.next_message()
    assert news.text == "news"


async def test_a_very_long_answer_comes_as_a_document(scenario: TelegramScenario) -> None:
    words = [" ".join(f"{part}-{n}" for n in range(300)) for part in range(20)]
    text = "\n\n".join(f"## Part {part}\n\n{said}" for part, said in enumerate(words))
    scenario.script = lambda request: says(text, size=8000)
    async with scenario.open():
        await scenario.owner.send("all of it")
        document = await scenario.owner.next_message(where=lambda m: m.media)
    assert document.media and document.media.kind == "document"
    assert document.media.file.content.decode() == text.strip()
    assert [m[:6] for m in finals(scenario)] == ["Part 0", ""]
    assert finals(scenario)[0].endswith(f"{len(text.strip()):,} characters, is in answer.md below.")


async def test_formatting_that_is_refused_comes_as_plain_text(scenario: TelegramScenario) -> None:
    """Telegram's parser may change; the words must come through all the same."""
    scenario.script = lambda request: says("**Hello** there")
    with scenario.gram.hold("sendMessage") as hold:
        async with scenario.open():
            await scenario.owner.send("hi")
            call = await hold.reached()
            assert '"bold"' in call.fields["entities"]
            assert isinstance(call.fields, dict)
            call.fields["entities"] = '[{"type": "bold", "offset": 0, "length": 999}]'
            hold.release()
            answer = await scenario.owner.next_message()
    assert (answer.text, answer.entities) == ("Hello there", ())


async def test_a_group_that_became_a_supergroup_is_followed(scenario: TelegramScenario) -> None:
    group = scenario.gram.group("Team", scenario.owner)
    async with scenario.open() as run:
        await scenario.owner.send("@voltaire_bot hi", chat=group)
        await scenario.owner.next_message(chat=group, where=is_final)
        upgraded = scenario.gram.migrate(group)
        await run.store.outbox.add(f"tg:{group.id}", [OutgoingMessage("news").to_json()])
        news = await scenario.owner.next_message(chat=upgraded, where=lambda m: m.text == "news")
    assert news.chat == upgraded.id
