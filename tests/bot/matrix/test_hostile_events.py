"""Events with values of any type never stop the channel."""

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from fakes.homeserver_proxy import HomeserverProxy
from fakes.matrix_person import MatrixPerson
from fakes.matrix_running import MatrixScenario
from fakes.patience import soon

DEEP: Any = {}
for _ in range(300):
    DEEP = {"a": [DEEP]}
ODD = [None, 7, -1.5, True, "", "x", [], ["a"], {}, {"a": {}}, 1 << 80, DEEP]
ODD += ["\ud800", "é" * 9_000, "<![<![", 1e308, [None]]
RELATION = {"event_id": "$e:x", "key": "👍"}
FILE = {"url": "mxc://x/1", "info": {"size": 3, "duration": 9, "mimetype": "image/png"}}
CONTENTS: list[tuple[str, dict[str, Any]]] = [
    ("m.room.message", {"msgtype": "m.text", "body": "text", "m.mentions": {"user_ids": ["@a:x"]}}),
    (
        "m.room.message",
        {
            "msgtype": "m.text",
            "body": "a",
            "format": "org.matrix.custom.html",
            "formatted_body": "a",
        },
    ),
    ("m.room.message", {"msgtype": "m.image", "body": "a.png", "filename": "a.png", **FILE}),
    ("m.room.message", {"msgtype": "m.file", "body": "a", "file": {"url": "mxc://x/1", "key": {}}}),
    (
        "m.room.message",
        {
            "msgtype": "m.text",
            "body": "* a",
            "m.new_content": {"msgtype": "m.text", "body": "a"},
            "m.relates_to": {**RELATION, "rel_type": "m.replace"},
        },
    ),
    (
        "m.room.message",
        {
            "msgtype": "m.text",
            "body": "a",
            "m.relates_to": {
                **RELATION,
                "rel_type": "m.thread",
                "is_falling_back": False,
                "m.in_reply_to": {"event_id": "$e:x"},
            },
        },
    ),
    ("m.reaction", {"m.relates_to": {**RELATION, "rel_type": "m.annotation"}}),
    ("m.room.redaction", {"redacts": "$e:x"}),
    ("m.room.encrypted", {"algorithm": "m.megolm.v1.aes-sha2", "session_id": "a"}),
    ("m.room.member", {"membership": "join", "displayname": "a"}),
    ("m.room.tombstone", {"replacement_room": "!a:x"}),
]


def places(value: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield (*at, key)
            yield from places(below, (*at, key))


def odd_events(sender: str, me: str, count: int, seed: int) -> list[dict[str, Any]]:
    """Events of which one value each has another type."""
    every: list[dict[str, Any]] = []
    for kind, content in CONTENTS:
        event: dict[str, Any] = {"type": kind, "content": content, "event_id": "$e:x"}
        event |= {"sender": sender, "origin_server_ts": 4_000_000_000_000}
        event |= {"unsigned": {"prev_content": {"membership": "join"}}}
        if kind in ("m.room.member", "m.room.tombstone"):
            event["state_key"] = me if kind == "m.room.member" else ""
        for place in places(event):
            for value in ODD:
                changed = deepcopy(event)
                where = changed
                for key in place[:-1]:
                    where = where[key]
                where[place[-1]] = value
                if place != ("event_id",):
                    changed["event_id"] = f"${len(every)}:x"
                every.append(changed)
    return random.Random(seed).sample(every, count)


@pytest.mark.parametrize(
    ("seed", "count"),
    [(3, 60), *(pytest.param(seed, 400, marks=pytest.mark.slow) for seed in (1, 2))],
)
async def test_odd_types_stop_nothing(
    scenario: MatrixScenario,
    olga: MatrixPerson,
    proxy: HomeserverProxy,
    caplog: pytest.LogCaptureFixture,
    seed: int,
    count: int,
) -> None:
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account)
        await olga.say(room, "hi")
        await olga.next()
        waiting = odd_events(olga.id, scenario.account, count, seed)

        def odd(answer: Any) -> Any:
            told = answer.get("rooms", {}).get("join", {}).get(room)
            if told and waiting:
                told["timeline"]["events"][:0] = waiting
                told.setdefault("state", {}).setdefault("events", [])[:0] = [7, None, [], "x"]
                waiting.clear()
            return answer

        proxy.rule(r"GET .*/sync", "change", times=1000, change=odd)
        await olga.say(room, f"{scenario.account} still there?")
        await soon(lambda: not waiting)
        await soon(lambda: "still there?" in str(run.model.requests))
    assert "what the homeserver gives cannot be read" not in caplog.text
    assert "a handler's task failed" not in caplog.text
    assert "failed (" not in caplog.text  # an update that crashed its handler
