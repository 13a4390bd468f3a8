"""Whatever comes as an update, the next ordinary message of the same person is answered."""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from bot.commands.table import NAMES
from bot.localgram.message import Message
from bot.rate_limiter import Rate
from bot.telegram import message_calls
from fakes.bot_running import OWNER, TelegramScenario
from fakes.hostile_json import mutated
from fakes.hostile_updates import everyday_updates, message
from fakes.model_scripted import says

AT_ONCE = 20  # hostile updates before the next ordinary message
SEED = 20


def answer_to(number: int) -> Callable[[Message], bool]:
    return lambda message: message.text == f"answer to ordinary {number}"


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.slow)])
async def test_after_mutated_updates_an_ordinary_message_is_answered(
    scenario: TelegramScenario, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    for rate in ("PRIVATE", "OVERALL"):  # Telegram's, which take minutes here
        monkeypatch.setattr(message_calls, rate, Rate(10_000, 0.001, 1))
    chance = random.Random(SEED)
    everyday = everyday_updates(OWNER, chance)
    ordinary = re.compile(r"ordinary \d+")

    def script(request: Any) -> Any:
        found = ordinary.findall(str(request.messages[-1].text))
        return says(f"answer to {found[-1]}" if found else "Hello.")

    scenario.script = script
    async with scenario.open() as run:
        # That somebody who floods the bot is not answered is another test's matter.
        monkeypatch.setattr(run.bot.access, "flood", lambda sender: "no")
        for number in range(count // AT_ONCE):
            for _ in range(AT_ONCE):
                kind, body = chance.choice(everyday)
                scenario.gram.inject(kind, mutated(body, chance))
            await scenario.owner.send(f"ordinary {number}")
            await scenario.owner.next_message(where=answer_to(number))
        assert run.serving and not run.serving.done()
        assert count < 100 or await run.store.set_aside.count() > count // 20


async def test_half_a_sign_is_no_reason_to_set_a_message_aside(scenario: TelegramScenario) -> None:
    half = "\ud83d"
    texts = [
        half,
        *(f"/{name} {half}x" for name in sorted(NAMES - {"freeze", "stop"})),
        f"/unknown{half}",
        f"/schedule at 5 {half}",
    ]
    bodies: list[dict[str, Any]] = [{"text": text} for text in texts]
    bodies += [
        {"text": "x", "quote": {"text": half, "position": 0}},
        {"caption": half, "photo": []},
    ]
    bodies += [{"text": "x", "from": {**message(OWNER)["from"], "first_name": half}}]
    scenario.script = lambda request: says("Hello.")
    async with scenario.open() as run:
        for body in bodies:
            scenario.gram.inject("message", {**message(OWNER), **body})
        await scenario.owner.ask("ordinary")
        assert await run.store.set_aside.count() == 0
