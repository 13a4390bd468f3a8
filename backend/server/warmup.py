"""Warm-up: the fixed prefix is read into the server's cache before anybody waits for it.

The prefix's tokens are found by rendering it with two different user messages: their
common beginning is the prefix, template included. It is sent as tokens, so that the
cache ends exactly where requests differ (sliding-window and hybrid models cannot roll
back).
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from time import monotonic
from typing import Any

from backend.files import replace_text
from backend.protocol import Prefix, WarmPrefix
from backend.server.llama import LlamaServer, ServerAway, ServerRefused

LEAST_SAVED = 512  # tokens: a shorter prefix is read faster than its file
KEPT_FILES = 2
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


@dataclass(frozen=True, slots=True)
class Warmer:
    """Reads prefixes into one server; slot files are keyed by `identity` (model, flags, build).

    `template` holds the profile's chat_template_kwargs, `slots` is the server's number of slots.
    """

    server: LlamaServer
    folder: Path
    identity: str
    template: dict[str, Any]
    slots: int = 1

    async def warm(self, prefix: Prefix, on_progress: OnProgress) -> WarmPrefix:
        """Warm the prefix, from a slot file if a probe shows that the server really reuses it."""
        began = monotonic()
        tokens = await self.tokens(prefix)
        on_progress(0, len(tokens))
        cached, source = len(tokens), "restore"
        if not await self.restore(tokens):
            done = await self.server.prefill(tokens, on_progress)
            cached, source = done.cached + done.prompt, "prefill"
            await self.save(tokens)
        return WarmPrefix(
            tokens=len(tokens),
            cached_tokens=cached,
            seconds=round(monotonic() - began, 3),
            source=source,
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

    async def restore(self, tokens: list[int]) -> bool:
        """Restore the slot file; True if a one-token probe then finds all of it in the cache."""
        file = self.slot_file(tokens)
        if self.slots > 1 or not file.is_file():
            return False
        try:
            await self.server.restore(file.name)
            # A restore may report success and reuse nothing (llama.cpp #25913).
            probe = await self.server.prefill([*tokens, tokens[-1]])
            if probe.cached == len(tokens):
                # Restore again, because models that cannot roll back keep the probe's token.
                await self.server.restore(file.name)
                return True
        except ServerRefused:
            pass
        file.unlink(missing_ok=True)
        return False

    async def save(self, tokens: list[int]) -> None:
        """Save the slot, and delete the oldest files."""
        if self.slots > 1 or len(tokens) < LEAST_SAVED:
            return
        file = self.slot_file(tokens)
        try:
            saved = await self.server.save(file.name)
        except (ServerRefused, ServerAway, KeyError):
            return
        if saved < len(tokens):
            file.unlink(missing_ok=True)
        files = sorted(self.folder.glob("*.slot"), key=lambda file: file.stat().st_mtime)
        for old in files[:-KEPT_FILES]:
            old.unlink(missing_ok=True)
