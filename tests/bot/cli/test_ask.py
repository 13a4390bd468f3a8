"""voltaire ask: what a program reads of a turn, and what a person does."""

import json
from pathlib import Path

import pytest

from fakes.command_line import voltaire_beside as voltaire
from fakes.model_scripted import ModelServer, says


@pytest.mark.parametrize(
    "reply",
    [says("Forty-two.", reasoning="Hm, sums."), says("<think>Hm, sums.</think>Forty-two.")],
    ids=["apart", "in-the-text"],
)
async def test_a_thought_is_an_event_of_its_own_and_no_part_of_the_answer(
    tmp_path: Path, reply: object
) -> None:
    async with ModelServer(reply) as server:  # type: ignore[arg-type]
        config = f'[backend]\nkind = "external"\nurl = "{server.url}"\n'
        code, out, err = await voltaire(tmp_path, "ask", "--json", "six times seven", config=config)
        assert code == 0, err
        code, shown, err = await voltaire(tmp_path, "ask", "again", config=config)
        assert code == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    said = {
        kind: "".join(event["text"] for event in events if event["type"] == kind)
        for kind in ("thought.delta", "text.delta")
    }
    assert said == {"thought.delta": "Hm, sums.", "text.delta": "Forty-two."}
    assert events[-1]["text"] == "Forty-two."
    assert shown.strip() == "Forty-two."
