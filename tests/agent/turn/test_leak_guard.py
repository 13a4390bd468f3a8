"""Secrets in what a turn shows and answers."""

import asyncio
import json
from typing import Any

import pytest

from agent.approvals import ApprovalRequest
from agent.events import (
    ApprovalAsked,
    Decision,
    Notice,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    ToolFinished,
    ToolProgress,
    as_json,
)
from agent.leaks import LeakDetector
from agent.messages import Assistant, ToolResult, User
from agent.tools.tool import Call, Output, Tool, tool
from agent.turn import texts
from fakes.encodings import ENCODINGS
from fakes.model_scripted import calls, says
from fakes.words import saying
from tests.agent.turn.conftest import Bench

TOKEN = "7311804495:AAHk3-9xTqLr_0vBwZyE2mNcD8sUuPfGa1o"
WHAT = "the secret telegram.token"
KEY = "ghp_" + "a1B2" * 9
KIND = "what looks like a token of GitHub"


@pytest.fixture
def bench() -> Bench:
    return Bench(leaks=LeakDetector({"telegram.token": TOKEN}))


def everything(bench: Bench) -> str:
    """All that the turn has let out, but for what an owner was asked."""
    events = [as_json(event) for event in bench.events if not isinstance(event, ApprovalAsked)]
    ends = [text for _, text, _, _ in bench.journal.finished]
    return json.dumps([events, ends], ensure_ascii=False)


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_an_answer_with_a_secret_is_never_seen_and_made_again(
    bench: Bench, encoding: str
) -> None:
    form = ENCODINGS[encoding](TOKEN)
    finished = await bench.run(says(f"It is {form}."), says("I must not say."))
    assert finished.text == saying("I must not say.\n\n", "withheld: an answer", WHAT)
    assert finished.reason == "done"
    assert bench.of(Notice) == [Notice(texts.ANSWER_WITHHELD.format(what=WHAT))]
    assert bench.leaks.find(everything(bench)) is None
    assert bench.journal.finished[0][1] == finished.text
    advice = bench.journal.messages[3]
    assert isinstance(advice, User)
    assert texts.LEAKING_ANSWER.format(what=WHAT) in advice.text
    assert bench.journal.messages[2] == Assistant(f"It is {form}.")  # its prompt stays as it was


@pytest.mark.parametrize("size", [1, 2, 3, 5, 16, 46, 200])
async def test_a_secret_that_is_split_between_pieces_is_not_shown(bench: Bench, size: int) -> None:
    await bench.run(says(f"See: {TOKEN}, thanks.", size=size), says("No."))
    shown = [event.text for event in bench.events if isinstance(event, TextDelta)]
    assert "".join(shown) in ("See: 731No.", "See: 73No.", "See: 7No.", "See: No.", "No.")


async def test_a_model_that_insists_is_not_heard(bench: Bench) -> None:
    finished = await bench.run(says(f"It is {TOKEN}."), says(f"But it is {TOKEN[::-1]}."))
    assert finished.text.startswith(texts.ANSWER_WITHHELD.format(what=WHAT))
    assert bench.leaks.find(everything(bench)) is None


async def test_what_is_left_of_a_stopped_answer_holds_no_secret(bench: Bench) -> None:
    async def stop() -> None:
        bench.stop.set()
        await asyncio.Event().wait()

    finished = await bench.run(says(f"It is {TOKEN} and", hold=stop))
    assert finished.reason == "cancelled"
    assert finished.text == texts.ANSWER_WITHHELD.format(what=WHAT)
    assert bench.leaks.find(everything(bench)) is None


async def test_thoughts_are_shown_up_to_a_secret(bench: Bench) -> None:
    finished = await bench.run(says("Done.", reasoning=f"The token {TOKEN} is secret."))
    assert finished.text == "Done."
    thoughts = [event.text for event in bench.events if isinstance(event, ThoughtDelta)]
    assert thoughts == []  # it came in one piece


