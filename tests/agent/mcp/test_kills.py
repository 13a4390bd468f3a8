"""A call that was cut off, whoever was killed: it is not made again, and the model is told."""

from pathlib import Path

import pytest

from agent.approvals import Approvals, GuardedCall
from agent.store import open_store
from agent.tools.tool import untouched


@pytest.mark.parametrize("scope", ["mcp:tea/say", "mcp-destructive:tea/wipe", "mcp-server:tea"])
async def test_a_question_in_the_middle_of_a_command_is_no_step_that_did_not_begin(
    tmp_path: Path, scope: str
) -> None:
    """A bash call that asks through `mcp` has run already: after a kill it must not be run again."""
    async with open_store(tmp_path / "voltaire.db") as store:
        asked: list[frozenset[str]] = []

        async def ask(request: object) -> str:
            asked.append(await store.approvals.not_taken("turn"))
            return "once"

        approvals = Approvals(store.approvals, ask)  # type: ignore[arg-type]
        for id, asks_for in (("first", scope), ("second", "commit:site")):
            call = GuardedCall("turn", id, "cli", untouched)
            await approvals.approver(call, lambda event: None)("a step", scope=asks_for)
    assert asked == [frozenset(), frozenset({"second"})]
