"""Files that came with messages: downloaded into the chat's workspace and listed for the model when the turn begins."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, get_args

from agent.errors import ToolError
from agent.files import PACKED, is_document
from agent.sandbox.files import RECEIVED
from agent.sandbox.output_buffer import visible
from agent.store import Incoming
from agent.store.errors import StoreError
from agent.store.inbox import InboxRow
from bot.channel import ChannelError, DeliveryUncertain, NotSent, OutgoingMessage, send

if TYPE_CHECKING:  # loaded when they are used
    from agent.agent import Agent
    from bot.messaging_apps import Apps

log = logging.getLogger(__name__)

MIB = 1 << 20
FETCH_SECONDS = 120.0  # of one attempt
AWAY_SECONDS = 600.0  # of attempts while an app does not answer: no reply could reach it either
AGAIN_SECONDS = 2.0
READ_SECONDS = 20.0  # that a message waits for the text of its documents
STILL_READ = "It is long and still being read: docs list says when it is ready."
BEGINNING = 300  # characters of a text that are quoted
BLIND = "; this model cannot see pictures, and the person was told so: do not guess what it shows"
PICTURE_KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml", "image/bmp", "image/tiff", "image/heic")  # fmt: skip
OWN_VOICE = ("voice", "video note")  # what a person says, unless it was forwarded
HEARD = (*OWN_VOICE, "audio")  # what is transcribed
ATTEMPTS = 2  # a link may be out of date
NAME_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message. `file_id` downloads it; `unique_id` is the same whenever the same file is sent.

    `size` is in bytes, 0 where the app does not say; `seconds` is the length of sound or film. `heard`: its
    words are part of the message's text already. `answered`: it is of the message that is replied to.
    """

    kind: Literal["photo", "document", "voice", "audio", "video", "video note", "animation"]
    file_id: str
    unique_id: str
    name: str
    mime: str = ""
    size: int = 0
    seconds: int = 0
    heard: bool = False
    answered: bool = False

    @property
    def is_picture(self) -> bool:
        return self.kind == "photo" or (self.kind == "document" and self.mime in PICTURE_KINDS)

    @property
    def description(self) -> str:
        """Kind, type, size and length, as far as they are known."""
        large = self.size >= MIB
        size = f"{self.size / MIB:.1f} MB" if large else f"{max(1, self.size // 1024)} kB"
        mime = self.mime if self.kind != "photo" else ""
        length = f"{self.seconds} s" if self.seconds else ""
        return ", ".join(filter(None, [self.kind, mime, size if self.size else "", length]))


def to_json(files: Sequence[Attachment]) -> str:
    """The attachment as JSON for an inbox row."""
    return json.dumps([asdict(file) for file in files]) if files else "{}"


def from_json(body: str) -> list[Attachment]:
    found = json.loads(body)
    return [Attachment(**fields) for fields in found] if isinstance(found, list) else []


def safe_name(name: str) -> str:
    """A file name without folders, leading dots or control characters."""
    kept = "".join(c for c in name.replace("\\", "/").rpartition("/")[2] if c.isprintable())
    return kept.rstrip()[-NAME_CHARACTERS:].lstrip(". ")


def text_facts(content: bytes) -> str:
    """Describe a text file by its number of lines and its beginning; "" for other files."""
    head = content[: BEGINNING * 4]
    if b"\0" in head:
        return ""
    text = head.decode("utf-8", "ignore")
    lost = len(head) - len(text.encode())
    if not text.strip() or lost > 3:  # more than a letter that is cut at the end: no UTF-8
        return ""
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    return f"{lines:,} line{'' if lines == 1 else 's'}{beginning(text)}."


def beginning(text: str) -> str:
    """The first words for a line of the context block; its marks in them are replaced."""
    words = " ".join(visible(text).split()).replace("<", "‹").replace(">", "›")
    cut = words if len(words) <= BEGINNING else f"{words[:BEGINNING]}…"
    return f', it begins: "{cut}"'


