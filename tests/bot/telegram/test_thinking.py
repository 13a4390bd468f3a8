"""Thinking: switched on in /settings, sent with a budget, shown folded while the answer is made."""

import asyncio
from pathlib import Path

from bot.localgram import Localgram, is_final
from bot.localgram.feed import Drafted
from fakes.bot_process import Process
from fakes.bot_running import OWNER, TelegramScenario
from fakes.model_scripted import ModelServer, says
from fakes.patience import soon


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
    assert told.text.startswith("Thinking before an answer, in tokens: 512\n")
    assert [r.get("reasoning_budget_tokens") for r in sent] == [512, None]
    assert [r.get("chat_template_kwargs") for r in sent] == [{"enable_thinking": True}, None]
    assert sent[0]["messages"][0] == sent[1]["messages"][0]
    assert sent[0]["tools"] == sent[1]["tools"]
