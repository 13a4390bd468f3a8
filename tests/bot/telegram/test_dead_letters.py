"""Updates that cannot be parsed or handled: set aside, counted and told, and nothing waits behind them."""

import json
import time
from typing import Any

import pytest

from backend.server.launch import free_port
from bot import intake
from fakes.bot_running import OWNER, TelegramScenario
from fakes.patience import soon
from fakes.stored import set_aside

POLL: dict[str, Any] = {
    "poll": {
        "id": "5",
        "question": "Tea?",
        "options": [{"text": "yes", "voter_count": 0}],
        "total_voter_count": 0,
        "is_closed": False,
        "is_anonymous": True,
        "type": "regular",
    }
}
VOICE: dict[str, Any] = {"voice": {"file_id": "v", "file_unique_id": "u", "duration": 10**17}}


def message(user: int = OWNER, **fields: Any) -> dict[str, Any]:
    sender = {"id": user, "is_bot": False, "first_name": "Olga", "language_code": "en"}
    chat = {"id": user, "type": "private", "first_name": "Olga"}
    return {"message_id": 9, "date": int(time.time()), "chat": chat, "from": sender, **fields}


def notices(scenario: TelegramScenario) -> list[str]:
    return [m.text for m in scenario.owner.messages() if "were set aside" in m.text]


@pytest.mark.parametrize("by_webhook", [False, True])
async def test_what_cannot_be_parsed_is_kept_and_told_and_stops_nothing(
    scenario: TelegramScenario, by_webhook: bool
) -> None:
    if by_webhook:
        here = f"127.0.0.1:{free_port()}"
        scenario.config = {"webhook_url": f"http://{here}", "webhook_listen": here}
    numbers = [scenario.gram.inject("message", message(**fields)) for fields in (POLL, VOICE)]
    async with scenario.open() as run:
        assert (await scenario.owner.ask("hi")).text == "Hello."
        await soon(lambda: len(notices(scenario)) == 1)
        await soon(lambda: not scenario.gram.world.updates.pending())
        letters = await set_aside(run.store)
        await scenario.owner.send("/status")
        await scenario.owner.next_message(where=lambda m: "2 set aside" in m.text and m.keyboard)
    assert [json.loads(letter.raw)["update_id"] for letter in letters] == numbers
    assert json.loads(letters[0].raw)["message"]["poll"] == POLL["poll"]
    assert "persistent_id" in letters[0].error
    async with scenario.open() as run:
        assert (await scenario.owner.ask("hi")).text == "Hello."
        assert await run.store.set_aside.count() == 2
    assert len(notices(scenario)) == 1


async def test_a_day_later_the_rest_is_told_in_one_sentence(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        scenario.gram.inject("message", message(**POLL))
        await soon(lambda: len(notices(scenario)) == 1)
        for number in range(3):
            scenario.gram.inject("message", message(message_id=number, **POLL))
        await scenario.owner.ask("hi")
        assert await run.store.set_aside.count() == 4
    assert len(notices(scenario)) == 1
    scenario.late = 90_000.0
    async with scenario.open():
        await soon(lambda: len(notices(scenario)) == 2)
    assert [text.split()[1] for text in notices(scenario)] == ["1", "3"]


async def test_a_handler_that_crashes_three_times_is_passed_over(
    scenario: TelegramScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive, crashes = intake.receive, 0

    async def crash(context: Any, incoming: Any) -> None:
        nonlocal crashes
        if incoming.text == "boom":
            crashes += 1
            raise LookupError("boom")
        await receive(context, incoming)

    monkeypatch.setattr(intake, "receive", crash)
    async with scenario.open() as run:
        await scenario.owner.send("boom")
        assert (await scenario.owner.ask("hi")).text == "Hello."
        [letter] = await set_aside(run.store)
    assert (letter.crashes, crashes, letter.error) == (3, 3, "LookupError: boom")
    assert json.loads(letter.raw)["message"]["text"] == "boom"


async def test_an_envelope_of_any_form_is_taken(scenario: TelegramScenario) -> None:
    ids: list[Any] = ["7", None, -1, 1.5, True, [], {}, 10**30]
    forms: list[tuple[str, Any]] = [("update_id", value) for value in ids]
    forms += [("message", None), ("message", 5), ("message", []), ("poll", "x"), ("new_kind", {})]
    async with scenario.open() as run:
        for kind, body in forms:
            scenario.gram.inject(kind, body)
        assert (await scenario.owner.ask("hi")).text == "Hello."
        kept = [json.loads(letter.raw) for letter in await set_aside(run.store)]
    assert [raw for raw in kept if len(raw) == 1] == [{kind: body} for kind, body in forms[:8]]
