"""Matrix as a channel: texts in parts, files, edits, receipts; in an encrypted room all is encrypted but
reactions.

A send may be repeated safely: the homeserver remembers its transaction for a day.
"""

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from typing import Any
from urllib.parse import quote

from agent.aio import BackgroundTasks
from agent.files import media_type
from agent.leaks import LeakDetector
from bot.attachments import MIB
from bot.channel import (
    ANSWER_FILE,
    MOST_PARTS,
    SEEN,
    Channel,
    ChannelError,
    ChannelLimits,
    ChatGone,
    ChatMoved,
    DeliveryUncertain,
    Keyboard,
    LiveView,
    MessageRefused,
    NamedFile,
    NotSent,
    OutgoingMessage,
    refuse_secret,
    refuse_secret_files,
)
from bot.matrix.encryption import FAULTS, Encryption
from bot.matrix.homeserver import (
    CLIENT,
    Homeserver,
    HomeserverAway,
    HomeserverBusy,
    HomeserverError,
    HomeserverRefused,
    MatrixJson,
    room_path,
)
from bot.matrix.incoming_message import VOICE
from bot.matrix.keyboards import KeyboardStore, offered, with_buttons
from bot.matrix.live import PART_BYTES, LiveEvent, LiveEventStore, message_content, split
from bot.matrix.rooms import PREFIX, SOURCE, JoinedRoom, RoomKey, parse
from bot.rate_limiter import Rate, RateLimiter, Urgency
from bot.texts import TEXTS

log = logging.getLogger(__name__)

LIMIT = 50 * MIB  # Synapse's own for uploads
TYPING_MS = 10_000
# Synapse takes ten events of an account at once and then one in five seconds (rc_message); progress
# leaves half of that to answers.
PROGRESS = Rate(burst=5, seconds=10.0, spare=0)
GONE = ("M_FORBIDDEN", "M_NOT_FOUND", "M_UNKNOWN_ROOM")


