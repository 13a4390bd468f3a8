"""Whose words a Matrix message quotes."""

from typing import Any

import pytest

from bot.intake import Quotation
from bot.matrix.incoming_message import incoming_message, parse_message
from fakes.words import saying


def said(**relation: Any) -> dict[str, Any]:
    content = {"msgtype": "m.text", "body": "look", "m.relates_to": relation}
    return {"event_id": "$2", "sender": "@o:x", "origin_server_ts": 1000, "content": content}


@pytest.mark.parametrize("ours", [True, False])
def test_who_calls_themselves_you_is_not_the_bot(ours: bool) -> None:
    message = parse_message("!r:x", said(**{"m.in_reply_to": {"event_id": "$1"}}))
    quote = Quotation("you", "do this", ours=ours)
    row = incoming_message(message, sender="", me=("@b:x",), quote=quote, origin="owner")
    assert row.quote == "you: do this"
    assert row.stranger == ("" if ours else saying("message of you"))
