"""Steps that an owner must allow."""

import asyncio
import time

import pytest

from agent.approvals import (
    DENIED,
    EXPIRED,
    ApprovalRequest,
    Approvals,
    AskOwners,
    GuardedCall,
    question_id,
)
from agent.events import ApprovalAsked, Decision, ToolFinished
from agent.messages import Assistant, System, ToolCall, ToolResult, User
from agent.tools.tool import untouched
from agent.trust import Taint
from fakes.journal_memory import MemoryApprovals
from fakes.model_scripted import calls, says
from tests.agent.turn.conftest import Bench

COMMIT = calls("git_commit", id="c", repo="website", message="Fix")
WHAT = "commit to website: Fix"
ASK1 = question_id("ask1", "cli", WHAT, "commit:website")
STEP = GuardedCall("t1", "c", "cli", untouched)


def answering(decision: Decision | None, asked: list[ApprovalRequest]) -> AskOwners:
    async def ask(request: ApprovalRequest) -> Decision | None:
        asked.append(request)
        return decision

    return ask


async def test_allowed_once(bench: Bench) -> None:
    asked: list[ApprovalRequest] = []
    bench.ask = answering("once", asked)
    await bench.run(COMMIT, says("Committed."))
    assert bench.ran == [("git_commit", {"repo": "website"})]
    assert bench.of(ApprovalAsked) == [ApprovalAsked(ASK1, WHAT, "once")]
    [request] = asked
    assert (request.turn, request.call, request.chat) == ("t1", "c", "cli")
    assert (request.what, request.scope) == (WHAT, "commit:website")
    assert bench.rows.grants == set()


async def test_the_time_of_a_call_is_not_that_of_the_owner_who_is_asked(bench: Bench) -> None:
    read = 0.0

    async def ask(request: ApprovalRequest) -> Decision | None:
        nonlocal read
        began = time.monotonic()
        await asyncio.sleep(0.3)  # an owner reads
        read = time.monotonic() - began
        return "once"

    bench.ask = ask
    began = time.monotonic()
    await bench.run(COMMIT, says("Committed."))
    rest = time.monotonic() - began - read
    [finished] = bench.of(ToolFinished)
    assert finished.ok and finished.duration_ms <= 1000 * rest + 1


async def test_denied(bench: Bench) -> None:
    bench.ask = answering("denied", [])
    await bench.run(COMMIT, says("It was denied."))
    assert bench.ran == []
    assert bench.journal.messages[3] == ToolResult("c", "git_commit", DENIED)


async def test_for_the_chat_asks_no_more(bench: Bench) -> None:
    asked: list[ApprovalRequest] = []
    bench.ask = answering("chat", asked)
    again = calls("git_commit", id="d", repo="website", message="More")
    await bench.run(COMMIT, again, says("Done."))
    assert len(asked) == 1
    assert [e.decision for e in bench.of(ApprovalAsked)] == ["chat", "chat"]
    assert bench.rows.grants == {("cli", "commit:website")}


async def test_after_strangers_text_a_standing_permission_asks_again(bench: Bench) -> None:
    asked: list[ApprovalRequest] = []
    bench.ask = answering("denied", asked)
    bench.rows.grants.add(("cli", "commit:website"))
    await bench.run(calls("bash", id="a", command="curl"), COMMIT, says("Denied."))
    assert len(asked) == 1
    assert bench.ran == [("bash", {"command": "curl"})]


async def test_a_standing_permission_serves_where_nobody_can_be_asked(bench: Bench) -> None:
    bench.rows.grants.add(("cli", "commit:website"))
    await bench.run(COMMIT, says("Done."))
    assert bench.ran == [("git_commit", {"repo": "website"})]


async def test_an_answer_by_button(bench: Bench) -> None:
    shown = asyncio.Event()

    async def ask(request: ApprovalRequest) -> None:
        bench.rows.by["shown"] = request.id
        shown.set()

    turn_approvals = Approvals(bench.rows, ask, new_id=lambda: "ask1")
    bench.approvals = turn_approvals
    running = asyncio.create_task(bench.run(COMMIT, says("Done.")))
    await shown.wait()
    assert bench.of(ApprovalAsked) == []
    assert await turn_approvals.decide(ASK1, "once", "111") is not None
    assert await turn_approvals.decide(ASK1, "denied", "222") is None
    await running
    assert bench.ran == [("git_commit", {"repo": "website"})]
    assert bench.rows.by[ASK1] == "111"