class MatrixChannel(Channel):
    """One account. `leaks` knows what must not be sent; `encryption` is there once it has logged in."""

    source = SOURCE
    prefix = PREFIX
    repeat_seconds = 20 * 3600.0  # Synapse keeps transactions for 24 hours

    def __init__(
        self,
        server: Homeserver,
        keyboards: KeyboardStore,
        unfinished: LiveEventStore,
        leaks: LeakDetector,
    ) -> None:
        self.server = server
        self.encryption: Encryption | None = None
        self.synced = asyncio.Event()  # what rooms there are is known
        self.tasks = BackgroundTasks()  # reactions beside what they stand under
        self._keyboards = keyboards
        self._unfinished = unfinished
        self._leaks = leaks
        self._locks: dict[str, asyncio.Lock] = {}
        self._progress = RateLimiter(PROGRESS, calls=4)
        self._newest: dict[str, str] = {}
        self._opening = asyncio.Lock()
        self._looked_up: set[str] = set()  # rooms whose encryption the homeserver was asked for
        self._asked: dict[str, tuple[str, Keyboard]] = {}  # questions on their way, by transaction
        self.invited_by: Callable[[str], str | None] = lambda user: None

    # -- names ----------------------------------------------------------------

    def user_of(self, chat: str) -> str | None:
        room = parse(chat).room
        if room.startswith("@"):
            return room
        return self.encryption.rooms.partner(room) if self.encryption else None

    async def name(self, chat: str) -> str:
        return self.encryption.rooms.called(parse(chat).room) if self.encryption else ""

    def limits(self, chat: str) -> ChannelLimits:
        return ChannelLimits(upload=LIMIT, download=LIMIT, update_seconds=1.5)

    def received(self, chat: str, message: str) -> None:
        self._newest[chat] = message

    @asynccontextmanager
    async def permit(self, chat: str) -> AsyncIterator[None]:
        """Wait for the homeserver and for the room's other messages, to send one in the block."""
        await self.synced.wait()
        async with self._locks.setdefault(parse(chat).room, asyncio.Lock()):
            yield

    # -- sending --------------------------------------------------------------

    async def send_part(
        self, chat: str, message: OutgoingMessage
    ) -> tuple[str, OutgoingMessage | None]:
        refuse_secret(self._leaks, message.text)
        transaction = f"{message.transaction or uuid.uuid4().hex}.{message.part}"
        parts = split(message.text)
        if message.sound is not None:
            whole = len(parts) == 1
            content = await self._file_content(
                chat, (BytesIO(message.sound.ogg), "voice.ogg"), message.text if whole else ""
            )
            milliseconds = round(message.sound.seconds * 1000)
            content["info"]["duration"] = milliseconds
            content |= {VOICE: {}, "org.matrix.msc1767.audio": {"duration": milliseconds}}
            id = await self.send_content(chat, content, f"{transaction}.voice")
            return id, None if whole else replace(message, voice=False, sound=None)
        kind = "m.notice" if message.silent else "m.text"
        reply_to = "" if message.part else self._quoted(chat, message)
        if too_long := len(parts) > MOST_PARTS:
            parts = [self._beginning(message.text)]
        if message.part == len(parts):
            file = BytesIO(message.text.encode())
            content = await self._file_content(chat, (file, ANSWER_FILE), "")
            return await self.send_content(chat, content, transaction), None
        last = message.part + 1 == len(parts)
        keyboard = message.keyboard if last else ()
        text = with_buttons(parts[message.part], keyboard)
        if keyboard:
            self._asked[transaction] = chat, keyboard
        id = await self.send_content(chat, message_content(text, kind), transaction, reply_to)
        if keyboard:
            await self.keep_keyboard(chat, id, keyboard)
            self._asked.pop(transaction, None)
            self.tasks.start(self._offer(chat, id, keyboard, transaction), "reactions to press")
        whole = last and not too_long
        return id, None if whole else replace(message, part=message.part + 1)

    def _beginning(self, text: str) -> str:
        """What stands above a text that is sent as a file."""
        below = TEXTS.whole_in_file.format(count=len(text), name=ANSWER_FILE)
        return f"{split(text, PART_BYTES // 2)[0]}\n\n*{below}*"

    async def seen(self, transaction: str, id: str) -> None:
        """Note an event of the bot that a sync delivered, perhaps before the answer to its send: its buttons work from now
        on."""
        if asked := self._asked.pop(transaction, None):
            await self.keep_keyboard(asked[0], id, asked[1])

    def _quoted(self, chat: str, message: OutgoingMessage) -> str:
        """In a room of two the answer to the newest message needs no quote of it; a question does."""
        newest = message.reply_to == self._newest.get(chat) and self.user_of(chat) is not None
        return "" if newest and not message.keyboard else message.reply_to

    async def _offer(self, chat: str, id: str, keyboard: Keyboard, transaction: str) -> None:
        """React with the numbers of a question's buttons. ChannelErrors are ignored."""
        for number, sign in enumerate(offered(keyboard)):
            with suppress(ChannelError):
                async with self._progress.permit(Urgency.FINAL, self._progress.ticket()):
                    await self._annotate(chat, id, sign, f"{transaction}.r{number}")

    async def _annotate(self, chat: str, message: str, emoji: str, transaction: str) -> None:
        """React to a message. Raises ChannelError."""
        relation = {"rel_type": "m.annotation", "event_id": message, "key": emoji}
        content, room = {"m.relates_to": relation}, await self._room(chat)
        await self.put_event(room, "m.reaction", content, transaction, plain=True)

    async def send_content(
        self, chat: str, content: MatrixJson, transaction: str, reply_to: str = ""
    ) -> str:
        """Send an m.room.message, in the chat's thread if it is one; return its id. Raises ChannelError."""
        thread = parse(chat).thread
        relation: MatrixJson = {"m.in_reply_to": {"event_id": reply_to}} if reply_to else {}
        if thread:
            relation |= {"rel_type": "m.thread", "event_id": thread}
            relation.setdefault("m.in_reply_to", {"event_id": thread})
            relation["is_falling_back"] = not reply_to
        if relation:
            content = {**content, "m.relates_to": relation}
        return await self.put_event(await self._room(chat), "m.room.message", content, transaction)

    async def put_event(
        self,
        room: JoinedRoom,
        kind: str,
        content: MatrixJson,
        transaction: str,
        *,
        plain: bool = False,
    ) -> str:
        """Send an event, encrypted if the room is; return its id. Reactions are sent `plain`, as apps read no others,
        and hold no words. Raises ChannelError."""
        encryption = self._logged_in()
        with channel_errors(room):
            await self._learn_encryption(room)
            if room.encrypted and not plain:
                try:
                    content = await encryption.encrypt(room, kind, content)
                except FAULTS as error:
                    raise MessageRefused(f"it cannot be encrypted ({error})") from error
                kind = "m.room.encrypted"
            self._logged_in(encryption)
            path = room_path(room.id, "send", kind, transaction)
            return str((await self.server.put(path, content))["event_id"])

    def _logged_in(self, since: Encryption | None = None) -> Encryption:
        """The keys of the session. Raises NotSent if there is none, or another one than `since`: nothing is sent as
        one device with the keys of another."""
        if self.encryption is None or since not in (None, self.encryption):
            raise NotSent("the bot logs in anew", 1.0)
        return self.encryption

    async def _learn_encryption(self, room: JoinedRoom) -> None:
        """Ask the homeserver once about each room that no sync has called encrypted."""
        if room.encrypted or room.id in self._looked_up:
            return
        encryption = self._logged_in()
        try:
            content = await self.server.get(room_path(room.id, "state", "m.room.encryption", ""))
            event = {"type": "m.room.encryption", "state_key": "", "content": content}
            self._logged_in(encryption)
            encryption.change(room, event)
            encryption.settle(room)
        except HomeserverRefused as error:
            if error.code != "M_NOT_FOUND":
                raise
        self._looked_up.add(room.id)

    async def _room(self, chat: str) -> JoinedRoom:
        """The chat's room. For a user's private chat one is created if there is none. Raises ChannelError."""
        id = parse(chat).room
        if self.encryption is None or not self.synced.is_set():
            raise NotSent("the homeserver has not been reached yet", 1.0)
        rooms = self.encryption.rooms
        if not id.startswith("@"):
            if id not in rooms:
                raise ChatGone(f"the bot is not in the room {id}")
            return rooms[id]
        async with self._opening:
            if found := self._logged_in().rooms.direct(id):
                return found[-1]
            with channel_errors():
                if invited := self.invited_by(id):
                    await self.server.post(f"{CLIENT}/join/{quote(invited)}", {})
                    raise NotSent("its room is being joined", 0.5)
                return await self._open_direct(id)

    async def _open_direct(self, user: str) -> JoinedRoom:
        encrypted = {
            "type": "m.room.encryption",
            "state_key": "",
            "content": {"algorithm": "m.megolm.v1.aes-sha2"},
        }
        wanted = {
            "preset": "trusted_private_chat",
            "is_direct": True,
            "invite": [user],
            "initial_state": [encrypted],
        }
        room = str((await self.server.post(f"{CLIENT}/createRoom", wanted))["room_id"])
        encryption = self._logged_in()
        me = encryption.rooms.me
        opened = encryption.rooms.opened(room)  # the next sync says the same, or one has meanwhile
        opened.encrypted = True
        opened.members = {user: user, me: me, **opened.members}
        encryption.settle(opened)
        return opened

    async def send_files(
        self,
        chat: str,
        files: Sequence[NamedFile],
        caption: str,
        *,
        silent: bool = False,  # a file has no such form here
    ) -> list[str]:
        refuse_secret(self._leaks, caption)
        await refuse_secret_files(self._leaks, files)
        sent: list[str] = []
        for number, file in enumerate(files):
            content = await self._file_content(chat, file, "" if number else caption)
            sent.append(await self._send_repeatedly(chat, content))
        return sent

    async def _send_repeatedly(self, chat: str, content: MatrixJson) -> str:
        """Send, and repeat with the same transaction what got no answer or came too fast."""
        transaction = uuid.uuid4().hex
        for pause in (1.0, 4.0, 10.0, 0.0):
            try:
                async with self.permit(chat):
                    return await self.send_content(chat, content, transaction)
            except (NotSent, DeliveryUncertain) as error:
                if not pause:
                    raise
                await asyncio.sleep(max(pause, getattr(error, "after", 0.0)))
        raise AssertionError

    async def _file_content(self, chat: str, file: NamedFile, caption: str) -> MatrixJson:
        """Upload a file, encrypted where the room is. Raises ChannelError."""
        opened, name = file
        room = await self._room(chat)
        opened.seek(0)
        content = await asyncio.to_thread(opened.read)
        mime = media_type(name)
        described: MatrixJson = {"mimetype": mime, "size": len(content)}
        with channel_errors(room):
            await self._learn_encryption(room)
            if room.encrypted:
                sealed, keys = await asyncio.to_thread(encrypted_file, content)
                url = await self.server.upload(sealed, "application/octet-stream", "")
                where: MatrixJson = {"file": {**keys, "url": url}}
            else:
                where = {"url": await self.server.upload(content, mime, name)}
        told = message_content(caption) if caption else {"body": name}
        return {**told, "msgtype": message_type(mime), "filename": name, "info": described, **where}

    async def edit(self, chat: str, message: str, text: str, keyboard: Keyboard = ()) -> None:
        refuse_secret(self._leaks, text)
        new = message_content(with_buttons(split(text)[0], keyboard))
        kept = await self._keyboards.of(message)
        await self.replace_event(kept.chat if kept else chat, message, new)
        await self.keep_keyboard(chat, message, keyboard)

    async def keep_keyboard(self, chat: str, message: str, keyboard: Keyboard) -> None:
        """Store the buttons of a message under its room's own key, as a press counts only in that room. Raises
        ChannelError and StoreError."""
        room = await self._room(chat)
        await self._keyboards.keep(message, str(RoomKey(room.id, parse(chat).thread)), keyboard)

    async def replace_event(self, chat: str, message: str, content: MatrixJson) -> None:
        """Edit a message of the bot. Raises ChannelError."""
        edited = {
            **content,
            "body": f"* {content['body']}",
            "m.new_content": content,
            "m.relates_to": {"rel_type": "m.replace", "event_id": message},
        }
        if "formatted_body" in content:
            edited["formatted_body"] = f"* {content['formatted_body']}"
        room = await self._room(chat)
        await self.put_event(room, "m.room.message", edited, uuid.uuid4().hex)

    async def redact(self, chat: str, message: str) -> None:
        """Delete (redact) an event. Raises ChannelError."""
        room = await self._room(chat)
        with channel_errors(room):
            path = room_path(room.id, "redact", message, uuid.uuid4().hex)
            await self.server.put(path, {})

    # -- the live view, and what nothing depends on ---------------------------

    def live_view(self, chat: str) -> LiveView:
        return LiveEvent(self, chat, self._unfinished, self._leaks)

    async def put_progress(
        self,
        chat: str,
        message: str,
        content: MatrixJson,
        wanted: Callable[[], bool],
        transaction: str,
    ) -> str:
        """Replace an event of progress, or send one if its id is ""; return the id. Nothing is done, and
        the id stays, where it is no longer wanted when its turn comes. Raises ChannelError."""
        async with self._progress.permit(Urgency.PROGRESS, self._progress.ticket()):
            if not wanted():
                return message
            try:
                if message:
                    await self.replace_event(chat, message, content)
                    return message
                return await self.send_content(chat, content, transaction)
            except NotSent as error:
                self._progress.pause(error.after)
                raise

    async def react(self, chat: str, message: str, emoji: str) -> None:
        """Set the bot's reaction to a message; SEEN is sent as a read receipt."""
        with suppress(ChannelError, HomeserverError):
            if emoji == SEEN:
                room = await self._room(chat)
                await self.server.post(room_path(room.id, "receipt", "m.read", message), {})
            elif emoji:
                await self._annotate(chat, message, emoji, uuid.uuid4().hex)

    async def typing(self, chat: str) -> None:
        with suppress(ChannelError, HomeserverError):
            room, me = await self._room(chat), self._logged_in().rooms.me
            path = room_path(room.id, "typing", me)
            await self.server.put(path, {"typing": True, "timeout": TYPING_MS})

    async def download(self, file: str) -> bytes:
        """Download a file, given as an mxc address or as the JSON of an encrypted file."""
        with channel_errors():
            if not file.startswith("{"):
                return await self.server.download(file, LIMIT)
            keys = json.loads(file)
            sealed = await self.server.download(str(keys["url"]), LIMIT)
            return await asyncio.to_thread(decrypted_file, sealed, keys)


