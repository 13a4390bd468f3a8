"""The most used families: their own templates on the real server, under the real agent."""

import pytest

from bench.templates import measure
from fakes.spoken import COMMON, FOLDER

pytestmark = pytest.mark.skipif(
    not (FOLDER / ".stamp").exists(), reason="the templates are fetched by `make test`"
)


@pytest.mark.parametrize("name", COMMON)
async def test_calls_and_results_are_seen_again_and_nothing_of_their_form_is_shown(
    name: str,
) -> None:
    for row in await measure(name, ("off", "default")):
        assert row.sound, row
