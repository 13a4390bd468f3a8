"""A chat's first word after a restart of the model server, with its prompt saved to the disk and without."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, get_args

from backend.config import BackendConfig
from fakes.backend_running import QUICK, SYSTEM, running
from fakes.gguf_maker import Kind, Shape, make

FIXED: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
WORDS = 1500
CHATS = "abc"  # of which the first is asked after the restart


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