async def test_steps_show_no_secret_and_no_key(bench: Bench) -> None:
    bench.results = {"cat .env": f"TOKEN={TOKEN}\n", "cat key": KEY}
    finished = await bench.run(
        calls("bash", id="a", command="cat .env"),
        calls("bash", id="b", command="cat key"),
        calls("bash", id="c", command=f"echo {TOKEN}"),
        says("Read."),
    )
    hidden, key = f"(not shown: it contains {WHAT})", f"(not shown: it contains {KIND})"
    assert [event.output for event in bench.events if isinstance(event, ToolFinished)][:2] == [hidden, key]  # fmt: skip
    assert [e.arguments for e in bench.events if isinstance(e, ToolCalled)] == [
        {"command": "cat .env"},
        {"command": "cat key"},
        {"command": hidden},
    ]
    assert bench.leaks.find(everything(bench)) is None
    assert (
        ToolResult("a", "bash", f"TOKEN={TOKEN}\n") in bench.journal.messages
    )  # the model may know
    assert bench.ran == [("bash", {"command": "cat .env"}), ("bash", {"command": "cat key"})]
    assert finished.text == f"Read.\n\n(Withheld: bash, which contained {WHAT}.)"


async def test_output_shows_no_secret_that_comes_in_parts(bench: Bench) -> None:
    @tool
    async def show(call: Call) -> Output:
        """Show."""
        for part in ("begun\n", f"it is {TOKEN[:20]}\n", f"{TOKEN[20:]}\n", "more\n"):
            call.progress(part)
        return Output("shown")

    tools: list[Tool] = [show]
    bench.tools = lambda: tools  # type: ignore[method-assign]
    await bench.run(calls("show", id="a"), says("Read."))
    hidden = f"(not shown: it contains {WHAT})"
    seen = [event.text for event in bench.events if isinstance(event, ToolProgress)]
    assert seen == ["begun\n", "it is ", hidden, hidden]


class Owner:
    """Presses what it is told to."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.asked: list[ApprovalRequest] = []

    async def __call__(self, request: ApprovalRequest) -> Decision:
        self.asked.append(request)
        return self.decision


async def test_an_answer_with_a_key_goes_out_when_an_owner_allows_it(bench: Bench) -> None:
    bench.ask = owner = Owner("once")
    answer = f"Use {KEY} for it."
    finished = await bench.run(says(answer))
    assert finished.text == answer
    assert [request.scope for request in owner.asked] == ["key"]
    assert owner.asked[0].what.endswith(f"\n\n{answer}")
    assert "".join(e.text for e in bench.events if isinstance(e, TextDelta)) == "Use "


@pytest.mark.parametrize("owner", [Owner("denied"), None], ids=["denied", "nobody"])
async def test_an_answer_with_a_key_is_withheld_else(bench: Bench, owner: Any) -> None:
    bench.ask = owner
    finished = await bench.run(says(f"Use {KEY} for it."), says("Better not."))
    assert finished.text == saying("Better not.\n\n", "withheld: an answer", KIND)
    assert bench.leaks.find(everything(bench)) is None


async def test_what_was_allowed_is_that_answer_alone(bench: Bench) -> None:
    bench.ask = owner = Owner("once")
    cut = says(f"Use {KEY} for it, and", finish_reason="length")
    await bench.run(cut, says(f"then {KEY[:-4]}zzzz."))
    assert len(owner.asked) == 1
    assert owner.asked[0].what.endswith("zzzz.")


async def test_a_call_with_a_key_runs_when_an_owner_allows_it(bench: Bench) -> None:
    bench.ask = owner = Owner("once")
    command = f"export T={KEY}"
    await bench.run(calls("bash", id="a", command=command), says("Done."))
    assert [request.what.endswith(f"command: {command}") for request in owner.asked] == [True]
    assert bench.ran == [("bash", {"command": command})]


async def test_a_call_with_a_key_is_not_run_else(bench: Bench) -> None:
    bench.ask = Owner("denied")
    finished = await bench.run(calls("bash", id="b", command=f"export T={KEY}"), says("Not done."))
    assert bench.ran == []
    assert finished.text == saying("Not done.\n\n", "withheld: bash", KIND)
    assert KEY not in finished.text


async def test_a_secret_over_two_arguments_is_found(bench: Bench) -> None:
    bench.ask = Owner("once")
    both = {"repo": TOKEN[:20], "message": TOKEN[20:]}
    finished = await bench.run(calls("git_commit", id="a", **both), says("Not done."))
    assert bench.ran == []
    assert finished.text.endswith(f"(Withheld: git_commit, which contained {WHAT}.)")
