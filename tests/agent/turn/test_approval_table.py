"""Approvals over the real table: what a restart keeps."""

import asyncio
from pathlib import Path

from agent.approvals import EXPIRED, ApprovalRequest, Approvals, GuardedCall, question_id
from agent.store import open_store
from agent.store.approvals import ApprovalTable
from agent.tools.tool import untouched
from fakes.patience import SECONDS

STEP = GuardedCall("t1", "c1", "tg:1", untouched)
WHAT, SCOPE = "commit to website: Fix", "commit:website"
A1 = question_id("a1", "tg:1", WHAT, SCOPE)
LATER = 1e11  # seconds since the epoch


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def shown(request: ApprovalRequest) -> None:
    """The question is on somebody's phone; nobody has pressed yet."""


async def test_a_question_is_answered_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "v.db"
    async with open_store(path, clock) as store:
        approvals = Approvals(store.approvals, shown, clock=clock, new_id=lambda: "a1")
        asking = asyncio.create_task(approvals.settle(STEP, WHAT, SCOPE))
        while not await approvals.rows.not_taken("t1"):
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])
    async with open_store(path, clock) as store:
        approvals = Approvals(store.approvals, shown, clock=clock)
        assert await approvals.rows.not_taken("t1") == {"c1"}
        asking = asyncio.create_task(approvals.settle(STEP, WHAT, SCOPE))
        assert await approvals.decide(A1, "chat", "111") is not None
        request, decision, _ = await asyncio.wait_for(asking, SECONDS)
        assert (request.id, decision) == (A1, "chat")
        assert await approvals.rows.not_taken("t1") == frozenset()
        later = GuardedCall("t2", "c9", "tg:1", untouched)
        assert (await approvals.settle(later, "commit to website: More", SCOPE))[1] == "chat"
        assert [grant.scope for grant in await store.approvals.grants("tg:1")] == [SCOPE]


async def test_the_expiry_goes_on_while_nothing_runs(tmp_path: Path) -> None:
    clock = Clock()
    async with open_store(tmp_path / "v.db", clock) as store:
        first = Approvals(store.approvals, shown, clock=clock, new_id=lambda: "a1")
        asking = asyncio.create_task(first.settle(STEP, WHAT, SCOPE))
        while not await first.rows.not_taken("t1"):
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])
        clock.now += 301
        again = Approvals(store.approvals, shown, clock=clock)
        _, decision, reason = await asyncio.wait_for(again.settle(STEP, WHAT, SCOPE), SECONDS)
        assert (decision, reason) == ("denied", EXPIRED.format(minutes=5))
        assert await again.decide(A1, "once", "111") is None


async def test_a_press_after_the_expiry_counts_for_nothing(tmp_path: Path) -> None:
    """Also before anybody has noted that it expired: the program was away."""
    async with open_store(tmp_path / "v.db") as store:
        await store.approvals.open(ApprovalRequest(A1, "t1", "c1", "tg:1", WHAT, SCOPE, 10.0))
        assert await store.approvals.decide(A1, "chat", 10.0, "111") is None
        assert await store.approvals.grants("tg:1") == []
        assert await store.approvals.decide(A1, "chat", 9.9, "111") is not None


async def test_a_press_after_stop_counts_for_nothing(tmp_path: Path) -> None:
    async with open_store(tmp_path / "v.db") as store:
        await store.approvals.open(ApprovalRequest(A1, "t1", "c1", "tg:1", WHAT, SCOPE, LATER))
        await store.approvals.withdraw("tg:1")
        assert await store.approvals.decide(A1, "chat", 9.9, "111") is None


async def test_an_answer_while_the_turn_is_taken_up_again_counts(tmp_path: Path) -> None:
    """Whatever the order of the press and of the look at what waits, the call is run, once."""

    class PressedMeanwhile(ApprovalTable):
        async def not_taken(self, turn: str) -> frozenset[str]:
            await approvals.decide(A1, "once", "111")
            return await super().not_taken(turn)

    async with open_store(tmp_path / "v.db") as store:
        rows = PressedMeanwhile(store.database)
        approvals = Approvals(rows, shown)
        await rows.open(ApprovalRequest(A1, "t1", "c1", "tg:1", WHAT, SCOPE, LATER))
        assert await approvals.rows.not_taken("t1") == {"c1"}
        assert (await approvals.settle(STEP, WHAT, SCOPE))[1] == "once"
        assert await store.approvals.not_taken("t1") == frozenset()


async def test_a_question_replaced_by_another_holds_no_call_open(tmp_path: Path) -> None:
    async with open_store(tmp_path / "v.db") as store:
        await store.approvals.open(ApprovalRequest(A1, "t1", "c1", "tg:1", WHAT, SCOPE, LATER))
        approvals = Approvals(store.approvals, None)
        await approvals.settle(STEP, "commit to website: other changes", SCOPE)
        assert await approvals.rows.not_taken("t1") == frozenset()