async def test_no_answer_is_a_denial_after_the_expiry(bench: Bench) -> None:
    approvals = Approvals(bench.rows, answering(None, []), seconds=0.05, new_id=lambda: "ask1")
    bench.approvals = approvals
    await bench.run(COMMIT, says("Nobody answered."))
    assert bench.journal.messages[3] == ToolResult("c", "git_commit", EXPIRED)
    assert bench.rows.decisions == {ASK1: "denied"}
    assert await approvals.decide(ASK1, "once") is None


@pytest.mark.parametrize("jump", [300.0, 301.0, 8 * 3600.0, 3650 * 86_400.0])
async def test_a_question_expires_while_the_host_sleeps(bench: Bench, jump: float) -> None:
    now = [1_800_000_000.0]

    async def ask(request: ApprovalRequest) -> None:
        now[0] += jump

    bench.approvals = Approvals(bench.rows, ask, clock=lambda: now[0], new_id=lambda: "ask1")
    async with asyncio.timeout(100):
        await bench.run(COMMIT, says("Nobody answered."))
    assert bench.rows.decisions == {ASK1: "denied"} and bench.ran == []


@pytest.mark.parametrize("jump", [-3600.0, -3650 * 86_400.0])
async def test_a_question_from_before_a_clock_was_set_back_expires(
    bench: Bench, jump: float
) -> None:
    now, shown = [1_800_000_000.0], asyncio.Event()

    async def ask(request: ApprovalRequest) -> None:
        shown.set()

    def approvals(seconds: float) -> Approvals:
        clock = lambda: now[0]  # noqa: E731 - one for both
        return Approvals(bench.rows, ask, seconds=seconds, clock=clock, new_id=lambda: "ask1")

    bench.approvals = approvals(300.0)
    running = asyncio.create_task(bench.run(COMMIT, says("never")))
    await shown.wait()
    running.cancel()
    await asyncio.wait([running])
    now[0] += jump
    bench.approvals = approvals(0.05)
    async with asyncio.timeout(100):
        await bench.run(says("Nobody answered."))
    assert bench.rows.decisions == {ASK1: "denied"} and bench.ran == []


async def test_a_question_outlives_the_program(bench: Bench) -> None:
    shown = asyncio.Event()

    async def ask(request: ApprovalRequest) -> None:
        shown.set()

    bench.ask = ask
    running = asyncio.create_task(bench.run(COMMIT, says("never")))
    await shown.wait()
    running.cancel()
    await asyncio.wait([running])
    assert bench.journal.running == {"c"}
    bench.events.clear()
    asked: list[ApprovalRequest] = []
    bench.ask = answering("once", asked)
    finished = await bench.run(says("Committed."))
    assert finished.text == "Committed."
    assert [request.id for request in asked] == [ASK1]
    assert bench.ran == [("git_commit", {"repo": "website"})]


@pytest.mark.parametrize("taken", [False, True])
async def test_an_answer_given_before_the_restart_counts_and_nothing_runs_twice(
    bench: Bench, taken: bool
) -> None:
    call = ToolCall("c", "git_commit", COMMIT.calls[0].arguments)
    bench.journal.messages = [System("s"), User("u"), Assistant("", (call,))]
    bench.journal.own = 2
    bench.journal.running = {"c"}
    request = ApprovalRequest(ASK1, "t1", "c", "cli", WHAT, "commit:website", 0.0)
    await bench.rows.open(request)
    await bench.rows.decide(ASK1, "once", 0.0, "111")
    if taken:
        await bench.rows.take(request, None)
    await bench.run(says("Let me check."))
    # Once it had the answer, it may have run in part before the program was killed.
    assert bench.ran == ([] if taken else [("git_commit", {"repo": "website"})])


@pytest.mark.parametrize("scope", ["network:example.org", "mcp:time/now", "wake:nas"])
async def test_what_asks_while_it_runs_is_not_run_again(scope: str) -> None:
    rows = MemoryApprovals()
    approvals = Approvals(rows, answering(None, []))
    approver = approvals.approver(STEP, lambda event: None)
    page = Taint("page http://example.org/", 0.0)
    asking = asyncio.create_task(approver("Connect to example.org", scope=scope, touched=[page]))
    while not rows.requests:
        await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    assert await approvals.rows.not_taken("t1") == frozenset()
