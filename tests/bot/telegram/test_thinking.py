"""Thinking: switched on in /settings, sent with a budget, shown folded while the answer is made."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot import live_replies
from bot.localgram.feed import Drafted
from fakes.bot_process import Process
from fakes.bot_running import OWNER, TelegramScenario
from fakes.localgram import Localgram, is_final
from fakes.model_scripted import ModelServer, Reply, says
from fakes.patience import soon
from fakes.words import saying

THINKS = {"enable_thinking": True, "thinking": True}


async def test_what_is_thought_is_folded_in_the_draft_and_not_in_the_answer(
    scenario: TelegramScenario,
) -> None:
    release = asyncio.Event()
    scenario.script = lambda request: says("Forty-two.", reasoning="Let me see.", hold=release.wait)
    async with scenario.open():
        await scenario.owner.send("the answer?")
        draft = await scenario.owner.event(
            lambda e: e if isinstance(e, Drafted) and "Forty-two." in e.text else None
        )
        release.set()
        answer = await scenario.owner.next_message(where=is_final)
    assert draft.text == "Let me see.\n\nForty-two."
    assert draft.entities == ({"type": "expandable_blockquote", "offset": 0, "length": 11},)
    assert (answer.text, answer.entities) == ("Forty-two.", ())


async def test_the_setting_of_a_chat_reaches_the_model_server(
    gram: Localgram, tmp_path: Path
) -> None:
    olga, mia = gram.user("Olga", id=OWNER, started=True), gram.user("Mia", started=True)
    async with ModelServer(says("Hello."), extras=True, n_ctx=8192) as model:
        process = Process(gram, tmp_path, model.url, OWNER)
        process.allow([mia.id])
        async with process.running():
            await soon(lambda: gram.world.updates.waiting)
            await olga.send("/settings")
            card = await olga.next_message(where=lambda m: m.keyboard)
            await olga.press(card, "512")
            told = await olga.until(card, lambda m: "512" in m.text)
            for person in (olga, mia):
                await person.ask("hi")
    sent = [r for r in model.requests if "hi" in str(r["messages"][-1]["content"])]
    assert told.text.splitlines()[0] == saying("thinking", "512")
    assert [r.get("reasoning_budget_tokens") for r in sent] == [512, None]
    assert [r.get("chat_template_kwargs") for r in sent] == [THINKS, None]
    assert sent[0]["messages"][0] == sent[1]["messages"][0]
    assert sent[0]["tools"] == sent[1]["tools"]


async def test_a_button_ends_a_long_thought(
    scenario: TelegramScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_replies, "OFFER_SECONDS", 0.0)
    pressed = asyncio.Event()
    asked: list[Any] = []

    def script(request: Any) -> Reply:
        asked.append(request)
        if len(asked) == 1:
            return says("never", reasoning="Well, let me see.", hold_thought=pressed.wait)
        return says("Forty-two.")

    scenario.script = script
    async with scenario.open():
        await scenario.owner.send("the answer?")
        card = await scenario.owner.next_message(where=lambda m: m.keyboard)
        assert card.buttons == ["Answer now"]
        press = await scenario.owner.press(card, "Answer now")
        told = await scenario.owner.answer(press)
        assert told.text == "It stops thinking and answers."
        pressed.set()
        answer = await scenario.owner.next_message(where=is_final)
        assert answer.text == "Forty-two."
        await soon(lambda: not any(m.keyboard for m in scenario.owner.messages()))
    assert [r.brief for r in asked] == [False, True]
