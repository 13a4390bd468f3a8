"""Whatever a model server sends, the turn ends and the next ordinary message is answered."""

import random

import pytest

from agent.llm.openai.client import OpenAIModel
from agent.tools.tool import Call, Output, tool
from agent.turn import texts
from agent.turn.turn import TurnLimits
from fakes.hostile_streams import HostileModelServer
from fakes.stored import set_aside
from tests.agent.chats.conftest import Bench, said

AT_ONCE = 10  # hostile turns before the next ordinary one
LIMITS = TurnLimits(
    max_tool_calls=2, seconds=20, away_seconds=0.01, trouble_seconds=0.001, max_repairs=1
)


@tool
async def echo(call: Call, words: str) -> Output:
    """Repeat words."""
    return Output(words)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("count", "seed"),
    [(10, 20), *(pytest.param(100, seed, marks=pytest.mark.slow) for seed in range(10))],
)
async def test_after_hostile_streams_an_ordinary_message_is_answered(
    bench: Bench, count: int, seed: int
) -> None:
    bench.tools, bench.limits = [echo], LIMITS
    async with (
        HostileModelServer(random.Random(seed)) as server,
        OpenAIModel(server.endpoint, silence_seconds=0.5) as model,
    ):
        bench.model = model  # type: ignore[assignment]
        async with bench.running() as chats:
            for batch in range(count // AT_ONCE):
                chat = f"tg:{batch}"
                for number in range(AT_ONCE):
                    await chats.submit(said(f"hostile {number}", f"{batch}-{number}", chat))
                    await bench.heard.replies(chat, number + 1)
                await chats.submit(said(f"ordinary {batch}", f"{batch}-last", chat))
                replies = await bench.heard.replies(chat, AT_ONCE + 1)
                assert replies[-1] == f"answer to {batch}"
                assert all(replies) and texts.BUG not in replies
                bench.heard.events.clear()  # megabytes of a hostile text
            assert await set_aside(chats.store) == []
        assert server.hostile >= count
