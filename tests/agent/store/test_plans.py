from dataclasses import replace

from agent.events import Reason
from agent.plan import PlanStep
from agent.store import Store
from tests.agent.store.test_turns import begin, ended

OPEN = (PlanStep("look", done=True), PlanStep("tell"))
DONE = (PlanStep("look", done=True),)


async def finish(store: Store, id: str, reason: Reason = "done") -> None:
    turn = await begin(store, id=id)
    if id == "planner":
        await store.plans.set("cli", OPEN, id)
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


async def test_a_plan_that_is_done_ends_with_its_turn(store: Store) -> None:
    turn = await begin(store)
    await store.plans.set("cli", DONE, turn.id)
    assert await store.plans.of_turn(turn.id) == DONE
    await store.turns.end(turn, ended())
    assert await store.plans.of_chat("cli") == ()


async def test_a_correction_is_no_use_of_it(store: Store) -> None:
    await finish(store, "planner")
    turn = await begin(store, id="another")
    await store.plans.set("cli", (*OPEN, PlanStep("more")))
    await store.turns.end(turn, ended())
    assert await store.plans.of_chat("cli") == ()


async def test_each_conversation_has_its_own(store: Store) -> None:
    await finish(store, "planner")
    await store.chats.new_conversation("cli")
    assert await store.plans.of_chat("cli") == ()
    assert await store.plans.of_turn("planner") == OPEN
