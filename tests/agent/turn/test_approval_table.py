"""Approvals over the real table: what a restart keeps."""

from pathlib import Path

from agent.approvals import ApprovalRequest, Approvals, GuardedCall, question_id
from agent.store import open_store
from agent.store.approvals import ApprovalTable
from agent.tools.tool import untouched

STEP = GuardedCall("t1", "c1", "tg:1", untouched)
WHAT, SCOPE = "commit to website: Fix", "commit:website"
A1 = question_id("a1", "tg:1", WHAT, SCOPE)
LATER = 1e11  # seconds since the epoch


async def shown(request: ApprovalRequest) -> None:
    """The question is on somebody's phone; nobody has pressed yet."""


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
