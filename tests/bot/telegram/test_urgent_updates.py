"""/status and /stop do not wait for what other chats sent before them."""

import asyncio
from typing import Any

import pytest

from bot import intake
from bot.telegram.updates import urgent_first
from fakes.bot_running import OWNER, TelegramScenario

A, B = 1, 2


def update(number: int, chat: int, text: str) -> dict[str, Any]:
    return {"update_id": number, "message": {"chat": {"id": chat}, "text": text}}


def press(number: int, chat: int) -> dict[str, Any]:
    body = {"data": "ok:x", "message": {"chat": {"id": chat}}}
    return {"update_id": number, "callback_query": body}


@pytest.mark.parametrize(
    ("updates", "order"),
    [
        pytest.param([update(1, A, "hi"), update(2, B, "/status")], [2, 1], id="another chat"),
        pytest.param([update(1, A, "hi"), update(2, A, "/stop")], [1, 2], id="the same chat"),
        pytest.param([press(1, A), update(2, A, "/stop")], [1, 2], id="a press in the same chat"),
        pytest.param(
            [press(1, A), update(2, B, "/stop@bot now"), update(3, B, "/status")],
            [2, 3, 1],
            id="both of one chat",
        ),
        pytest.param([update(1, A, "hi"), update(2, B, "/stopping")], [1, 2], id="no command"),
        pytest.param([update(1, A, "hi"), press(2, B)], [1, 2], id="a press"),
    ],
)
def test_the_order_within_a_chat_stays(updates: list[dict[str, Any]], order: list[int]) -> None:
    assert [each["update_id"] for each in urgent_first(updates)] == order  # type: ignore[index]


@pytest.mark.parametrize(
    "odd",
    [None, 5, [], {}, {"message": []}, {"message": {"chat": [], "text": 5}}, {"poll": {"chat": {}}},
     {"message": {"chat": {"id": [[]]}, "text": "/status"}}, {"callback_query": {"message": 1}}],
    ids=str,
)  # fmt: skip
def test_an_update_of_any_form_keeps_its_place(odd: object) -> None:
    others = [update(1, A, "hi"), update(2, B, "hi")]
    assert [each for each in urgent_first([*others, odd]) if each is not odd] == others


async def test_status_is_answered_while_others_messages_are_being_kept(
    scenario: TelegramScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive, free = intake.receive, asyncio.Event()

    async def slow(context: Any, incoming: Any) -> None:
        await free.wait()
        await receive(context, incoming)

    monkeypatch.setattr(intake, "receive", slow)
    other = scenario.gram.user("Oscar Owner", id=OWNER + 1, started=True)
    scenario.config = {"owners": [OWNER, OWNER + 1]}
    for words in ("one", "two"):
        await scenario.owner.send(words)
    await other.send("/status")
    async with scenario.open():
        assert (await other.next_message(where=lambda m: m.keyboard)).text
        free.set()
        await scenario.owner.next_message(where=lambda m: m.text == "Hello.")