@dataclass(frozen=True)
class AttachmentFetcher:
    """Downloads attachments through the channel of their chat, for the agent.

    A chat whose model sees no pictures is told so, unless the picture came without words, which the turn
    answers itself.
    """

    agent: "Agent"
    apps: "Apps"

    async def fetch(self, rows: Sequence[InboxRow]) -> Sequence[InboxRow]:
        """Download the files of these rows, and return the rows with them listed (agent.channels.Channels)."""
        found, shown = list[InboxRow](), 0
        for row in rows:
            incoming = await self._with_files(row, shown)
            shown += len(incoming.images)
            found.append(replace(row, incoming=incoming))
        words = any(row.incoming.text for row in rows)
        if words and any(BLIND in line for row in found for line in row.incoming.files):
            await self._tell_blind(rows[0].incoming.chat)
        return found

    async def _tell_blind(self, chat: str) -> None:
        with suppress(ChannelError):
            words = OutgoingMessage(await self.agent.blind_words(), silent=True)
            await send(self.apps.channel(chat), chat, words)

    async def _with_files(self, row: InboxRow, shown: int) -> Incoming:
        """`shown`: how many pictures the same prompt message shows already."""
        incoming, told = row.incoming, list[str]()
        files = from_json(incoming.body)
        forwarded = bool(incoming.stranger)
        for attachment in files:
            if attachment.heard:
                continue
            own = attachment.kind in OWN_VOICE and not forwarded and not attachment.answered
            try:
                content = await self._download(incoming.chat, attachment)
                path = await self._save(incoming, attachment, content, own=own)
            except ToolError as error:
                line = f"{attachment.name} ({attachment.description}; not fetched: {error})"
                incoming = replace(incoming, files=(*incoming.files, line))
                seen = attachment.kind not in (*OWN_VOICE, "photo")  # by its name
            else:
                attachment = replace(attachment, size=len(content))
                pictures = len(incoming.images)
                if attachment.kind in HEARD:
                    incoming, message = await self._add_words(incoming, attachment, path)
                    told.append(message.to_json())
                else:
                    incoming = await self._add(incoming, attachment, path, content, shown)
                seen = attachment.kind != "photo" or len(incoming.images) > pictures
            if seen and not own:
                source = "; ".join(filter(None, [incoming.stranger, f"file {attachment.name}"]))
                incoming = replace(incoming, stranger=source)
        if told:
            body = to_json([replace(file, heard=True) for file in files])
            incoming = replace(incoming, body=body)
            await self.agent.store.inbox.heard(replace(row, incoming=incoming), told)
            self.agent.store.outbox.wake()
        return incoming

    async def _download(self, chat: str, attachment: Attachment) -> bytes:
        """Download a file. Raises ToolError with the reason for model and person."""
        channel = self.apps.channel(chat)
        if attachment.size > (limit := channel.limits(chat).download):
            raise ToolError(f"larger than the {limit // MIB} MB that can be received here")
        clock, attempt = asyncio.get_running_loop().time, 0
        until = clock() + AWAY_SECONDS
        while True:
            attempt += 1
            try:
                async with asyncio.timeout(FETCH_SECONDS):
                    return await channel.download(attachment.file_id)
            except TimeoutError:
                raise ToolError(f"it took longer than {FETCH_SECONDS:.0f} s") from None
            except (NotSent, DeliveryUncertain) as error:
                log.info("fetching %s, attempt %d: %s", attachment.unique_id, attempt, error)
                if clock() >= until:
                    raise ToolError(str(error)) from None
                await asyncio.sleep(max(AGAIN_SECONDS, getattr(error, "after", 0.0)))
            except ChannelError as error:
                log.info("fetching %s, attempt %d: %s", attachment.unique_id, attempt, error)
                if attempt >= ATTEMPTS:
                    raise ToolError(str(error)) from None

    async def _save(
        self, incoming: Incoming, attachment: Attachment, content: bytes, *, own: bool
    ) -> str:
        """Write the file into the workspace, replacing no other one of that name; return its path there."""
        known, path = self.agent.store.files, f"{RECEIVED}/{attachment.name}"
        if await known.remote(incoming.chat, path) not in (None, attachment.unique_id):
            name = PurePosixPath(attachment.name)
            path = f"{RECEIVED}/{name.stem}-{attachment.unique_id[-6:]}{name.suffix}"
        files = (await self.agent.sandboxes.of(incoming.chat)).files
        await files.mark(*([] if own else [f"file {path}"]))
        await files.write(path, content)
        await known.add(incoming.chat, path, attachment.unique_id)
        if is_document(path):
            await self.agent.store.documents.add(incoming.chat, path, len(content), incoming.at)
        return path

    async def _add(
        self, incoming: Incoming, attachment: Attachment, path: str, content: bytes, shown: int
    ) -> Incoming:
        """The message with a line about the file, its picture, or the length and beginning of its text."""
        note = ""
        if attachment.is_picture:
            note, images = await self._shown(content, shown + len(incoming.images))
            incoming = replace(incoming, images=(*incoming.images, *images))
        else:
            if is_document(path, PACKED):
                note = "; docs show and docs search read it"
            if told := await self._holds(incoming.chat, path, content):
                line = f"{path}: {told}"
                incoming = replace(incoming, context_lines=(*incoming.context_lines, line))
        line = f"{path} ({attachment.description}{note})"
        return replace(incoming, files=(*incoming.files, line))

    async def _shown(self, content: bytes, shown: int) -> tuple[str, tuple[str, ...]]:
        """A note for the picture's line, and its data URL where the model sees it."""
        from agent import pictures  # loaded when the first one comes

        vision = await self.agent.vision()
        if vision is None:
            return BLIND, ()
        if shown >= vision.most:
            return f"; not shown: {vision.most} are the most at once; read_file shows it", ()
        try:
            return "; shown", (await pictures.shown(content, vision),)
        except ToolError as error:
            return f"; not shown: {error}", ()

    async def _holds(self, chat: str, path: str, content: bytes) -> str:
        """Length and beginning of a document or text, or why it cannot be read; "" for other files."""
        if not is_document(path, PACKED):
            return text_facts(content)
        try:
            async with asyncio.timeout(READ_SECONDS):  # what takes longer is read meanwhile
                library = self.agent.documents.library(chat)
                found = next((d for d in await library.documents() if d.path == path), None)
                if found is None or found.state != "ready":
                    return found.note if found else ""
                _, passages = await library.show(found.title, 1, 1)
        except TimeoutError:
            return STILL_READ
        except (ToolError, StoreError) as error:
            return str(error)
        begins = beginning(passages[0].text) if passages else ""
        return " ".join(filter(None, [f"{found.length}{begins}.", found.note]))

    async def _add_words(
        self, incoming: Incoming, attachment: Attachment, path: str
    ) -> tuple[Incoming, OutgoingMessage]:
        """The message with the words of a recording, and the reply that shows them to its sender."""
        from bot.voice.recordings import Listening, hear

        channel, chat = self.apps.channel(incoming.chat), incoming.chat
        progress = Listening(channel, chat, attachment.seconds)
        box = await self.agent.sandboxes.of(chat)
        heard = await hear(self.agent.speech_to_text(), box, path, progress, incoming.ref)
        words = heard.words
        if attachment.answered and words:
            words = f"[{attachment.name} says: {words}]"
        text = "\n".join(filter(None, [incoming.text, words]))
        line = f"{path} ({attachment.description}{heard.note})"
        return replace(incoming, text=text, files=(*incoming.files, line)), heard.told


VOICE = "voice"  # the name of that setting of a chat
VoiceSetting = Literal["off", "same", "always"]


def voice_setting(settings: Mapping[str, Any]) -> VoiceSetting:
    found = settings.get(VOICE)
    return next((each for each in get_args(VoiceSetting) if each == found), "off")


def is_spoken(settings: Mapping[str, Any], answered: Sequence[Incoming]) -> bool:
    """Whether an answer to these messages is spoken."""
    setting = voice_setting(settings)
    if setting != "same":
        return setting == "always"
    return any(file.kind in OWN_VOICE for incoming in answered for file in from_json(incoming.body))
