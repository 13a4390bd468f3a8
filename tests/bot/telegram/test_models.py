"""/model on the real backend: what serves, the buttons, a switch, its self-test, and the way back."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.llm.openai import OpenAIModel
from agent.llm.queued_model import backend_queue, profile_held
from agent.llm.selftest import SelftestStore
from agent.tools.registry import chosen
from backend.config import BackendConfig
from backend.gpu.history import History
from backend.protocol import GpuMinute, QueueState
from bot.localgram import Message
from bot.telegram.app import TelegramApp
from bot.texts import TEXTS
from fakes.backend_running import Running, running
from fakes.bot_running import RunningBot as Bot
from fakes.bot_running import TelegramScenario
from fakes.gguf_chain import make_chain
from fakes.patience import soon
from fakes.words import saying

CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
FORM = """title = "The {name} one"
gpu = false
context = 8192
good = "Good at {name} things."
bad = "Bad at others."
[model]
path = "{path}"
[flags.required]
"--jinja" = ""
{more}
"""


@pytest.fixture
def state() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="vm"))
    yield folder
    shutil.rmtree(folder)


def profile(state: Path, name: str, path: Path, more: str = "") -> None:
    folder = state / "own"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(FORM.format(name=name, path=path, more=more))


@asynccontextmanager
async def home(
    scenario: TelegramScenario, state: Path, urgent_model: str = ""
) -> AsyncIterator[tuple[Running, Bot[TelegramApp]]]:
    profile(state, "first", make_chain(state / "first.gguf", "Hello."))
    profile(state, "second", make_chain(state / "second.gguf", CALL))
    profile(state, "broken", state / "first.gguf", '"--no-such-flag" = ""')
    config = BackendConfig(
        state_dir=state,
        profile="first",
        profiles=state / "own",
        server="embedded",
        urgent_model=urgent_model,
    )
    async with running(config) as it, OpenAIModel(it.client.endpoint) as model:
        await it.ready()

        def services(bot: Bot[TelegramApp]) -> dict[str, Any]:
            schemas = [tool.schema for tool in chosen(("bash",))]
            selftests = SelftestStore(bot.store, model, backend_queue(it.client), schemas)
            return {"backend": it.client, "selftests": selftests}

        scenario.services = services
        async with scenario.open() as bot:
            yield it, bot


async def said(scenario: TelegramScenario, start: str) -> Message:
    return await scenario.owner.next_message(where=lambda m: m.text.startswith(start))


async def test_a_model_is_chosen_by_a_button_and_tried_once(
    scenario: TelegramScenario, state: Path
) -> None:
    async with home(scenario, state) as (it, bot):
        await scenario.owner.send("/model")
        card = await said(scenario, "The model is")
        assert card.text.splitlines() == [
            "The model is first.",
            "The first one",
            "Good at first things.",
            "Bad at others.",
            "A window of 8,192 tokens.",
        ]
        await scenario.owner.press(card, "second")
        ready = await said(scenario, "second is ready after ")
        tried = await scenario.owner.next_message()
        assert (await it.client.endpoint()).profile == "second"
        await scenario.owner.send("/model")
        again = await said(scenario, "The model is second.")
        facts = (await bot.store.ledger.rows())[-1].facts
    assert facts == '{"act": "model", "by": "Olga Owner", "to": "second"}'
    assert ready.text.endswith(" s.")
    assert tried.text == saying("calls tools")
    assert again.text.splitlines()[-1] == tried.text


async def test_a_model_that_does_not_start_gives_way_to_the_old_one(
    scenario: TelegramScenario, state: Path
) -> None:
    async with home(scenario, state) as (it, _):
        await scenario.owner.send("/model")
        await scenario.owner.press(await said(scenario, "The model is"), "broken")
        failed = await said(scenario, "broken could not be started: ")
        assert (await it.client.endpoint()).profile == "first"
    assert "--no-such-flag" in failed.text


async def test_a_turn_that_waits_for_a_switch_hears_why_and_when_it_goes_on(
    scenario: TelegramScenario, state: Path
) -> None:
    seen: list[QueueState] = []

    async def switch(it: Running) -> None:
        async for _ in it.client.use_profile("second"):
            pass

    async def turns(it: Running) -> None:
        while not seen:
            async with profile_held(it.client, "b", asyncio.Event(), seen.append):
                await asyncio.sleep(0)

    async with home(scenario, state) as (it, _), asyncio.TaskGroup() as group:
        async with profile_held(it.client, "a", asyncio.Event(), seen.append):
            group.create_task(switch(it))
            waiting = group.create_task(turns(it))
            await soon(lambda: seen)
        await waiting
    assert seen[0].reason == saying("being switched to second")
    assert seen[1:] == [QueueState(state="held")]


async def test_without_a_card_gpu_draws_the_speed_alone(
    scenario: TelegramScenario, state: Path
) -> None:
    async with home(scenario, state):
        nothing_yet = await scenario.owner.ask("/gpu")
        now = datetime.now(UTC)
        minutes = [
            GpuMinute(at=now - timedelta(minutes=n), decode_tok_s=40.0 + n) for n in range(9)
        ]
        History(state / "history.db").write(minutes)
        await scenario.owner.send("/gpu")
        drawn = await scenario.owner.next_message(where=lambda m: m.media is not None)
    assert (nothing_yet.text, nothing_yet.media) == (TEXTS.no_gpu, None)
    assert drawn.media and (drawn.media.kind, drawn.text) == ("photo", TEXTS.no_gpu_speed)
