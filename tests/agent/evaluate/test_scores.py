"""Scores kept over a kill, and the rates in them."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agent.evaluate.runner import measured_energy, opening_messages
from agent.evaluate.scores import Rates, Score, append_score, load_scores, rates, rates_by
from agent.messages import System, User
from agent.prompt import system_text
from fakes.patience import SECONDS

GOOD = Score("a", "find", "ours", "", "done", 3, 1, 4, 900, 100, 2.0, 50.0)
BAD = replace(GOOD, task="b", fault="no", calls=0, refused=4, seconds=4.0, joules=None)


def test_rates() -> None:
    assert rates([GOOD, BAD]) == Rates(2, 0.5, 3 / 8, 1.5, 1000, 3.0, 50.0)
    none = replace(GOOD, calls=0, refused=0, joules=None)
    assert rates([none]) == Rates(1, 1.0, None, 0, 1000, 2.0, None)
    assert rates_by([GOOD, BAD], lambda score: score.task) == {
        "a": rates([GOOD]),
        "b": rates([BAD]),
    }


def test_what_was_cut_off_is_not_a_score(tmp_path: Path) -> None:
    path = tmp_path / "eval" / "m.jsonl"
    assert load_scores(path) == []
    append_score(path, GOOD)
    append_score(path, BAD)
    path.write_text(path.read_text() + '{"task": "c", "ki')
    assert load_scores(path) == [GOOD, BAD]


def test_both_prompts() -> None:
    now = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
    ours = opening_messages("ours", "How many?", now, "UTC")
    assert ours == [
        System(system_text()),
        User("<context>\nnow: Mon 2026-01-05 08:30 UTC\n</context>\nHow many?"),
    ]
    naive = opening_messages("naive", "How many?", now, "UTC")
    assert "2026-01-05T08:30:00+00:00" in naive[0].text
    assert naive[1:] == [User("How many?")]


async def test_energy_is_power_over_time() -> None:
    sampled = asyncio.Event()

    async def watts() -> float:
        if sampled.is_set():
            seen.set()
        sampled.set()
        return 100.0

    seen, now = asyncio.Event(), asyncio.get_running_loop().time
    began = now()
    async with measured_energy(watts) as energy:
        await asyncio.wait_for(seen.wait(), SECONDS)
        await asyncio.sleep(0)
    assert energy.joules is not None
    assert 99 <= energy.joules <= 100 * (now() - began)  # samples are a second apart


async def test_no_energy_where_no_card_tells_it() -> None:
    async def watts() -> None:
        return None

    async with measured_energy(watts) as energy:
        await asyncio.sleep(0)
    assert energy.joules is None
