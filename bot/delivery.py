"""The outbox: a finished turn's reply as its rows, and their delivery. Every text arrives once, or is visibly in doubt,
or visibly failed.

A send that got no answer is not repeated, unless the app recognizes repetitions: a notice with a button
goes out. Messages of one chat are sent one at a time and in order; chats do not wait for each other.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from agent.aio import complete, set_within
from agent.channels import TurnReply
from agent.language import speaking
from agent.store import Store
from agent.store.errors import StoreError
from agent.store.inbox import CLI
from agent.store.outbox import OutboxRow
from bot.attachments import is_spoken
from bot.channel import (
    Button,
    Channel,
    ChannelError,
    ChatGone,
    ChatMoved,
    DeliveryUncertain,
    MessageRefused,
    NotSent,
    OutgoingMessage,
    VoiceSound,
    discard_file,
    send,
)
from bot.texts import TEXTS

if TYPE_CHECKING:
    from bot.voice.replies import SpokenReplies

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
SPOKEN = '"voice":true'  # in the payload of a voice message
WITH_FILE = '"file":"'  # in the payload of a file
RESEND = "again"  # the kind of the notice's button; the row's id follows
CONTINUE = "onward"  # the kind of the button under the reply of a turn that ended at a limit
CHANGES = "chg"  # the kind of the button under the reply of a turn that changed files
CONTINUABLE = frozenset({"tool_limit", "loop"})
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 60.0
POLL_SECONDS = 5.0  # after which rows are looked for again that could not be read or written
STOP_SECONDS = 8.0  # that a stop leaves to a send in flight
NOTICE_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # seconds, each after an uncertain notice


def compose(reply: TurnReply) -> Sequence[str]:
    """The outbox payloads of a finished turn; none for a terminal, which is shown the turn's events instead."""
    if reply.answers and reply.answers[0].source == CLI:
        return ()
    answered = [incoming.ref for incoming in reply.answers if incoming.ref]
    go_on = [Button(f"{CONTINUE}:{reply.turn}", TEXTS.go_on)] * (reply.reason in CONTINUABLE)
    undo = [Button(f"{CHANGES}:{reply.changes}", TEXTS.undo)] * bool(reply.changes)
    message = OutgoingMessage(
        reply.text,
        [row for row in (go_on, undo) if row],
        reply_to=answered[-1] if answered else "",
        voice=reply.reason == "done" and is_spoken(reply.settings, reply.answers),
    )
    return [message.to_json()]


