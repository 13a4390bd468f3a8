"""The LiteLLM proxy in front of two real llama.cpp servers, one of which is killed under way.

Slow: LiteLLM is installed into an environment of its own when it is not there yet.
"""

from pathlib import Path

import pytest

from bench.scaling import measure

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("retries", [0, 3], ids=["none of its own", "its own as well"])
async def test_no_turn_is_lost(retries: int) -> None:
    venv = Path.home() / ".cache" / "voltaire" / "litellm"
    assert await measure(venv, turns=8, retries=retries) == 0
