"""A date in a chat template: midnight costs no cached prompt."""

from pathlib import Path

import pytest

from backend.config import BackendConfig
from backend.server.launch import NO_DATE, undated_template
from backend.server.llama import llama_server
from fakes import gguf_maker
from fakes.gguf_maker import TEMPLATE
from tests.backend.conftest import running

DATED = "Today: {{ strftime_now('%Y-%m-%d') }}\n" + TEMPLATE


async def rendered(state: Path, model: Path, zone: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A prompt as a server renders it whose clock is in that zone."""
    monkeypatch.setenv("TZ", zone)
    config = BackendConfig(state_dir=state / zone[0], model=str(model), server="embedded")
    async with running(config) as it:
        await it.ready()
        endpoint = await it.client.endpoint()
        async with llama_server(endpoint.url, endpoint.api_key) as server:
            return await server.render([{"role": "user", "content": "hello"}], [], {})


async def test_a_day_later_the_same_prompt_is_rendered(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = gguf_maker.make(state / "dated.gguf", template=DATED)
    # Twenty-four hours apart, so never on one date.
    days = [await rendered(state, model, zone, monkeypatch) for zone in ("A+12", "B-12")]
    assert days[0] == days[1]
    assert f"Today: {NO_DATE}" in days[0]


@pytest.mark.parametrize(
    ("written", "undated"),
    [
        ('strftime_now("%d %b %Y")', f'"{NO_DATE}"'),
        ("strftime_now('%B %d, %Y')", f'"{NO_DATE}"'),
        ('strftime_now( "%Y-%m-%d" )', f'"{NO_DATE}"'),
        ('strftime_now("%d")|int - 1', None),
        ('strftime_now("%H:%M")', None),
        ("strftime_now(format)", None),
    ],
    ids=["day-first", "in-words", "iso", "a-part", "a-time", "a-variable"],
)
def test_whole_dates_alone_are_constant(tmp_path: Path, written: str, undated: str | None) -> None:
    text = "{{ " + written + " }}"
    model = gguf_maker.make(tmp_path / "m.gguf", template=text)
    assert undated_template(model) == (undated and "{{ " + undated + " }}")
