"""Whatever a call holds, the answer is an envelope."""

import random
from typing import Any

import pytest

from bot.localgram import Localgram, Person
from bot.localgram.dispatch import TABLE

from .conftest import TOKEN, Raw

FIELDS = (
    "chat_id message_id text caption entities caption_entities reply_markup reply_parameters media"
    " photo document voice reaction action callback_query_id scope commands language_code draft_id"
    " message_thread_id offset limit allowed_updates secret_token parse_mode name file_id user_id"
    " message_ids from_chat_id menu_button link_preview_options description duration title length"
).split()
VALUES = [
    "", "5", "-1", "1", "2", "abc", "5.5", "null", "[]", "{}", "[1]", "[null]", "[[]]", '{"a":1}',
    '"x"', "true", "1e400", "9" * 25, "\0", "x" * 5000, '{"type":5}', '["x"]', "[", '{"type":"chat"}',
    '[{"type":"bold"}]', '[{"type":"bold","offset":"0","length":1}]', '{"message_id":[1]}',
    '[{"type":"text_link","offset":0,"length":1,"url":5}]', '[{"type":"emoji","emoji":5}]',
    '[{"type":["x"],"offset":0,"length":1}]', '{"inline_keyboard":[[{"text":5,"callback_data":5}]]}',
    '{"inline_keyboard":[[5]]}', '{"inline_keyboard":5}', '{"message_id":1,"quote":5}',
    '[{"type":"photo","media":5}]', '[{"type":"photo","media":"attach://q"}]', '[{"command":5}]',
    '{"type":"chat_member","chat_id":5,"user_id":"x"}', '{"message_id":"x"}',
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
async def test_no_call_makes_the_server_stumble(
    raw: Raw, gram: Localgram, alice: Person, seed: int
) -> None:
    gram.group("Lab", alice, forum=True, admin=True)
    chance = random.Random(seed)
    names = sorted(name for name, _ in TABLE.values() if name != "setWebhook")
    codes = set()
    for _ in range(250):
        fields = {name: chance.choice(VALUES) for name in chance.sample(FIELDS, 6)}
        fields |= {"chat_id": "5"} if chance.random() < 0.8 else {}
        fields |= {"text": "hello"} if chance.random() < 0.4 else {}
        url = f"{raw.url}/bot{TOKEN}/{chance.choice(names)}"
        async with raw.http.post(url, json=fields) as response:
            codes.add(response.status)
            assert (await response.json())["ok"] is (response.status == 200)
    assert codes <= {200, 400, 403, 404}
    assert {200, 400} <= codes


@pytest.mark.parametrize("act", ["send", "edit", "press", "react", "topics", "stop", "block"])
async def test_no_act_makes_the_page_stumble(raw: Raw, alice: Person, act: str) -> None:
    await alice.send("x")
    url = f"{raw.url}/api/chats/5/{act}"
    values: list[Any] = [None, "", "x", 1, -1, 2.5, [], {}, "\ud83d", "x" * 40_000]
    for value in values:
        names = (
            "text",
            "message",
            "row",
            "column",
            "emoji",
            "name",
            "thread",
            "reply_to",
            "blocked",
        )
        for name in names:
            body = {"message": 1, "row": 0, "column": 0, name: value}
            async with raw.http.post(url, json=body) as response:
                assert response.status in {200, 400, 403, 404}, (name, value)
    for text in ("", "[", "[]", "5"):
        headers = {"Content-Type": "application/json"}
        async with raw.http.post(url, data=text, headers=headers) as response:
            assert response.status == 400
