"""The most used families: their own templates on the real server, under the real agent."""

import pytest

from bench.templates import measure
from fakes.spoken import COMMON, FOLDER

pytestmark = pytest.mark.skipif(
    not (FOLDER / ".stamp").exists(), reason="the templates are fetched by `make test`"
)


# Their templates refuse or drop what a conversation with calls holds.
UNSOUND = {
    "Mistral-Small-3.2-24B-Instruct-2506",
    "google-gemma-2-2b-it",
    "microsoft-Phi-3.5-mini-instruct",
    "deepseek-ai-DeepSeek-V3.2",
    "LFM2.5-Instruct",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.xfail(strict=True)] if name in UNSOUND else [])
        for name in COMMON
    ],
)
async def test_calls_and_results_are_seen_again_and_nothing_of_their_form_is_shown(
    name: str,
) -> None:
    for row in await measure(name, ("off", "default")):
        assert row.sound, row
