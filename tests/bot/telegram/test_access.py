"""Who may talk, and what it costs when they may not."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from agent.store import open_store
from bot.access import BURST, MOST_GUARDED, Access, Sender
from bot.localgram.feed import Answered
from bot.texts import Texts
from fakes.bot_running import TelegramScenario
from fakes.localgram import Person, is_final
from fakes.model_scripted import says
from fakes.telegram_person import react
from fakes.words import saying

TEXTS = Texts()


def answers(person: Person) -> list[str]:
    return [m.text for m in person.messages() if m.sender.is_bot]


async def test_a_stranger_gets_one_line_a_day_and_costs_nothing(scenario: TelegramScenario) -> None:
    stranger = scenario.gram.user("Sam Stranger")
    async with scenario.open() as run:
        for words in ("hi", "/start", "/help", "please", "/status", "/nonsense"):
            await stranger.send(words)
        await scenario.owner.ask("hi")
        assert len(run.model.requests) == 1
        assert await run.store.inbox.waiting(f"tg:{stranger.id}") == []
    assert answers(stranger) == [TEXTS.stranger]


async def test_a_stranger_asks_and_the_owner_decides_once(scenario: TelegramScenario) -> None:
    sam, zoe = scenario.gram.user("Sam Stranger"), scenario.gram.user("Zoe Zero")
    async with scenario.open():
        for person in (sam, zoe):
            await person.send("/pair")
            await person.send("/pair")
        first = await scenario.owner.next_message(where=lambda m: m.text.startswith("Sam"))
        second = await scenario.owner.next_message(where=lambda m: m.text.startswith("Zoe"))
        await scenario.owner.press(first, "Let in")
        let_in = await scenario.owner.until(first, lambda m: not m.keyboard)
        await sam.next_message(where=lambda m: m.text == TEXTS.paired["member"])
        await scenario.owner.press(second, "Refuse")
        refused = await scenario.owner.until(second, lambda m: not m.keyboard)
        answer = await sam.ask("hello")
        await zoe.send("hello?")
        await zoe.send("/pair")
        await scenario.owner.ask("hi")
    assert first.text == TEXTS.wants_in.format(name=f"Sam Stranger ({sam.id})")
    assert let_in.text == saying("Sam Stranger", "let in", "Olga Owner")
    assert refused.text == saying("Zoe Zero", "refused", "Olga Owner")
    assert answer.text == "Hello."
    assert answers(sam)[:2] == [TEXTS.asked_to_pair, TEXTS.paired["member"]]
    assert answers(zoe) == [TEXTS.asked_to_pair]


async def test_a_pairing_link_makes_the_first_owner_once(scenario: TelegramScenario) -> None:
    scenario.config = {"owners": frozenset()}
    late = scenario.gram.user("Late Comer")
    async with scenario.open() as run:
        code = await run.store.people.make_code("owner", 600)
        welcome = await scenario.owner.ask(f"/start {code}")
        used = await late.ask(f"/start {code}")
        wrong = await late.ask("/start nonsense")
        answer = await scenario.owner.ask("hi")
        assert run.bot.access.owners == {str(scenario.owner.id)}
    assert welcome.text == TEXTS.paired["owner"]
    assert used.text == wrong.text
    assert used.text == TEXTS.bad_code
    assert answer.text == "Hello."


async def test_guesses_of_a_code_are_a_flood(scenario: TelegramScenario) -> None:
    """Each costs a write and a reply; the code itself has 128 bits."""
    sam = scenario.gram.user("Sam Stranger")
    async with scenario.open() as run:
        run.bot.access._clock = Hand()
        for number in range(BURST + 5):
            await sam.send(f"/start guess{number}")
        code = await run.store.people.make_code("member", 600)
        await sam.send(f"/start {code}")
        await scenario.owner.ask("hi")
        assert await run.store.people.use_code("telegram", "7", "Zoe", code) == "member"
        sql = "SELECT count(*) FROM outbox WHERE chat = ?"
        assert await run.store.database.value(sql, f"tg:{sam.id}") == BURST + 1


async def test_edits_are_a_flood_as_messages_are(scenario: TelegramScenario) -> None:
    mia = scenario.gram.user("Mia Member")
    scenario.config = {"allow": frozenset({mia.id})}
    scenario.script = lambda request: says("", hold=asyncio.Event().wait)
    async with scenario.open() as run:
        run.bot.access._clock = Hand()
        said = await mia.send("hello")
        for number in range(BURST + 5):
            await mia.edit(said, f"hello {number}")
        await mia.next_message(where=lambda m: m.text == TEXTS.slower)
        await scenario.owner.ask("/help")
        sql = "SELECT count(*) FROM inbox WHERE chat = ?"
        assert await run.store.database.value(sql, f"tg:{mia.id}") == BURST


async def test_strangers_cannot_press_buttons_or_edit_their_way_in(
    scenario: TelegramScenario,
) -> None:
    sam = scenario.gram.user("Sam Stranger")
    group = scenario.gram.group("Team", scenario.owner, sam)
    async with scenario.open() as run:
        question = await scenario.owner.next_message(chat=group)
        query = await sam.press(question, "Let in")
        told: Answered = await sam.answer(query)
        said = await sam.send("@voltaire_bot hi", chat=group)
        await sam.edit(said, "@voltaire_bot hello")
        await scenario.owner.ask("hi")
        assert len(run.model.requests) == 1
    assert told.text == TEXTS.not_yours
    assert [m.text for m in sam.messages(chat=group) if m.sender.is_bot] == [TEXTS.added_to_group]


async def test_a_group_is_let_in_by_its_owner(scenario: TelegramScenario) -> None:
    mia = scenario.gram.user("Mia Member")
    group = scenario.gram.group("Team", scenario.owner, mia)
    async with scenario.open():
        question = await scenario.owner.next_message(chat=group)
        await scenario.owner.press(question, "Let in")
        let_in = await scenario.owner.until(question, lambda m: not m.keyboard)
        await mia.send("@voltaire_bot hi", chat=group)
        answer = await mia.next_message(chat=group, where=lambda m: m.text == "Hello.")
    assert is_final(answer)
    assert let_in.text == saying("Team", "let in by Olga Owner")


async def test_only_who_asked_judges_an_answer(scenario: TelegramScenario) -> None:
    mia = scenario.gram.user("Mia Member")
    group = scenario.gram.group("Team", scenario.owner, mia)
    async with scenario.open() as run:
        question = await scenario.owner.next_message(chat=group)
        await scenario.owner.press(question, "Let in")
        await scenario.owner.until(question, lambda m: not m.keyboard)
        group.status = "administrator"  # only such a bot is told of reactions
        await mia.send("@voltaire_bot hi", chat=group)
        answer = await mia.next_message(chat=group, where=lambda m: m.text == "Hello.")
        for person, emoji, kept in ((mia, "👎", -1), (scenario.owner, "👍", -1), (mia, "", None)):
            await react(person, answer, emoji)
            await scenario.owner.ask("/stop")  # handled after it
            sql = "SELECT feedback FROM turns ORDER BY started_at LIMIT 1"
            assert await run.store.database.value(sql) == kept


async def test_groups_can_be_off(scenario: TelegramScenario) -> None:
    scenario.config = {"groups": "off"}
    group = scenario.gram.group("Team", scenario.owner)
    async with scenario.open() as run:
        await scenario.owner.send("@voltaire_bot hi", chat=group)
        await scenario.owner.send("/help@voltaire_bot", chat=group)
        said = await scenario.owner.send("hello all", chat=group)
        await scenario.owner.edit(said, "@voltaire_bot hello")
        await scenario.owner.ask("hi")
        assert len(run.model.requests) == 1
    assert [m for m in scenario.owner.messages(chat=group) if m.sender.is_bot] == []


async def test_a_business_account_is_declined_in_one_line(scenario: TelegramScenario) -> None:
    stranger = scenario.gram.user("Sam Stranger", started=True)
    async with scenario.open():
        for person, enabled in ((scenario.owner, True), (scenario.owner, False), (stranger, True)):
            body = {
                "id": f"b{person.id}{enabled}",
                "user": person.account.json(),
                "user_chat_id": person.id,
                "date": 1,
                "is_enabled": enabled,
            }
            scenario.gram.world.updates.put("business_connection", body)
        told = await scenario.owner.next_message()
        await scenario.owner.ask("hi")
    assert [m.text for m in scenario.owner.messages() if m.sender.is_bot] == [told.text, "Hello."]
    assert (told.text, answers(stranger)) == (TEXTS.no_business, [])


async def test_everything_in_a_group_can_be_answered(scenario: TelegramScenario) -> None:
    scenario.config = {"groups": "all"}
    group = scenario.gram.group("Team", scenario.owner)
    async with scenario.open():
        await scenario.owner.send("no mention", chat=group)
        answer = await scenario.owner.next_message(chat=group, where=is_final)
    assert answer.text == "Hello." and answer.reply_to is not None


@dataclass
class Hand:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_flood_is_told_once_and_ebbs(tmp_path: Path) -> None:
    clock = Hand()
    async with open_store(tmp_path / "v.db") as store:
        owners, members = frozenset({"1"}), frozenset({"2"})
        access = Access(store.people, "telegram", owners, members, clock=clock)
        member, owner = Sender("2", "Mia"), Sender("1", "Olga")
        assert [access.flood(member) for _ in range(BURST)] == ["no"] * BURST
        assert [access.flood(member) for _ in range(3)] == ["first", "more", "more"]
        assert [access.flood(owner) for _ in range(BURST + 5)] == ["no"] * (BURST + 5)
        clock.now += 2.0
        assert [access.flood(member) for _ in range(2)] == ["no", "first"]
        for number in range(MOST_GUARDED + 5):
            access.flood(Sender(f"s{number}", "Sam"))
        assert len(access._floods) == MOST_GUARDED