class Delivery:
    """Delivers the rows of one messaging app: those of chats with its prefix.

    `before_final` is called with a turn's id within the chat's permit, before the turn's text is sent;
    `after_final` once it, or its first part, was sent.
    """

    def __init__(
        self,
        store: Store,
        channel: Channel,
        before_final: Callable[[str], Awaitable[None]] | None = None,
        after_final: Callable[[str], None] = lambda turn: None,
    ) -> None:
        self._store = store
        self._outbox = store.outbox
        self._channel = channel
        self._before_final = before_final
        self._after_final = after_final
        self._voice: SpokenReplies | None = None  # where something speaks
        # One per app: another app's delivery could clear a shared event before this one has looked.
        self.woken = asyncio.Event()
        self._outbox.on_wake.append(self.woken.set)
        self._busy: set[str] = set()
        self._look_again: set[str] = set()  # busy chats for which more has come in
        self._look_for_uncertain = True
        self._failures: Counter[str] = Counter()  # in a row, by chat
        self._notices: set[int] = set()  # rows whose notice is being sent, or was

    async def run(self, voice: "SpokenReplies | None" = None) -> None:
        """Deliver until cancelled; `voice` makes the recordings of voice messages."""
        self._voice = voice
        await self._outbox.recover(self._channel.prefix, self._repeatable())
        async with asyncio.TaskGroup() as group:
            while True:
                self.woken.clear()
                try:
                    for chat in await self._outbox.chats_waiting(self._channel.prefix):
                        if chat in self._busy:
                            self._look_again.add(chat)
                        else:
                            self._busy.add(chat)
                            group.create_task(self.deliver_chat(chat))
                    if self._look_for_uncertain:
                        self._look_for_uncertain = False
                        for row in await self._outbox.without_notice(self._channel.prefix):
                            if row.id not in self._notices:
                                self._notices.add(row.id)
                                group.create_task(self.send_notice(row))
                except StoreError as error:
                    log.warning("the outbox cannot be read: %s", error)
                if not await set_within(self.woken, POLL_SECONDS):
                    self._look_for_uncertain = True

    async def resend(self, id: int) -> bool:
        """Send an uncertain text once more; False when it is no longer uncertain."""
        if not await self._outbox.send_again(id):
            return False
        self._notices.discard(id)
        return True

    async def deliver_chat(self, chat: str) -> None:
        """Deliver the waiting rows of one chat, oldest first."""
        try:
            while (row := await self._outbox.next(chat)) and row.state == "waiting":
                await asyncio.sleep(row.ahead(self._store.clock()))
                # Before it is claimed: nothing is in doubt if the process is killed meanwhile.
                sound = await self._sound(row) if SPOKEN in row.payload else None
                paced_by_itself = WITH_FILE in row.payload
                async with nullcontext() if paced_by_itself else self._channel.permit(chat):
                    claimed = await self._outbox.claim(chat)
                    # A claimed row is settled even when the bot stops.
                    if not claimed:
                        return
                    sound = sound if claimed.id == row.id else None
                    work = self.deliver(claimed, sound)
                    if not await complete(work, grace=STOP_SECONDS):
                        return
        except StoreError as error:
            self._failures[chat] += 1
            log.warning("%s: delivery waits: %s", chat, error)
        finally:
            self._busy.discard(chat)
            if chat in self._look_again:
                self._look_again.discard(chat)
                self.woken.set()

    async def _sound(self, row: OutboxRow) -> VoiceSound | None:
        """The recording; None where nothing speaks, or the payload cannot be read, which `deliver` handles."""
        with suppress(ValueError):
            message = OutgoingMessage.from_json(row.payload)
            if self._voice and message.voice:
                return await self._voice.sound(row, message)
        return None

    async def deliver(self, row: OutboxRow, sound: VoiceSound | None = None) -> bool:
        """Send one part of a claimed row and record the outcome; False if the chat accepts nothing now.

        Whatever happens, the row leaves the state "sending", which would block its chat.
        """
        try:
            message = OutgoingMessage.from_json(row.payload, silent=row.silent)
        except ValueError as error:
            await self._record(row, self._outbox.failed, row.id, str(error))
            return True
        transaction = f"{row.id}-{row.created_at}"
        message = replace(message, transaction=transaction, voice=sound is not None, sound=sound)
        try:
            if self._before_final:
                await self._before_final(row.turn or "")
            with speaking(message.language):
                try:
                    if message.file:
                        id, rest = await self._send_file(row.chat, message), None
                    else:
                        id, rest = await self._channel.send_part(row.chat, message)
                except ChannelError as error:
                    return await self._not_delivered(row, message, error)
                payload = rest.to_json() if rest else ""
            self._after_final(row.turn or "")
            if rest is None:
                await self._record(row, self._outbox.delivered, row.id, [id])
                await asyncio.to_thread(discard_file, message)
            else:
                await self._record(row, self._outbox.part_delivered, row.id, id, payload)
                await self._record(row, self._outbox.postponed, row.id, 0)
            self._failures.pop(row.chat, None)
        except Exception:
            log.exception("delivery to %s failed", row.chat)
            await self._mark_uncertain(row, "an internal error")  # sent again when a person asks
        return True

    async def _send_file(self, chat: str, message: OutgoingMessage) -> str:
        path, most = Path(message.file), self._channel.limits(chat).upload
        try:
            with await asyncio.to_thread(path.open, "rb") as file:
                if (size := file.seek(0, 2)) > most:
                    raise MessageRefused(f"{path.name} has {size:,} bytes, of at most {most:,}")
                file.seek(0)
                named = [(file, path.name)]
                sent = self._channel.send_files(chat, named, message.text, silent=message.silent)
                return (await sent)[0]
        except OSError as error:
            raise MessageRefused(f"{path.name} cannot be read: {error.strerror}") from None

    async def _record(
        self, row: OutboxRow, write: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Write an outcome, however long the disk is full or the database locked: unwritten, it would be
        uncertain after a restart."""
        while True:
            try:
                return await write(*args, **kwargs)
            except StoreError as error:
                log.warning("%s: message %d is not written yet: %s", row.chat, row.id, error)
                await asyncio.sleep(self._backoff(row.chat))

    async def _not_delivered(
        self, row: OutboxRow, message: OutgoingMessage, error: ChannelError
    ) -> bool:
        log.warning("%s: message %d was not delivered: %s", row.chat, row.id, error)
        outbox, chats, why = self._outbox, self._store.chats, str(error)
        match error:
            case NotSent(after=after):
                at = self._store.clock() + max(after, self._backoff(row.chat))
                await self._record(row, outbox.postponed, row.id, at, why)
            case DeliveryUncertain() if row.created_at > self._repeatable():
                at = self._store.clock() + self._backoff(row.chat)
                await self._record(row, outbox.postponed, row.id, at, why)
            case DeliveryUncertain():
                await self._mark_uncertain(row, why)
            case ChatMoved(to=to):
                await self._record(row, outbox.postponed, row.id, 0)
                if not await self._record(row, chats.rename, row.chat, to):  # `to` exists already
                    why, payload = f"sent to {to} instead", message.to_json()
                    await self._record(row, outbox.failed, row.id, why, to, payload)
                self.woken.set()
                return False
            case ChatGone():
                await self._record(row, outbox.postponed, row.id, 0, why)
                await self._record(row, chats.set_blocked, row.chat, blocked=True)
                return False
            case _:
                report = OutgoingMessage(TEXTS.undeliverable.format(why=why))
                payload = report.to_json() if message.text != report.text else ""
                await self._record(row, outbox.failed, row.id, why, row.chat, payload)
        return True

    async def _mark_uncertain(self, row: OutboxRow, why: str) -> None:
        await self._record(row, self._outbox.uncertain, row.id, why)
        self._look_for_uncertain = True
        self.woken.set()

    def _repeatable(self) -> float:
        """A row made after this instant may be sent again, whether or not it arrived."""
        seconds = self._channel.repeat_seconds
        return self._store.clock() - seconds if seconds else math.inf

    def _backoff(self, chat: str) -> float:
        """Seconds until the next attempt; twice as long after each failure in a row."""
        self._failures[chat] += 1
        doublings = min(self._failures[chat] - 1, 10)  # a float overflows at 1,024: after 17 hours
        return min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0**doublings)

    async def send_notice(self, row: OutboxRow) -> None:
        """Send the notice of an uncertain text, once, in reply to what the text answers."""
        self._notices.add(row.id)
        try:
            message = OutgoingMessage.from_json(row.payload)
        except ValueError as error:
            await self._record(row, self._outbox.failed, row.id, str(error))
            return
        with speaking(message.language):
            button = Button(f"{RESEND}:{row.id}", TEXTS.show_again)
            notice = OutgoingMessage(TEXTS.in_doubt, [[button]], reply_to=message.reply_to)
        try:
            id = await self._notice_sent(row, notice)
        except Exception:  # one failed notice must not end all delivery
            log.exception("the notice of row %d failed", row.id)
            id = "?"
        if id:
            await self._record(row, self._outbox.notice_sent, row.id, id)

    async def _notice_sent(self, row: OutboxRow, notice: OutgoingMessage) -> str:
        """The notice's id; "?" where it cannot be sent, "" where the text itself has been sent again.

        An uncertain notice is repeated, for longer than most outages last: else the text would be lost
        silently.
        """
        pauses = iter(NOTICE_PAUSES)
        while row.id in self._notices:
            pause: float | None = POLL_SECONDS
            try:
                return (await send(self._channel, row.chat, notice))[-1]
            except NotSent as refusal:
                pause = max(POLL_SECONDS, refusal.after)
            except DeliveryUncertain:
                pause = next(pauses, None)
            except (ChatGone, MessageRefused):
                return "?"
            if pause is None:
                return "?"
            await asyncio.sleep(pause)
        return ""
