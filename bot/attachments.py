"""Files that came with messages: fetched into the chat's workspace and named to the model when their turn begins."""

import asyncio
import base64
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

import aiohttp

from agent.errors import ToolError
from agent.sandbox.files import RECEIVED
from agent.sandbox.sandbox import Sandbox
from agent.store import Incoming, Store
from agent.store.chats import ChatFile
from agent.store.documents import PACKED, readable
from agent.store.inbox import InboxRow
from bot.channel import Channel, ChannelError

log = logging.getLogger(__name__)

MIB = 1 << 20
FETCH_SECONDS = 120.0
TRANSCRIBE_SECONDS = 300.0
PICTURES = 4  # shown to the model at once
PICTURE_BYTES = 5 * MIB
OWN_VOICE = ("voice", "video note")  # what a person says, unless it was forwarded
ATTEMPTS = 2  # a link may be out of date
NAME_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file as the app names it: `file_id` to download it, `unique_id` the same for the same file.

    `size` is in bytes, 0 where the app does not say; `seconds` of sound or film.
    """

    kind: Literal["photo", "document", "voice", "audio", "video", "video note", "animation"]
    file_id: str
    unique_id: str
    name: str
    mime: str = ""
    size: int = 0
    seconds: int = 0

    @property
    def description(self) -> str:
        """Kind, type, size and length, as far as they are known."""
        size = (
            f"{self.size / MIB:.1f} MB" if self.size >= MIB else f"{max(1, self.size // 1024)} kB"
        )
        mime = self.mime if self.kind != "photo" else ""
        length = f"{self.seconds} s" if self.seconds else ""
        return ", ".join(filter(None, [self.kind, mime, size if self.size else "", length]))


def to_json(files: Sequence[Attachment]) -> str:
    """The body of an inbox row."""
    return json.dumps([asdict(file) for file in files]) if files else "{}"


def from_json(body: str) -> list[Attachment]:
    found = json.loads(body)
    return [Attachment(**fields) for fields in found] if isinstance(found, list) else []


def safe_name(name: str) -> str:
    """A file name without folders, leading dots or control characters."""
    kept = "".join(c for c in name.replace("\\", "/").rpartition("/")[2] if c.isprintable())
    return kept.strip().lstrip(".")[-NAME_CHARACTERS:]


@dataclass(frozen=True)
class AttachmentFetcher:
    """Downloads attachments through the channel of their chat.

    `sees` tells whether the model takes pictures; `transcribe_url` is a server in
    OpenAI's form, or "".
    """

    channel: Callable[[str], Channel]
    store: Store
    sandbox: Callable[[str], Awaitable[Sandbox]]
    sees: Callable[[], Awaitable[bool]]
    transcribe_url: str = ""

    async def fetch(self, rows: Sequence[InboxRow]) -> Sequence[InboxRow]:
        """The rows with their files fetched and named (agent.context.user_message.Fetch)."""
        return [replace(row, incoming=await self._with_files(row.incoming)) for row in rows]

    async def _with_files(self, incoming: Incoming) -> Incoming:
        forwarded = bool(incoming.stranger)
        for attachment in from_json(incoming.body):
            own = attachment.kind in OWN_VOICE and not forwarded
            try:
                async with asyncio.timeout(FETCH_SECONDS):
                    content = await self._download(incoming.chat, attachment)
                    path = await self._save(incoming, attachment, content, own=own)
            except (ToolError, TimeoutError) as error:
                why = str(error) or f"it could not be fetched within {FETCH_SECONDS:.0f} s"
                line = f"{attachment.name} ({attachment.description}; not fetched: {why})"
                incoming = replace(incoming, files=(*incoming.files, line))
                seen = attachment.kind not in (*OWN_VOICE, "photo")  # by its name
            else:
                attachment = replace(attachment, size=len(content))
                pictures = len(incoming.images)
                incoming = await self._add(incoming, attachment, path, content)
                seen = attachment.kind != "photo" or len(incoming.images) > pictures
            if seen and not own:
                source = "; ".join(filter(None, [incoming.stranger, f"file {attachment.name}"]))
                incoming = replace(incoming, stranger=source)
        return incoming

    async def _download(self, chat: str, attachment: Attachment) -> bytes:
        """Raises ToolError, which says why not, for the model and the person."""
        channel = self.channel(chat)
        if attachment.size > (limit := channel.limits(chat).download):
            raise ToolError(f"larger than the {limit // MIB} MB that can be received here")
        for attempt in range(ATTEMPTS):
            try:
                return await channel.download(attachment.file_id)
            except ChannelError as error:
                log.info("fetching %s, attempt %d: %s", attachment.unique_id, attempt, error)
                reason = str(error)
        raise ToolError(reason)

    async def _save(
        self, incoming: Incoming, attachment: Attachment, content: bytes, *, own: bool
    ) -> str:
        """Its path in the workspace; another file of the same name is not replaced."""
        known = {f.path: f.remote for f in await self.store.files.recent(incoming.chat, 500)}
        path = f"{RECEIVED}/{attachment.name}"
        if known.get(path, attachment.unique_id) != attachment.unique_id:
            name = PurePosixPath(attachment.name)
            path = f"{RECEIVED}/{name.stem}-{attachment.unique_id[-6:]}{name.suffix}"
        files = (await self.sandbox(incoming.chat)).files
        await files.mark(*([] if own else [f"file {path}"]))
        await files.write(path, content)
        if path not in known:
            file = ChatFile(
                incoming.chat,
                path,
                "in",
                attachment.name,
                attachment.mime,
                len(content),
                attachment.unique_id,
                incoming.ref,
            )
            await self.store.files.add(file)
        if readable(path):
            await self.store.documents.add(incoming.chat, path, len(content), incoming.at)
        return path

    async def _add(
        self, incoming: Incoming, attachment: Attachment, path: str, content: bytes
    ) -> Incoming:
        """The message with the file's line; a picture is shown, speech is added as words."""
        note = ""
        if attachment.kind == "photo":
            if not await self.sees():
                note = "; this model cannot see pictures"
            elif len(content) > PICTURE_BYTES or len(incoming.images) >= PICTURES:
                note = "; not shown"
            else:
                url = f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"
                incoming = replace(incoming, images=(*incoming.images, url))
                note = "; shown"
        elif attachment.kind in ("voice", "video note"):
            note, words = await self._transcribed(attachment.name, content)
            incoming = replace(incoming, text="\n".join(filter(None, [incoming.text, words])))
        elif readable(path, PACKED):
            note = "; docs show and docs search read it"
        line = f"{path} ({attachment.description}{note})"
        return replace(incoming, files=(*incoming.files, line))

    async def _transcribed(self, name: str, content: bytes) -> tuple[str, str]:
        """What the file's line says about it, and the words
        (https://platform.openai.com/docs/api-reference/audio)."""
        if not self.transcribe_url:
            return "; no transcription server is configured", ""
        form = aiohttp.FormData()
        form.add_field("file", content, filename=name, content_type="application/octet-stream")
        form.add_field("model", "whisper-1")
        url = self.transcribe_url.rstrip("/").removesuffix("/v1") + "/v1/audio/transcriptions"
        try:
            async with (
                asyncio.timeout(TRANSCRIBE_SECONDS),  # aiohttp's own may swallow a cancellation
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
                session.post(url, data=form) as answer,
            ):
                answer.raise_for_status()
                return "; transcribed", str((await answer.json())["text"]).strip()
        except (aiohttp.ClientError, TimeoutError, KeyError, ValueError) as error:
            log.warning("transcription failed: %s", error)
            return "; it could not be transcribed", ""
