"""A chat's first word after a restart of the model server, with its prompt saved to the disk and without.

    python -m bench.restart GGUF [--tokens N] [--times N]

measures it through the whole product: a chat of N tokens, cold, and after restarts of server and bot, two others
used in between.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, get_args

from agent.agent import Agent
from agent.channels import NoChannels
from agent.chats.chats import Chats
from agent.chats.maintenance import Maintenance
from agent.events import TokenUsage
from agent.messages import Assistant, User
from agent.store import Incoming
from agent.store.turns import RenderedMessage, TurnEnd
from backend.config import BackendConfig
from bench.real_models.long_talk import Person
from bot.agent_config import open_agent
from bot.cli.connect import running_backend
from bot.settings import Settings, StateSection
from fakes.backend_running import QUICK, SYSTEM, running
from fakes.gguf_maker import Kind, Shape, make

FIXED: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
WORDS = 1500
CHATS = "abc"  # of which the first is asked after the restart
OTHERS_TOKENS = 250
LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class FirstWord:
    """Seconds until the first word, and tokens that were read for it, with saved prompts and without."""

    model: str
    saved_seconds: float
    saved_tokens: int
    unsaved_seconds: float
    unsaved_tokens: int


async def first_words(folder: Path, model: Path | None) -> list[FirstWord]:
    """For each kind of attention (dense, sliding windows, hybrid) a toy, or `model` alone."""
    toys = [make(folder / kind / f"{kind}.gguf", Shape(kind=kind)) for kind in get_args(Kind)]
    found = []
    for number, path in enumerate([model] if model else toys):
        print(f"restart: {path.name}", file=sys.stderr)
        saved = await first_word(folder / f"s{number}", path, 4096)
        unsaved = await first_word(folder / f"u{number}", path, 0)
        found.append(FirstWord(path.stem, *saved, *unsaved))
    return found


async def first_word(folder: Path, model: Path, saved_prompts_mib: int) -> tuple[float, int]:
    folder.mkdir()
    config = BackendConfig(
        folder, model=str(model), server="embedded", saved_prompts_mib=saved_prompts_mib
    )
    async with running(config, replace(QUICK, least_saved=0, stall=60.0)) as it:
        await it.client.warm(FIXED)
        await it.until(lambda status: status.backend.warm is not None and status.backend.serving)
        for chat in CHATS:
            await it.complete(said(chat), chat, save=True)
        await it.client.restart()
        await it.until(lambda now: now.backend.restarts == 1 and now.backend.serving)
        began = monotonic()
        more = {"role": "user", "content": "And now?"}
        timings = await it.complete([*said(CHATS[0]), more], CHATS[0])
        seconds = monotonic() - began - timings["predicted_ms"] / 1000
    return round(seconds, 3), int(timings["prompt_n"])


def said(chat: str) -> list[dict[str, Any]]:
    words = " ".join(f"{chat}{number}" for number in range(WORDS))
    return [*FIXED, {"role": "user", "content": words}, {"role": "assistant", "content": "Yes."}]


def print_table(rows: list[FirstWord]) -> None:
    print(f"\n{'first word after a restart':<40}{'with files':>22}{'without':>22}")
    for row in rows:
        kept = f"{row.saved_seconds:.2f} s, read {row.saved_tokens:,}"
        read = f"{row.unsaved_seconds:.2f} s, read {row.unsaved_tokens:,}"
        print(f"{row.model:<40}{kept:>22}{read:>22}")


# -- through the whole product ----------------------------------------------------


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=4000)
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        state, kept = Path(folder) / "state", Path(folder) / "kept"
        async with product(state, asked.model) as (agent, person, maintenance):
            prefix = (await agent.window.budget()).prefix
            for chat in CHATS:
                said = asked.tokens - prefix if chat == CHATS[0] else OTHERS_TOKENS
                await add_turn(agent, chat, "old " * said)
                person.chat = chat
                await person.ask("Say yes or no: is this much?")
            # That conversations stay separate is checked once; it would be the first thing after a restart.
            while CHATS[0] not in maintenance.saved or not (state / "canary.json").exists():
                await asyncio.sleep(LOOK_SECONDS)
            print(f"cold: {person.first[0]:.2f} s")
        shutil.copytree(state, kept, symlinks=True, ignore=shutil.ignore_patterns("run"))
        for _ in range(asked.times):
            # In the same place: files of prompts are not used from another folder.
            shutil.rmtree(state)
            shutil.copytree(kept, state, symlinks=True)
            async with product(state, asked.model) as (agent, person, _):
                person.chat = CHATS[0]
                await person.ask("And now, yes or no?")
                print(f"after a restart: {person.first[0]:.2f} s, {person.read} tokens read")


@asynccontextmanager
async def product(state: Path, model: Path) -> AsyncIterator[tuple[Agent, Person, Maintenance]]:
    """Backend and bot with the model, ready, without a messenger."""
    settings = Settings(state=StateSection(dir=state))
    async with (
        running_backend(settings, str(model)) as backend,
        open_agent(settings, backend) as agent,
    ):
        person = Person(CHATS[0])
        async with Chats(agent.store, agent.run, agent.window, NoChannels(), person) as chats:
            person.chats = chats
            maintenance = Maintenance(
                agent.store, agent.window, chats, agent.server_identity, saves=agent.saves_prompts
            )
            await agent.ready()
            await agent.refresh_status()
            while not (await backend.status()).backend.warm:
                await asyncio.sleep(LOOK_SECONDS)
            keeping = asyncio.create_task(maintenance.run())
            yield agent, person, maintenance
            keeping.cancel()


async def add_turn(agent: Agent, chat: str, text: str) -> None:
    """A turn of that text that is over."""
    await agent.store.inbox.add(Incoming(chat, "cli", chat, text, origin="owner"))
    rows = await agent.store.inbox.waiting(chat)
    turn = await agent.store.turns.begin(chat, rows, RenderedMessage("", User(text)))
    end = TurnEnd(Assistant("I have read it."), "I have read it.", "done", TokenUsage())
    await agent.store.turns.end(turn, end)


if __name__ == "__main__":
    asyncio.run(main())
