"""A chat's prompt on disk: the slot is saved while nobody waits, and restored once the server has lost it.

A file is named CHAT-IDENTITY-TOKENS-SPEED-SIZE.chat: hashes of the chat and of what it is valid for (the model's file,
the server, its flags, the fixed prefix), the number of tokens, the tokens/s that reading them took, and the bytes.
"""

import asyncio
import errno
import hashlib
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from backend.protocol import CompletionReport, Restored, WarmPrefix
from backend.server.llama import LlamaServer, ServerAway, ServerRefused

NOTHING_SHARED = [1]  # a prompt that makes the server move the slot's own into its cache in RAM
DISK_BYTES_S = 200e6  # until one was measured
LONGEST_WRITE_S = 10.0  # the server answers nobody meanwhile
LEAST_MEASURED = 32  # tokens: the speed of reading fewer says nothing
PART = ".part"


@dataclass(frozen=True, slots=True)
class ChatFile:
    path: Path
    tokens: int
    speed: int
    size: int

    @classmethod
    def of(cls, path: Path) -> "ChatFile":
        return cls(path, *map(int, path.stem.split("-")[2:]))


@dataclass(slots=True)
class ChatStates:
    """The chats' files for one run of the server; inactive until `begin`, which decides whether files help.

    `ram_bytes` is the size of the server's own cache; a file is written where it saves `least_seconds` of reading.
    `rolls_back`: what the slot holds is reused up to any token.
    """

    server: LlamaServer
    folder: Path
    most_bytes: float
    ram_bytes: float
    least_seconds: float
    rolls_back: bool
    on_restored: Callable[[Restored], None]
    # Tokens that the server has, by chat.
    live: OrderedDict[str, int] = field(default_factory=OrderedDict)
    # Those of them whose clients have not had them saved.
    unsaved: set[str] = field(default_factory=set)
    _identity: str = ""
    _prefix: int = 0  # tokens that are warm without a file
    _token_bytes: float = 0.0
    _disk_speed: float = DISK_BYTES_S
    _read_speed: float = 0.0
    # File, chat, seconds; until its request has ended.
    _restored: tuple[ChatFile, str, float] | None = None
    _flush: asyncio.Task[None] | None = None

    @property
    def active(self) -> bool:
        """Whether prompts are saved."""
        return bool(self._identity)

    def begin(self, warm: WarmPrefix, prefix_file: Path | None) -> None:
        """Start with a server that has read the prefix and no chat; `prefix_file` is its slot file, if that was reused."""
        self.live.clear()
        self.unsaved.clear()
        self._identity, self._prefix = "", warm.tokens
        if warm.source == "prefill" and warm.seconds:
            self._read_speed = warm.tokens / warm.seconds
        if prefix_file and self.most_bytes:
            self._identity = prefix_file.stem
            self._token_bytes = prefix_file.stat().st_size / warm.tokens

    def end(self) -> None:
        """Stop touching files, as the server is away."""
        self._identity = ""

    def restoring(self, chat: str) -> Coroutine[None, None, None] | None:
        """What to await before a request of this chat; None where the server has its prompt, or no file helps."""
        if not self._identity:
            return None
        known = chat in self.live
        self.live.setdefault(chat, 0)
        self.live.move_to_end(chat)
        file = None if known else self._file(chat)
        if file is None or not file.size / self._disk_speed < self._seconds(file):
            return None
        return self._restore(chat, file)

    def completed(self, report: CompletionReport) -> None:
        """Note how long the chat's prompt is now, and what a restore has saved."""
        chat, prompt, cached = report.chat, report.prompt_tokens, report.cached_tokens
        if chat not in self.live or prompt is None or cached is None:
            return
        if report.prefill_tok_s and prompt - cached >= LEAST_MEASURED:
            self._read_speed = report.prefill_tok_s
        self.live[chat] = prompt
        self.unsaved.add(chat)
        while len(self.live) > 1 and self._token_bytes * sum(self.live.values()) > self.ram_bytes:
            self.unsaved.discard(self.live.popitem(last=False)[0])
        if self._restored is None or self._restored[1] != chat:
            return
        (file, _, seconds), self._restored = self._restored, None
        tokens = cached - self._prefix
        if tokens > 0:
            saved = tokens / file.speed - seconds
            self.on_restored(Restored(chats=1, tokens=tokens, seconds=saved))
        else:  # the conversation has changed, so that the file was of no use
            file.path.unlink(missing_ok=True)

    async def save(self, chat: str) -> None:
        """Save the slot, which holds the chat's prompt, unless what is new in it is read as fast as written."""
        self.unsaved.discard(chat)
        before = self._file(chat) if self._identity else None
        tokens, speed = self.live.get(chat, 0), self._read_speed or (before.speed if before else 0)
        size = tokens * self._token_bytes
        writing = size / self._disk_speed
        unsaved = abs(tokens - (before.tokens if before else self._prefix))
        if not self._identity or not tokens or not speed or writing > LONGEST_WRITE_S:
            return
        if unsaved <= speed * max(self.least_seconds, writing) or not self._make_room(size):
            return
        await self.flushed()
        part, began = self.folder / f"{chat_hash(chat)}{PART}", monotonic()
        try:
            saved = await save_slot(self.server, part)
        except (ServerAway, ServerRefused, KeyError, OSError):
            part.unlink(missing_ok=True)
            return
        size = part.stat().st_size
        self._token_bytes, self._disk_speed = size / tokens, size / (monotonic() - began)
        name = f"{chat_hash(chat)}-{self._identity}-{saved}-{max(1, round(speed))}-{size}.chat"
        self._flush = asyncio.create_task(self._finish(chat, part, self.folder / name))

    async def flushed(self) -> None:
        """Wait until the last saved file is on the disk."""
        if self._flush:
            await asyncio.wait([self._flush])

    def _file(self, chat: str) -> ChatFile | None:
        for found in self.folder.glob(f"{chat_hash(chat)}-{self._identity}-*.chat"):
            with suppress(ValueError, TypeError, OSError):  # a copy that another program has named
                file = ChatFile.of(found)
                if found.stat().st_size == file.size:
                    return file
                found.unlink()  # cut since: the server does not survive it
        return None

    def _seconds(self, file: ChatFile) -> float:
        """How long reading takes what the file holds."""
        return (file.tokens - self._prefix) / file.speed

    async def _restore(self, chat: str, file: ChatFile) -> None:
        began = monotonic()
        try:
            if (
                len(self.live) > 1 or not self.rolls_back
            ):  # another chat's prompt, or the prefix alone, would be lost
                await self.server.prefill(NOTHING_SHARED)
            reading = monotonic()
            self.live[chat] = await restore_slot(self.server, file.path)
            self._disk_speed = file.size / (monotonic() - reading)
            os.utime(file.path)
            self._restored = file, chat, monotonic() - began
        except (ServerRefused, ServerAway, KeyError, OSError):
            pass  # it is read

    def _make_room(self, size: float) -> bool:
        """Delete the files used longest ago until one of `size` may be added."""
        files = sorted(self.folder.glob("*.chat"), key=lambda file: file.stat().st_mtime)
        held = sum(file.stat().st_size for file in files)
        bound = min(self.most_bytes, (held + shutil.disk_usage(self.folder).free) / 4)
        for file in files if size <= bound else []:
            if held + size <= bound:
                break
            held -= file.stat().st_size
            file.unlink()
        return size <= bound

    async def _finish(self, chat: str, part: Path, file: Path) -> None:
        """Give a saved file its name, once it is on the disk: it is whole, or it is not used."""
        with suppress(OSError):  # a full disk, or another server has begun
            await asyncio.to_thread(flush, part)
            if chat in self.live:  # not forgotten meanwhile
                for older in self.folder.glob(f"{file.name.rsplit('-', 3)[0]}-*"):
                    older.unlink(missing_ok=True)
                part.replace(file)
        part.unlink(missing_ok=True)


async def save_slot(server: LlamaServer, file: Path) -> int:
    """Save slot 0 to a file that only this user may read; return the number of tokens. OSError if it is not whole."""
    file.touch(mode=0o600)
    tokens, size = await server.save(file.name)
    if file.stat().st_size != size:  # a full disk, which the server may not notice
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return tokens


async def restore_slot(server: LlamaServer, file: Path) -> int:
    """Restore slot 0; return the number of tokens. A file that fails is deleted, also when the server does not
    survive it (build 11549 hangs on half a file)."""
    part = file.with_suffix(PART)
    file.rename(part)
    try:
        restored = await server.restore(part.name)
        part.rename(file)
    finally:
        part.unlink(missing_ok=True)
    return restored


def flush(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def chat_hash(chat: str) -> str:
    return hashlib.sha256(chat.encode()).hexdigest()[:24]
