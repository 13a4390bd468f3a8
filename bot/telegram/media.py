"""What came along with messages: fetched into the workspace and named to the model when their turn begins."""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import aiohttp
from telegram import Bot
from telegram.error import TelegramError

from agent.errors import ToolError
from agent.sandbox.files import RECEIVED
from agent.sandbox.sandbox import Sandbox
from agent.store import Incoming, Store
from agent.store.files import ChatFile
from agent.store.inbox import InboxRow
from bot.telegram.attachments import Attachment, read
from bot.telegram.channel import MIB

log = logging.getLogger(__name__)

FETCH_SECONDS = 120.0
TRANSCRIBE_SECONDS = 300.0
PICTURES = 4  # shown to the model at once
PICTURE_BYTES = 5 * MIB
TRIES = 2  # a link may be out of date
_SPOKEN = ("voice", "video note")


class NotFetched(Exception):
    """`str` says why, for the model and the person."""


@dataclass(frozen=True)
class Media:
    """`limit` in bytes; `sees` tells whether the model takes pictures; `whisper` is a server's URL or ""."""

    bot: Bot
    store: Store
    sandbox: Callable[[str], Awaitable[Sandbox]]
    sees: Callable[[], Awaitable[bool]]
    limit: int
    whisper: str = ""

    async def fetch(self, rows: Sequence[InboxRow]) -> Sequence[InboxRow]:
        """agent.context.user_message.Fetch: the rows with their files fetched and named."""
        return [
            replace(row, incoming=await self._with_files(row.incoming))
            if read(row.incoming.body)
            else row
            for row in rows
        ]

    async def _with_files(self, incoming: Incoming) -> Incoming:
        for attachment in read(incoming.body):
            try:
                async with asyncio.timeout(FETCH_SECONDS):
                    content = await self._content(attachment)
                    path = await self._save(incoming, attachment, content)
            except (NotFetched, ToolError, TimeoutError) as error:
                why = str(error) or f"it could not be fetched within {FETCH_SECONDS:.0f} s"
                line = f"{attachment.name} ({described(attachment)}; not fetched: {why})"
                incoming = replace(incoming, files=(*incoming.files, line))
            else:
                incoming = await self._told(incoming, attachment, path, content)
        return incoming

    async def _content(self, attachment: Attachment) -> bytes:
        if attachment.size > self.limit:
            raise NotFetched(f"larger than the {self.limit // MIB} MB that Telegram gives to bots")
        for attempt in range(TRIES):
            try:
                file = await self.bot.get_file(attachment.file_id)
                return bytes(await file.download_as_bytearray())
            except TelegramError as error:
                log.info("fetching %s, attempt %d: %s", attachment.unique_id, attempt, error)
                reason = str(error)
        raise NotFetched(reason)

    async def _save(self, incoming: Incoming, attachment: Attachment, content: bytes) -> str:
        """Its path in the workspace; another file of the same name is not replaced."""
        known = {f.path: f.remote for f in await self.store.files.recent(incoming.chat, 500)}
        path = f"{RECEIVED}/{attachment.name}"
        if known.get(path, attachment.unique_id) != attachment.unique_id:
            name = PurePosixPath(attachment.name)
            path = f"{RECEIVED}/{name.stem}-{attachment.unique_id[-6:]}{name.suffix}"
        await (await self.sandbox(incoming.chat)).files.write(path, content)
        if path not in known:
            await self.store.files.add(
                ChatFile(
                    incoming.chat,
                    path,
                    "in",
                    attachment.name,
                    attachment.mime,
                    len(content),
                    attachment.unique_id,
                    incoming.ref,
                )
            )
        return path

    async def _told(
        self, incoming: Incoming, attachment: Attachment, path: str, content: bytes
    ) -> Incoming:
        what = described(replace(attachment, size=len(content)))
        if attachment.kind == "photo":
            what, images = await self._seen(what, incoming, content)
            incoming = replace(incoming, images=images)
        elif attachment.kind in _SPOKEN:
            what, words = await self._heard(what, attachment, content)
            incoming = replace(incoming, text="\n".join(filter(None, [incoming.text, words])))
        return replace(incoming, files=(*incoming.files, f"{path} ({what})"))

    async def _seen(
        self, what: str, incoming: Incoming, content: bytes
    ) -> tuple[str, tuple[str, ...]]:
        if not await self.sees():
            return f"{what}; this model cannot see pictures", incoming.images
        if len(content) > PICTURE_BYTES or len(incoming.images) >= PICTURES:
            return f"{what}; not shown", incoming.images
        encoded = base64.b64encode(content).decode()
        return f"{what}; shown", (*incoming.images, f"data:image/jpeg;base64,{encoded}")

    async def _heard(self, what: str, attachment: Attachment, content: bytes) -> tuple[str, str]:
        if not self.whisper:
            return f"{what}; no transcription server is configured", ""
        try:
            words = await transcribe(self.whisper, attachment.name, content)
        except (aiohttp.ClientError, TimeoutError, KeyError, ValueError) as error:
            log.warning("transcription failed: %s", error)
            return f"{what}; it could not be transcribed", ""
        return f"{what}; transcribed", words


async def transcribe(server: str, name: str, content: bytes) -> str:
    """POST /v1/audio/transcriptions, https://platform.openai.com/docs/api-reference/audio."""
    form = aiohttp.FormData()
    form.add_field("file", content, filename=name, content_type="application/octet-stream")
    form.add_field("model", "whisper-1")
    url = server.rstrip("/").removesuffix("/v1") + "/v1/audio/transcriptions"
    async with (
        asyncio.timeout(TRANSCRIBE_SECONDS),  # aiohttp's own may swallow a cancellation
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
        session.post(url, data=form) as a,
    ):
        a.raise_for_status()
        return str((await a.json())["text"]).strip()


def described(attachment: Attachment) -> str:
    """Kind, type, size and length, as far as they are known."""
    size = attachment.size
    measured = f"{size / MIB:.1f} MB" if size >= MIB else f"{max(1, size // 1024)} kB"
    length = f"{attachment.seconds} s" if attachment.seconds else ""
    mime = attachment.mime if attachment.kind != "photo" else ""
    return ", ".join(filter(None, [attachment.kind, mime, measured if size else "", length]))
