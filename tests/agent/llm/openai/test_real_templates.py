"""The most used families: their own templates on the real server, under the real agent."""

import statistics
from pathlib import Path

import pytest

from bench.template_changes import FAMILIES, conversation, every_pair, family
from bench.templates import BEYOND, WAITED, measure
from fakes.scripted_gguf import Kind
from fakes.spoken import COMMON, FOLDER

pytestmark = pytest.mark.skipif(
    not (FOLDER / ".stamp").exists(), reason="the templates are fetched by `make test`"
)


@pytest.mark.parametrize("name", COMMON)
async def test_calls_and_results_are_seen_again_and_nobody_waits_for_the_template(
    name: str,
) -> None:
    """A tool step reads again at most what the template drops of the answer before it."""
    for row in await measure(name, ("off", "default"), long=()):
        assert row.sound, row
        assert statistics.median(row.waited) <= WAITED, row
        assert max(row.beyond) <= BEYOND, row


async def test_words_before_a_call_are_repeated_by_a_template_without_thoughts() -> None:
    """One that loses the words behind a thought: none is sent to it."""
    (row,) = await measure("unsloth-mistral-Devstral-Small-2507", ("default",), long=())
    assert row.sound and max(row.beyond) <= BEYOND, row


@pytest.mark.parametrize(
    "name",
    ["unsloth-mistral-Devstral-Small-2507", "Qwen-Qwen2.5-7B-Instruct", "Kimi-K2-Instruct"],
)
async def test_a_blank_line_between_words_and_a_call_is_not_read_again(name: str) -> None:
    """Whether the template itself writes a line break there, or nothing."""
    (row,) = await measure(name, ("off",), long=(), blank="\n\n")
    assert row.sound and max(row.beyond) <= BEYOND, row


@pytest.mark.parametrize("kind", ["lfm2", "gemma3"])
async def test_nobody_waits_for_models_that_cannot_go_back_nor_after_ten_long_calls(
    kind: Kind,
) -> None:
    (row,) = await measure("Qwen3.5-4B", ("default",), kind)
    assert row.sound, row
    assert max(row.message) > 10_000  # the template drops the turn's thoughts
    assert max(row.waited) <= WAITED, row


@pytest.mark.parametrize("name", ["Qwen3-Coder", "mistralai-Ministral-3-14B-Reasoning-2512"])
async def test_a_call_in_another_familys_format_is_read(name: str) -> None:
    """The second one's template takes no calls as text, and has it in its own format."""
    (row,) = await measure(name, ("off",), long=(), calls="lfm2")
    assert row.sound and not row.rereads, row


async def test_a_chat_with_calls_goes_on_with_models_of_other_families(tmp_path: Path) -> None:
    """Among them one that refuses ids of calls which are not its own, and one without roles for calls."""
    names = ("Qwen3.5-4B", "Mistral-Small-3.2-24B-Instruct-2506", "google-gemma-2-2b-it")
    first, second, third = [await family(name, tmp_path) for name in names]
    found = await conversation([first, second, third, second], tmp_path / "chat.db")
    assert found.survived, found


@pytest.mark.slow
async def test_a_chat_survives_a_change_between_any_two_of_ten_families() -> None:
    for row in await every_pair(FAMILIES):
        assert row.survived, row
