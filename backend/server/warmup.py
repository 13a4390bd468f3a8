"""The warm prefix: read into the server's cache before anybody waits for it.

The tokens that every request of the fixed prefix shares are found by rendering
it twice with two different messages behind it: what both begin with is the
prefix, template included. They are sent as tokens, so that the cache ends
exactly where requests part (sliding-window and hybrid models cannot roll back).
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

from backend.protocol import Prefix, WarmPrefix
from backend.server.llama import LlamaServer, ServerAway, ServerRefused

LEAST_SAVED = 512  # tokens: less is read again faster than it is looked up
FILES = 2
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Register:
    """The prefix to be kept warm. It lasts in `path`."""

    path: Path
    fixed: Prefix | None = None

    def read(self) -> None:
        with suppress(OSError, ValueError):
            self.fixed = Prefix.model_validate_json(self.path.read_text("utf-8"))

    def add(self, prefix: Prefix) -> bool:
        """Note a prefix; True when it is a new one."""
        if prefix == self.fixed:
            return False
        self.fixed = prefix
        with suppress(OSError):  # on a full disk the next start has to be told once more
            self._keep(prefix)
        return True

    def _keep(self, prefix: Prefix) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(prefix.model_dump_json(), "utf-8")
        fresh.replace(self.path)


@dataclass(frozen=True, slots=True)
class Warmer:
    """Reads prefixes into one server; `identity` names model, flags and build for slot files."""

    server: LlamaServer
    folder: Path
    identity: str
    values: dict[str, Any]
    slots: int = 1

    async def fixed(self, prefix: Prefix, on_progress: Progress) -> WarmPrefix:
        """Warm the fixed prefix, from a slot file where one is really reused."""
        began = monotonic()
        tokens = await self.tokens(prefix)
        on_progress(0, len(tokens))
        if await self._restored(tokens):
            return WarmPrefix(
                tokens=len(tokens),
                cached_tokens=len(tokens),
                seconds=round(monotonic() - began, 3),
                source="restore",
            )
        filled = await self.server.prefill(tokens, on_progress)
        await self._save(tokens)
        return WarmPrefix(
            tokens=len(tokens),
            cached_tokens=filled.cached + filled.prompt,
            seconds=round(monotonic() - began, 3),
            source="prefill",
        )

    async def tokens(self, prefix: Prefix) -> list[int]:
        """The tokens that every continuation of `prefix` begins with."""
        one, other = [await self._rendered(prefix, word) for word in ("A", "7 b")]
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
        return [token for token, _ in pairs]

    async def _rendered(self, prefix: Prefix, word: str) -> list[int]:
        messages = [*prefix.messages, {"role": "user", "content": word}]
        text = await self.server.render(messages, prefix.tools, self.values)
        return await self.server.tokenize(text)

    def _file(self, tokens: list[int]) -> Path:
        key = hashlib.sha256(json.dumps([self.identity, tokens]).encode()).hexdigest()[:24]
        return self.folder / f"{key}.slot"

    async def _restored(self, tokens: list[int]) -> bool:
        """Whether a slot file is there and a one-token probe finds all of it in the cache."""
        file = self._file(tokens)
        if self.slots > 1 or not file.is_file():
            return False
        try:
            await self.server.restore(file.name)
            probe = await self.server.prefill([*tokens, tokens[-1]])
            if probe.cached != len(tokens):
                file.unlink(missing_ok=True)
                return False
            # Once more, so that the probe's own token is not in the way of those that cannot roll back.
            await self.server.restore(file.name)
        except ServerRefused:
            file.unlink(missing_ok=True)
            return False
        return True

    async def _save(self, tokens: list[int]) -> None:
        if self.slots > 1 or len(tokens) < LEAST_SAVED:
            return
        file = self._file(tokens)
        try:
            saved = await self.server.save(file.name)
        except (ServerRefused, ServerAway, KeyError):
            return
        if saved < len(tokens):
            file.unlink(missing_ok=True)
        self._tidy()

    def _tidy(self) -> None:
        files = sorted(self.folder.glob("*.slot"), key=lambda file: file.stat().st_mtime)
        for old in files[:-FILES]:
            old.unlink(missing_ok=True)
