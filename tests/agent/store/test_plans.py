import asyncio
from dataclasses import replace
from functools import partial

import pytest

from agent.events import Reason
from agent.plan import PlanStep, WrongPlan, with_done, with_steps
from agent.store import Store
from tests.agent.store.test_turns import begin, ended

OPEN = (PlanStep("look", done=True), PlanStep("tell"))


async def finish(store: Store, id: str, reason: Reason = "done") -> None:
    turn = await begin(store, id=id)
    if id == "planner":
        await store.plans.change("cli", lambda _: OPEN, id)
    await store.turns.end(turn, replace(ended(), reason=reason))


async def test_a_plan_with_open_steps_outlives_the_answer_of_its_turn(store: Store) -> None:
    await finish(store, "planner")
    assert await store.plans.of_chat("cli") == OPEN
    chat = await store.chats.get("cli")
    assert chat and chat.plan == OPEN


async def test_it_ends_with_an_answer_that_had_no_use_for_it(store: Store) -> None:
    await finish(store, "planner")
    await finish(store, "another")
    assert await store.plans.of_chat("cli") == ()


async def test_it_stays_where_a_turn_was_cut_off(store: Store) -> None:
    await finish(store, "planner")
    await finish(store, "stopped", "tool_limit")
    assert await store.plans.of_chat("cli") == OPEN


async def test_a_correction_is_no_use_of_it(store: Store) -> None:
    await finish(store, "planner")
    turn = await begin(store, id="another")
    await store.plans.change("cli", lambda plan: (*plan, PlanStep("more")))
    await store.turns.end(turn, ended())
    assert await store.plans.of_chat("cli") == ()


async def test_ticks_at_once_are_all_kept(store: Store) -> None:
    turn = await begin(store)
    steps = ("read", "think", "write", "check", "tell")
    await store.plans.change("cli", lambda _: with_steps((), steps), turn.id)
    ticks = [partial(with_done, number=number) for number in range(1, 6)]
    await asyncio.gather(*(store.plans.change("cli", tick, turn.id) for tick in ticks))
    assert await store.plans.of_turn(turn.id) == tuple(PlanStep(each, done=True) for each in steps)


@pytest.mark.parametrize("turn", ["", "elsewhere"])
async def test_without_a_conversation_nothing_is_said_to_be_kept(store: Store, turn: str) -> None:
    with pytest.raises(WrongPlan, match="no task"):
        await store.plans.change("cli", lambda _: OPEN, turn)


async def test_a_turn_that_is_not_kept_leaves_the_chats_plan_alone(store: Store) -> None:
    await finish(store, "planner")
    with pytest.raises(WrongPlan):
        await store.plans.change("cli", lambda plan: with_steps(plan, ["other"]), "of a terminal")
    assert await store.plans.of_chat("cli") == OPEN