def message_type(mime: str) -> str:
    """The msgtype of a file's message, such as "m.image"; an SVG, which is a page that may hold a program, is
    "m.file"."""
    kinds = {"image": "m.image", "audio": "m.audio", "video": "m.video"}
    return kinds.get("" if mime.endswith("xml") else mime.partition("/")[0], "m.file")


def encrypted_file(content: bytes) -> tuple[bytes, dict[str, Any]]:
    from nio.crypto.attachments import encrypt_attachment

    sealed, keys = encrypt_attachment(content)
    return bytes(sealed), dict(keys)


def decrypted_file(sealed: bytes, keys: dict[str, Any]) -> bytes:
    """Decrypt a file. Raises MessageRefused if its hash is not that in the message."""
    from nio.crypto.attachments import decrypt_attachment
    from nio.exceptions import EncryptionError

    try:
        key, digest, iv = keys["key"]["k"], keys["hashes"]["sha256"], keys["iv"]
        return bytes(decrypt_attachment(sealed, key, digest, iv))
    except (AttributeError, EncryptionError, LookupError, TypeError, ValueError) as error:
        raise MessageRefused(f"it cannot be decrypted ({error})") from None


@contextmanager
def channel_errors(room: JoinedRoom | None = None) -> Iterator[None]:
    """Convert the homeserver's errors to ChannelErrors."""
    try:
        yield
    except HomeserverBusy as error:
        raise NotSent(str(error), error.after) from error
    except HomeserverAway as error:
        raise DeliveryUncertain(str(error)) from error
    except HomeserverRefused as error:
        if room and room.successor and error.code in GONE:
            raise ChatMoved(str(RoomKey(room.successor))) from error
        if error.code in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN"):  # it logs in anew
            raise NotSent(str(error), 2.0) from error
        raise (ChatGone if error.code in GONE else MessageRefused)(str(error)) from error
