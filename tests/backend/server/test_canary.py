"""Canary conversations: a server that mixes chats up is found, however it does; no honest one is."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from backend.config import BackendConfig
from backend.control.gpu_queue import GpuRequestQueue
from backend.protocol import PERSON, Prefix
from backend.server.canary import TURNS, Canary, CanaryRecord
from backend.server.llama import llama_server
from backend.server.warmup import Warmer
from fakes import gguf_maker, leaking_server, spoken
from fakes.gguf_maker import Shape
from fakes.llama_embedded import serve
from fakes.patience import SECONDS, soon
from fakes.words import saying
from tests.backend.conftest import QUICK, SYSTEM, Running, running, with_server

WATCHFUL = replace(QUICK, canary=0.05)
POCKET = Path(gguf_maker.__file__).parents[1] / "backend/embedded/pocket.gguf"
FIXED: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
BY_DAY = ("Qwen3.5-4B",)
HONEST_BY_DAY = (("llama", "1"),)


def templates() -> list[Any]:
    """The names of the real templates; all but a few on request."""
    names = sorted(path.stem for path in spoken.FOLDER.glob("*.jinja"))
    return [pytest.param(name, marks=() if name in BY_DAY else pytest.mark.slow) for name in names]


def leaks_told(it: Running) -> list[str]:
    return [alert.text for alert in it.backend.state.alerts.kept if alert.name == "leak"]


def restarts_for_a_leak(it: Running) -> int:
    """In this state folder."""
    causes = [restart.cause for restart in it.backend.state.restarts.read()]
    return causes.count(saying("now serves one at a time"))


async def isolated(it: Running) -> None:
    await soon(lambda: it.backend.state.canary.checked.endswith("isolated"))


@pytest.fixture
def pocket(config: BackendConfig) -> BackendConfig:
    return replace(config, model=str(POCKET))


@pytest.mark.parametrize(
    "leak", ["append", *(pytest.param(leak, marks=pytest.mark.slow) for leak in ("swap", "state"))]
)
async def test_a_server_that_mixes_conversations_up_is_found_and_told(
    pocket: BackendConfig, leak: str
) -> None:
    program = leaking_server.install(pocket.state_dir / "fake", leak)
    async with running(with_server(pocket, program), WATCHFUL) as it:
        await it.client.warm(FIXED)

        def told() -> bool:
            """It is checked until the leak is found: one check of sixty finds nothing where words are appended."""
            if len(leaks_told(it)) < 2:
                it.backend.state.canary.checked = ""
            return len(leaks_told(it)) == 2

        await soon(told)
    assert leaks_told(it) == [saying("now serves one at a time"), saying("another build")]
    assert restarts_for_a_leak(it) == 1


async def test_a_server_that_leaked_runs_with_one_slot_and_no_cache_from_then_on(
    pocket: BackendConfig,
) -> None:
    program = leaking_server.install(pocket.state_dir / "fake", "late state", mends=True)
    config = with_server(pocket, program)
    for _ in range(2):
        async with running(config, WATCHFUL) as it:
            await isolated(it)
            await it.ready()
            assert not (await it.client.endpoint()).keeps_prompts
            assert restarts_for_a_leak(it) == 1
            assert len(leaks_told(it)) == 1


@pytest.mark.parametrize(
    ("kind", "slots"),
    [
        pytest.param(kind, slots, marks=() if (kind, slots) in HONEST_BY_DAY else pytest.mark.slow)
        for kind in ("pocket", "llama", "gemma3", "lfm2")
        for slots in ("1", "2")
    ],
)
async def test_an_honest_server_is_checked_once_and_goes_on(
    config: BackendConfig, tmp_path: Path, kind: Any, slots: str
) -> None:
    model = POCKET if kind == "pocket" else gguf_maker.make(tmp_path / "m.gguf", Shape(kind=kind))
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    (profiles / "p.toml").write_text(PROFILE.format(model=model, slots=slots))
    async with running(replace(config, model="", profile="p", profiles=profiles), WATCHFUL) as it:
        await it.client.warm(FIXED)
        record = it.backend.state.canary
        await soon(lambda: record.checked)
        first = record.at
        await it.client.restart()
        await it.until(lambda status: status.backend.restarts == 1 and status.backend.serving)
        await it.complete([*FIXED, {"role": "user", "content": "Hello."}])
        assert (leaks_told(it), record.leaking, record.at) == ([], [], first)
        assert it.backend.state.idle_cost.work().seconds > 0


PROFILE = """
title = "A small model"
gpu = false
context = 8192
[model]
path = "{model}"
[flags.required]
"--parallel" = "{slots}"
[flags.optional]
"--slot-prompt-similarity" = "0.95"
"""


@pytest.mark.parametrize("name", templates())
async def test_no_template_makes_an_honest_server_a_leaking_one(name: str) -> None:
    folder = spoken.FOLDER / f"{name}.jinja"
    async with (
        serve(POCKET, template=folder) as endpoint,
        llama_server(endpoint.url, endpoint.api_key) as server,
    ):
        warmer = Warmer(server, Path(), "", {})
        for _ in range(3):
            tokens = await warmer.tokens(Prefix(messages=FIXED))
            canary = Canary(server, GpuRequestQueue(), tokens)
            assert not await canary.leaks()


async def test_it_waits_until_no_turn_is_open(pocket: BackendConfig) -> None:
    async with running(pocket, WATCHFUL) as it:
        queue, record = it.backend.state.gpu_queue, it.backend.state.canary
        with queue.turn("a", lambda state: None):
            await it.ready()
            await soon(lambda: queue.waiters)
            assert (queue.holders, record.checked) == ([], "")
        await soon(lambda: record.checked)
        assert leaks_told(it) == []


class Hanging:
    """A server that does not answer the first request; `asked` counts them."""

    asked = 0

    async def tokenize(self, text: str, *, special: bool) -> list[int]:
        return [*map(ord, text)]

    async def completion(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        self.asked += 1
        if self.asked == 1:
            await asyncio.Event().wait()
        yield {"content": "fine"}


async def test_a_person_interrupts_a_request_which_is_made_again() -> None:
    server, queue = Hanging(), GpuRequestQueue()
    checking = asyncio.create_task(Canary(cast(Any, server), queue, []).leaks())
    async with asyncio.timeout(SECONDS):
        await soon(lambda: server.asked)
        async with queue.acquire("a", PERSON):
            assert server.asked == 1
        assert await checking is False
    assert server.asked == 1 + 2 * (1 + 2 * TURNS)


def test_it_is_due_for_another_server_and_once_a_night(tmp_path: Path) -> None:
    record = CanaryRecord(tmp_path / "canary.json")
    assert record.due("one", 1e9, 12)
    record.add("one", 1e9, "one")
    record = CanaryRecord(tmp_path / "canary.json")
    record.read()
    assert (record.checked, record.at, record.leaking) == ("one", 1e9, ["one"])
    assert not record.due("one", 1e9 + 86_400, 12)
    assert record.due("one", 1e9 + 86_400, 3)
    assert not record.due("one", 1e9 + 3600, 3)
    assert record.due("two", 1e9 + 1, 12)
    (tmp_path / "canary.json").write_text("[]")
    record.read()
    assert record.leaking == ["one"]
