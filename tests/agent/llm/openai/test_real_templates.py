"""The most used families: their own templates on the real server, under the real agent."""

import statistics

import pytest

from bench.templates import WAITED, measure
from fakes.scripted_gguf import Kind
from fakes.spoken import COMMON, FOLDER

pytestmark = pytest.mark.skipif(
    not (FOLDER / ".stamp").exists(), reason="the templates are fetched by `make test`"
)


@pytest.mark.parametrize("name", COMMON)
async def test_calls_and_results_are_seen_again_and_nobody_waits_for_the_template(
    name: str,
) -> None:
    for row in await measure(name, ("off", "default"), long=()):
        assert row.sound, row
        assert statistics.median(row.waited) <= WAITED, row


@pytest.mark.parametrize("kind", ["lfm2", "gemma3"])
async def test_nobody_waits_for_models_that_cannot_go_back_nor_after_ten_long_calls(
    kind: Kind,
) -> None:
    (row,) = await measure("Qwen3.5-4B", ("default",), kind)
    assert row.sound, row
    assert max(row.message) > 10_000  # the template drops the turn's thoughts
    assert max(row.waited) <= WAITED, row
