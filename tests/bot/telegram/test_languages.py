"""A whole conversation in Russian: everything fixed is in the sender's language."""

import asyncio
import json
from typing import Any

import pytest

from agent.language import catalogue, languages, speaking
from agent.model import Request
from bot.localgram import Message
from bot.telegram import handlers
from bot.texts import TEXTS, Texts
from fakes.bot_running import TelegramScenario
from fakes.localgram import Localgram, Person, is_final
from fakes.model_scripted import calls, says
from fakes.patience import SECONDS, soon
from tests.bot.telegram.test_approvals import push


async def told(person: Person, text: str) -> Message:
    """The next message of the bot, buttons or not."""
    await person.send(text)
    return await person.next_message()


async def test_a_whole_conversation(scenario: TelegramScenario, gram: Localgram) -> None:
    person = gram.user("Иван", id=222, language="ru", started=True)
    scenario.owner, scenario.tools = person, [push]

    def say(request: Request) -> Any:
        last = request.messages[-1].text
        if "FAIL" in last:
            raise RuntimeError("a bug")
        if "PUSH" in last:
            return calls("push", what="A")
        return says("Да.")

    scenario.script = say
    async with scenario.open() as run:
        start = await told(person, "/start")
        await person.send("PUSH")
        asked = await person.next_message(where=lambda m: "Можно?" in m.text)
        query = await person.press(asked, "Разрешить один раз")
        allowed = await person.answer(query)
        await person.next_message(where=is_final)
        proposal = await told(person, "/schedule завтра в 9:00 позвонить в банк")
        await person.press(proposal, "Запланировать")
        planned = await person.until(proposal, lambda m: not m.keyboard)
        nothing = await person.ask("/stop")
        await person.send("FAIL")
        failed = await person.next_message(
            where=lambda m: "В программе что-то пошло не так" in m.text
        )
        known = await run.store.chats.get("tg:222")
    assert "Я Voltaire, личный помощник" in start.text and "Telegram" in start.text
    assert allowed.text == "Разрешено."
    assert proposal.text.startswith(
        "Задание «позвонить в банк», один раз, "
    ) and planned.text.startswith("Задание 1: ")
    with speaking("ru"):
        assert nothing.text == TEXTS.nothing_runs
    assert failed.text and known and known.language == "ru"


async def test_a_chat_keeps_the_language_that_was_chosen_in_settings(
    scenario: TelegramScenario,
) -> None:
    async with scenario.open() as run:
        await scenario.owner.send("/settings")
        card = await scenario.owner.next_message()
        await scenario.owner.press(card, "Français")
        french = await scenario.owner.until(card, lambda m: "Langue" in m.text)
        nothing = await scenario.owner.ask("/stop")
        await scenario.owner.press(french, "• Français")
        await scenario.owner.press(french, "comme votre application")
        await scenario.owner.until(card, lambda m: "Language" in m.text)
        again = await scenario.owner.ask("/stop")
        known = await run.store.chats.get("tg:111")
    assert nothing.text == "Rien n'est en cours."
    assert again.text == Texts().nothing_runs
    assert known and known.chosen_language == ""


async def test_a_configured_language_is_that_of_all(
    scenario: TelegramScenario, gram: Localgram
) -> None:
    scenario.config = {"language": "es"}
    stranger = gram.user("Sam", id=333, language="de", started=True)
    async with scenario.open():
        said = await scenario.owner.ask("/stop")
        answer = await stranger.ask("hello")
        await soon(lambda: len(gram.called("setMyCommands")) >= 3)
    assert said.text == "No hay nada en marcha."
    assert answer.text.startswith("Este asistente es privado.")
    assert {"language_code"} & {key for made in gram.called("setMyCommands") for key in made.fields} == set()  # fmt: skip


async def test_telegram_is_told_the_commands_in_every_language_once(
    scenario: TelegramScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "languages", languages)
    gram, others = scenario.gram, languages()[1:]

    def registered() -> list[str]:
        made = gram.called("setMyCommands")
        return [each.fields["language_code"] for each in made if "language_code" in each.fields]

    async with scenario.open() as run:
        await soon(lambda: len(registered()) == 3 * len(others))
        key = "telegram.registered"
        async with asyncio.timeout(SECONDS):
            while not await run.store.key_values.get(key, str):
                await asyncio.sleep(0.01)
        assert catalogue.cache_info().currsize == 0, "kept, though nobody speaks it"
    russian = [
        json.loads(made.fields["commands"])
        for made in gram.called("setMyCommands")
        if made.fields.get("language_code") == "ru"
    ]
    with speaking("ru"):
        assert {each["description"] for each in russian[0]} <= set(TEXTS.commands.values())
    async with scenario.open():
        before = len(gram.called("setMyShortDescription"))
        await soon(lambda: len(gram.called("setMyShortDescription")) > before)
        await scenario.owner.ask("/stop")
    assert len(registered()) == 3 * len(others)


async def test_an_owner_is_asked_in_their_own_language_for_another_s_chat(
    scenario: TelegramScenario, gram: Localgram
) -> None:
    owner = scenario.owner = gram.user("Иван", id=222, language="ru", started=True)
    member = gram.user("Max", id=444, language="de", started=True)
    scenario.config = {"allow": [444]}
    scenario.tools = [push]

    def say(request: Request) -> Any:
        return calls("push", what="A") if "PUSH" in request.messages[-1].text else says("Gut.")

    scenario.script = say
    async with scenario.open():
        await owner.ask("привет")
        await member.send("PUSH")
        asked = await owner.next_message(where=lambda m: "Можно?" in m.text)
        await owner.press(asked, "Отклонить")
        denied = await owner.until(asked, lambda m: not m.keyboard)
        await member.next_message(where=is_final)
    assert "✗ Отклонено: Иван" in denied.text
