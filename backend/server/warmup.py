"""Warm-up: the fixed prefix is read into the server's cache before anybody waits for it.

The prefix's tokens are found by rendering it with two different user messages: their
common beginning is the prefix, template included. It is sent as tokens, so that the
cache ends exactly where requests differ (sliding-window and hybrid models cannot roll
back).
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from time import monotonic
from typing import Any

from backend.files import replace_text
from backend.protocol import Prefix, WarmPrefix
from backend.server.chat_states import PART, flush, restore_slot, save_slot
from backend.server.llama import LlamaServer, ServerAway, ServerRefused

LEAST_SAVED = 512  # tokens: a shorter prefix is read faster than its file
KEPT_FILES = 2
READ_AGAIN = 16  # tokens before the end, at most, that a sliding-window model reads again
OnProgress = Callable[[int, int], None]  # tokens read so far, tokens in total


@dataclass(slots=True)
class PrefixStore:
    """The registered prefix, stored in `path` for the next start."""

    path: Path
    prefix: Prefix | None = None

    def read(self) -> None:
        with suppress(OSError, ValueError):
            self.prefix = Prefix.model_validate_json(self.path.read_text("utf-8"))

    def register(self, prefix: Prefix) -> bool:
        """Store a prefix; return whether it is a new one."""
        if prefix == self.prefix:
            return False
        self.prefix = prefix
        with suppress(OSError):  # on a full disk the bot has to register it again after a restart
            replace_text(self.path, prefix.model_dump_json())
        return True


@dataclass(slots=True)
class Warmer:
    """Reads prefixes into one server; slot files are keyed by `identity` (model, flags, build).

    `template` holds the profile's chat_template_kwargs, `slots` is the server's number of slots. `reused` is the
    slot file of the warm prefix, once a probe has shown that the server really reuses it.
    """

    server: LlamaServer
    folder: Path
    identity: str
    template: dict[str, Any]
    slots: int = 1
    reused: Path | None = None

    async def warm(self, prefix: Prefix, on_progress: OnProgress) -> WarmPrefix:
        """Warm the prefix, from a slot file if that is reused."""
        began = monotonic()
        tokens = await self.tokens(prefix)
        on_progress(0, len(tokens))
        cached, source, seconds = await self.restore(tokens), "restore", monotonic() - began
        if not cached:
            done = await self.server.prefill(tokens, on_progress)
            cached, source, seconds = done.cached + done.prompt, "prefill", monotonic() - began
            if await self.save(tokens) and not await self.restore(tokens):
                await self.server.prefill(tokens)  # the probe has emptied the slot
        return WarmPrefix(
            tokens=len(tokens), cached_tokens=cached, seconds=round(seconds, 3), source=source
        )

    async def tokens(self, prefix: Prefix) -> list[int]:
        """The tokens that every continuation of `prefix` begins with."""
        rendered = []
        for word in ("A", "7 b"):
            messages = [*prefix.messages, {"role": "user", "content": prefix.before + word}]
            text = await self.server.render(messages, prefix.tools, self.template)
            rendered.append(await self.server.tokenize(text))
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(*rendered, strict=False))
        return [token for token, _ in pairs]

    def slot_file(self, tokens: list[int]) -> Path:
        key = hashlib.sha256(json.dumps([self.identity, tokens]).encode()).hexdigest()[:24]
        return self.folder / f"{key}.slot"

    async def restore(self, tokens: list[int]) -> int:
        """Restore the slot file; return how much of it a one-token probe finds in the cache, 0 where that is not
        all. An empty file stands for one that was not reused."""
        file, self.reused = self.slot_file(tokens), None
        if self.slots > 1 or not file.is_file() or not file.stat().st_size:
            return 0
        try:
            await restore_slot(self.server, file)
            # A restore may report success and reuse nothing (llama.cpp #25913).
            probe = await self.server.prefill([*tokens, tokens[-1]])
            if probe.cached < len(tokens) - READ_AGAIN:
                os.truncate(file, 0)
                return 0
            # Restore again, because models that cannot roll back keep the probe's token.
            await restore_slot(self.server, file)
        except ServerRefused:
            return 0
        self.reused = file
        return min(probe.cached, len(tokens))

    async def save(self, tokens: list[int]) -> bool:
        """Save the slot to a file and delete the oldest files; return whether a new whole file was written."""
        file = self.slot_file(tokens)
        if self.slots > 1 or len(tokens) < LEAST_SAVED or file.exists():
            return False
        part = file.with_suffix(PART)
        try:
            saved = await save_slot(self.server, part)
            await asyncio.to_thread(flush, part)
        except (ServerRefused, ServerAway, KeyError, OSError):
            saved = 0
        if saved >= len(tokens):
            part.replace(file)
        part.unlink(missing_ok=True)
        files = sorted(self.folder.glob("*.slot"), key=lambda file: file.stat().st_mtime)
        for old in files[:-KEPT_FILES]:
            old.unlink(missing_ok=True)
        return saved >= len(tokens)
