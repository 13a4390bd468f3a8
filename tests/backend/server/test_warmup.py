"""The warm prefix on the real server: measured, restored where that works, read again where it does not."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from backend.config import BackendConfig
from backend.protocol import Prefix, Status
from backend.server.llama import Prefilled, ServerRefused, cached_tokens
from backend.server.warmup import PrefixStore, Warmer
from fakes import gguf_maker
from fakes.gguf_maker import TEMPLATE, Shape
from tests.backend.conftest import SYSTEM, Running, running

FIXED: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}


def is_warm(status: Status) -> bool:
    return status.backend.warm is not None and status.backend.serving


async def restarted(it: Running) -> Status:
    before = (await it.client.status()).backend.restarts
    await it.client.restart()
    return await it.until(lambda status: status.backend.restarts == before + 1 and is_warm(status))


async def test_the_first_turn_after_a_start_and_after_a_restart_reads_no_prefix(
    config: BackendConfig,
) -> None:
    async with running(config) as it:
        await it.client.warm(FIXED)
        first = await it.until(is_warm)
        cold = await it.ask("a", "hello")
        second = await restarted(it)
        again = await it.ask("a", "another")
    assert first.backend.warm and second.backend.warm
    assert (first.backend.warm.source, second.backend.warm.source) == ("prefill", "restore")
    tokens = first.backend.warm.tokens
    assert tokens == first.backend.warm.cached_tokens == second.backend.warm.cached_tokens > 512
    assert (cold["cache_n"], again["cache_n"]) == (tokens, tokens)
    assert max(cold["prompt_n"], again["prompt_n"]) < 60


async def test_chats_that_take_turns_are_read_once(config: BackendConfig) -> None:
    def begun(chat: str) -> list[dict[str, Any]]:
        return [*FIXED, {"role": "user", "content": f"{chat} " * 150}]

    async with running(config) as it:
        await it.client.warm(FIXED)
        await it.until(is_warm)
        first = {chat: await it.complete(begun(chat)) for chat in ("one", "two")}
        said = [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "more"}]
        again = {chat: await it.complete([*begun(chat), *said]) for chat in ("one", "two")}
    known = {chat: seen["cache_n"] + seen["prompt_n"] for chat, seen in first.items()}
    assert {chat: known[chat] - again[chat]["cache_n"] <= 16 for chat in known} == {
        "one": True,
        "two": True,
    }


async def test_a_changed_prefix_is_warmed_anew(config: BackendConfig) -> None:
    async with running(config) as it:
        await it.client.warm(FIXED)
        one = await it.until(is_warm)
        await it.client.warm(FIXED, [TOOL])
        other = await it.until(
            lambda status: is_warm(status) and status.backend.warm != one.backend.warm
        )
    assert one.backend.warm and other.backend.warm
    assert other.backend.warm.tokens > one.backend.warm.tokens


async def test_a_model_that_cannot_roll_back_is_as_warm_after_a_restart(
    config: BackendConfig, tmp_path: Path
) -> None:
    model = gguf_maker.make(tmp_path / "m.gguf", Shape(kind="lfm2"))
    async with running(replace(config, model=str(model))) as it:
        await it.client.warm(FIXED)
        await it.until(is_warm)
        status = await restarted(it)
        answer = await it.ask("a", "hello")
    assert status.backend.warm
    assert status.backend.warm.tokens - status.backend.warm.cached_tokens <= 16
    assert status.backend.warm.tokens - answer["cache_n"] <= 32


async def test_a_template_that_refuses_leaves_a_serving_server(
    config: BackendConfig, tmp_path: Path
) -> None:
    refusing = (
        "{% if 'a test' in messages[0].content %}{{ raise_exception('no') }}{% endif %}" + TEMPLATE
    )
    model = gguf_maker.make(tmp_path / "m.gguf", template=refusing)
    async with running(replace(config, model=str(model))) as it:
        await it.client.warm(FIXED)
        alert = await anext(it.client.events())
        await it.ready()
        status = await it.client.status()
    assert alert.name == "warm-up"
    assert (status.backend.state, status.backend.warm) == ("ready", None)


async def test_a_sleeping_server_is_woken_warm(config: BackendConfig) -> None:
    folder = config.state_dir / "own"
    folder.mkdir()
    (folder / "sleepy.toml").write_text(
        'title = "Sleeps"\ngpu = false\ncontext = 8192\n[model]\npath = "x"\n'
        '[flags.required]\n"--parallel" = "1"\n"--sleep-idle-seconds" = "1"\n'
    )
    async with running(replace(config, profile="sleepy", profiles=folder)) as it:
        await it.client.warm(FIXED)
        warm = await it.until(is_warm)
        await it.until(lambda status: status.backend.state == "sleeping")
        answer = await it.ask("a", "hello")
        status = await it.client.status()
    assert warm.backend.warm
    assert answer["cache_n"] == warm.backend.warm.tokens
    assert status.backend.restarts == 0


async def test_a_prefix_in_front_of_the_first_message_is_warmed_as_it_is_sent(
    config: BackendConfig,
) -> None:
    """A template without a system role gets the system text there."""
    async with running(config) as it:
        await it.client.warm([], before=f"{SYSTEM}\n\n")
        warm = (await it.until(is_warm)).backend.warm
        answer = await it.complete([{"role": "user", "content": f"{SYSTEM}\n\nhello"}])
    assert warm and answer["cache_n"] == warm.tokens > 512


# --- with a server in memory -----------------------------------------------------


@dataclass
class MemoryServer:
    """One slot; a token is a letter. `shape` renders a user's message; files hold slots."""

    folder: Path
    shape: Callable[[str], str] = str
    cache: list[int] = field(default_factory=list)
    rolls_back: bool = True
    reuses: bool = True
    refuses: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)

    async def render(self, messages: Any, tools: Any, template: Any) -> str:
        head = "".join(message["content"] for message in messages[:-1])
        return f"{head}{len(tools)}{len(template)}{self.shape(messages[-1]['content'])}"

    async def tokenize(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.refuses:
            raise ServerRefused(500, "no")

    async def prefill(self, tokens: Sequence[int], on_progress: Any = None) -> Prefilled:
        self._call("prefill")
        same = sum(
            1 for _ in takewhile(lambda p: p[0] == p[1], zip(self.cache, tokens, strict=False))
        )
        if not self.rolls_back and same < len(self.cache):
            same = 0
        if on_progress:
            on_progress(len(tokens), len(tokens))
        self.cache = list(tokens)
        return Prefilled(same, len(tokens) - same, 0.1)

    async def save(self, filename: str) -> tuple[int, int]:
        self._call("save")
        written = (self.folder / filename).write_text(json.dumps(self.cache))
        return len(self.cache), written

    async def restore(self, filename: str) -> int:
        self._call("restore")
        saved = json.loads((self.folder / filename).read_text())
        self.cache = saved if self.reuses else []
        return len(saved)


LONG = "s" * 600


def letters(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def warmer(server: Any, folder: Path, identity: str = "m", slots: int = 1) -> Warmer:
    return Warmer(server, folder, identity, {}, slots)


def prefix(text: str = LONG, before: str = "") -> Prefix:
    return Prefix(messages=[{"role": "system", "content": text}], tools=[], before=before)


def ignoring(*dropped: str) -> Callable[[str], str]:
    return lambda text: "".join(letter for letter in text if letter not in dropped)


@pytest.mark.parametrize(
    ("shape", "before", "shared"),
    [
        (str, "", "xy00"),
        (str, "in front ", "xy00in front "),
        (lambda text: f"<user>{text}</user>", "", "xy00<user>"),
        (lambda text: f"<{len(text)}>{text}", "", "xy00<"),
        (ignoring("A"), "", "xy00"),
        (ignoring("7", " ", "b"), "", "xy00"),
        (lambda text: "", "", "xy00"),
    ],
    ids=["plain", "in front", "marks", "length", "shorter first", "shorter second", "no word"],
)
async def test_a_prefix_is_what_every_message_is_rendered_behind(
    tmp_path: Path, shape: Callable[[str], str], before: str, shared: str
) -> None:
    it = warmer(MemoryServer(tmp_path, shape), tmp_path)
    assert await it.tokens(prefix("xy", before)) == letters(shared)


async def test_tools_and_the_templates_settings_are_part_of_the_prefix(tmp_path: Path) -> None:
    it = Warmer(MemoryServer(tmp_path), tmp_path, "m", {"enable_thinking": False})  # type: ignore[arg-type]
    with_tool = prefix("xy").model_copy(update={"tools": [TOOL]})
    assert await it.tokens(with_tool) == letters("xy11")


@pytest.mark.parametrize("rolls_back", [True, False])
async def test_a_restart_restores_what_a_probe_finds_in_the_cache(
    tmp_path: Path, rolls_back: bool
) -> None:
    seen: list[tuple[int, int]] = []
    first = MemoryServer(tmp_path, rolls_back=rolls_back)
    read = await warmer(first, tmp_path).warm(prefix(), lambda *done: seen.append(done))
    assert (read.source, read.tokens, read.cached_tokens) == ("prefill", 602, 602)
    assert seen == [(0, 602), (602, 602)]
    second = MemoryServer(tmp_path, rolls_back=rolls_back)
    restored = await warmer(second, tmp_path).warm(prefix(), lambda *done: None)
    assert (restored.source, restored.tokens, restored.cached_tokens) == ("restore", 602, 602)
    assert second.cache == letters(LONG + "00")  # without the probe's own token
    assert (await second.prefill(letters(LONG + "00hello"))).cached == 602


async def test_a_file_that_is_refused_is_written_anew(tmp_path: Path) -> None:
    await warmer(MemoryServer(tmp_path), tmp_path).warm(prefix(), lambda *done: None)
    server = MemoryServer(tmp_path, refuses={"restore"})
    warm = await warmer(server, tmp_path).warm(prefix(), lambda *done: None)
    assert (warm.source, warm.cached_tokens) == ("prefill", 602)
    assert server.calls[:3] == ["restore", "prefill", "save"]
    assert server.cache == letters(LONG + "00")


async def test_a_server_that_reuses_no_file_is_asked_once_and_has_the_prefix(
    tmp_path: Path,
) -> None:
    server = MemoryServer(tmp_path, reuses=False)
    first = warmer(server, tmp_path)
    warm = await first.warm(prefix(), lambda *done: None)
    assert (warm.source, warm.cached_tokens, first.reused) == ("prefill", 602, None)
    assert server.cache == letters(LONG + "00")
    server.calls.clear()
    await warmer(server, tmp_path).warm(prefix(), lambda *done: None)
    assert server.calls == ["prefill"]


@pytest.mark.parametrize(
    ("tokens", "slots", "refuses", "files"),
    [(512, 1, set(), 1), (511, 1, set(), 0), (600, 2, set(), 0), (600, 1, {"save"}, 0)],
    ids=["long enough", "too short", "more slots", "refused"],
)
async def test_a_slot_is_saved_where_that_is_of_use(
    tmp_path: Path, tokens: int, slots: int, refuses: set[str], files: int
) -> None:
    server = MemoryServer(tmp_path, refuses=refuses)
    await server.prefill(range(tokens))
    await warmer(server, tmp_path, slots=slots).save(list(range(tokens)))
    assert len(list(tmp_path.glob("*.slot"))) == files


async def test_with_more_slots_than_one_no_file_is_restored(tmp_path: Path) -> None:
    await warmer(MemoryServer(tmp_path), tmp_path).warm(prefix(), lambda *done: None)
    server = MemoryServer(tmp_path)
    warm = await warmer(server, tmp_path, slots=2).warm(prefix(), lambda *done: None)
    assert (warm.source, server.calls) == ("prefill", ["prefill"])


async def test_half_a_slot_is_not_kept(tmp_path: Path) -> None:
    server = MemoryServer(tmp_path)
    await server.prefill(range(599))
    await warmer(server, tmp_path).save(list(range(600)))
    assert list(tmp_path.glob("*.slot")) == []


async def test_the_newest_two_files_are_kept_one_for_each_model_and_prefix(tmp_path: Path) -> None:
    server = MemoryServer(tmp_path)
    names = []
    for number, (identity, text) in enumerate([("m", "a"), ("m", "b"), ("n", "b")]):
        it = warmer(server, tmp_path, identity)
        await it.warm(prefix(text * 600), lambda *done: None)
        file = it.slot_file(letters(text * 600 + "00"))
        assert file.is_file()
        os.utime(file, (number, number))
        names.append(file.name)
    assert len(set(names)) == 3
    assert {file.name for file in tmp_path.glob("*.slot")} == set(names[1:])


def test_a_prefix_is_registered_once_and_read_by_the_next_start(tmp_path: Path) -> None:
    store = PrefixStore(tmp_path / "prefix.json")
    store.read()
    assert store.prefix is None
    assert [store.register(one) for one in (prefix("a"), prefix("a"), prefix("b"))] == [
        True,
        False,
        True,
    ]
    later = PrefixStore(tmp_path / "prefix.json")
    later.read()
    assert later.prefix == store.prefix == prefix("b")
    (tmp_path / "prefix.json").write_text("{")
    damaged = PrefixStore(tmp_path / "prefix.json")
    damaged.read()
    assert damaged.prefix is None
    nowhere = PrefixStore(tmp_path / "prefix.json/none")
    assert nowhere.register(prefix("a"))
    assert nowhere.prefix == prefix("a")


def test_what_a_server_did_not_read_was_in_its_cache() -> None:
    assert cached_tokens({"cache_n": 20, "prompt_n": 10}, 30) == 20
    assert cached_tokens({"prompt_n": 1}, 30) == 29  # ik_llama.cpp
    assert cached_tokens({}, 30) == 0
