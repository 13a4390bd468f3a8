"""The outbox's postman: every text is delivered once, or is visibly in doubt, or visibly failed.

A send that got no answer is not repeated: a notice with a button goes out. One
message is sent at a time per chat, in order; chats do not wait for each other.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from agent.aio import complete
from agent.store import Store
from agent.store.errors import StoreError
from agent.store.outbox import OutboxRow
from bot.channel import (
    Away,
    Channel,
    ChannelError,
    Choice,
    Gone,
    Moved,
    OutgoingMessage,
    Refused,
    Uncertain,
)
from bot.texts import Texts

log = logging.getLogger(__name__)

AGAIN = "again"  # the kind of the notice's button; behind a colon the row's id
FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0
LOOK_SECONDS = 5.0  # rows that other processes put in are seen this late
LAST_SECONDS = 8.0  # what a stop grants to a send in flight
NOTICE_TRIES = 5


class Delivery:
    """Delivers the rows of one messaging app, those whose chat's key has its prefix.

    `final` is called with a turn's id before its text is sent.
    """

    def __init__(
        self,
        store: Store,
        channel: Channel,
        texts: Texts,
        prefix: str,
        final: Callable[[str], None] = lambda turn: None,
    ) -> None:
        self._store = store
        self._outbox = store.outbox
        self._channel = channel
        self._texts = texts
        self._prefix = prefix
        self._final = final
        self._busy: set[str] = set()
        self._more: set[str] = set()  # of the busy ones, those that were looked at again
        self._doubts = True  # whether there may be some that nobody was told of
        self._failures: Counter[str] = Counter()
        self._noticing: Counter[int] = Counter()

    async def run(self) -> None:
        await self._outbox.recover(self._prefix)
        async with asyncio.TaskGroup() as group:
            while True:
                self._outbox.added.clear()
                try:
                    await self._start(group)
                except StoreError as error:
                    log.warning("what waits to be sent cannot be read: %s", error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._outbox.added.wait()
                        continue
                self._doubts = True

    async def again(self, id: int) -> bool:
        """Send a text in doubt once more; False when it is no longer in doubt."""
        if not await self._outbox.send_again(id):
            return False
        self._noticing.pop(id, None)
        return True

    async def _start(self, group: asyncio.TaskGroup) -> None:
        for chat in await self._outbox.chats_waiting(self._prefix):
            if chat in self._busy:
                self._more.add(chat)
            else:
                self._busy.add(chat)
                group.create_task(self._empty(chat))
        if self._doubts:
            self._doubts = False
            await self._tell_doubts(group)

    async def _tell_doubts(self, group: asyncio.TaskGroup) -> None:
        for parcel in await self._outbox.without_notice(self._prefix):
            if 0 <= self._noticing[parcel.id] < NOTICE_TRIES:
                group.create_task(self._notify(parcel))

    async def _empty(self, chat: str) -> None:
        """Deliver all that waits for one chat, oldest first."""
        try:
            while (parcel := await self._outbox.next(chat)) and parcel.state == "waiting":
                await asyncio.sleep(max(0.0, parcel.not_before - self._store.clock()))
                if not await self._next(chat):
                    return
        except StoreError as error:
            self._failures[chat] += 1
            log.warning("%s: delivery waits: %s", chat, error)
        finally:
            self._busy.discard(chat)
            if chat in self._more:  # something came in meanwhile
                self._more.discard(chat)
                self._outbox.added.set()

    async def _next(self, chat: str) -> bool:
        """Deliver one message; False when the chat takes nothing now."""
        async with self._channel.turn(chat):
            parcel = await self._outbox.claim(chat)
            if parcel is None:
                return False
            return await complete(self._settled(parcel), grace=LAST_SECONDS)

    async def _settled(self, parcel: OutboxRow) -> bool:
        """Deliver; a claimed row comes to an end whatever happens, else its chat would be silent."""
        try:
            return await self._deliver(parcel)
        except Exception:
            log.exception("delivery to %s failed", parcel.chat)
            await self._kept(parcel, lambda: self._in_doubt(parcel, "a fault of mine"))
            return True

    async def _kept(self, parcel: OutboxRow, write: Callable[[], Awaitable[None]]) -> None:
        """Write what became of a send, however long the disk is full or the database locked:
        what is not written would be in doubt."""
        while True:
            try:
                return await write()
            except StoreError as error:
                log.warning("%s: message %d is not written yet: %s", parcel.chat, parcel.id, error)
                await asyncio.sleep(self._backoff(parcel.chat, 0))

    async def _deliver(self, parcel: OutboxRow) -> bool:
        letter = OutgoingMessage.read(parcel.payload, quiet=parcel.silent)
        self._final(parcel.turn or "")
        try:
            message, left = await self._channel.post(parcel.chat, letter)
        except ChannelError as error:
            return await self._undelivered(parcel, letter, error)
        if left is None:
            await self._kept(parcel, lambda: self._outbox.delivered(parcel.id, [message]))
        else:
            rest = left.written()
            await self._kept(parcel, lambda: self._outbox.part_delivered(parcel.id, message, rest))
            await self._kept(parcel, lambda: self._outbox.postponed(parcel.id, 0))
        self._failures.pop(parcel.chat, None)
        return True

    async def _undelivered(
        self, parcel: OutboxRow, letter: OutgoingMessage, error: ChannelError
    ) -> bool:
        log.warning("%s: message %d was not delivered: %s", parcel.chat, parcel.id, error)
        match error:
            case Away(after=after):
                wait = self._backoff(parcel.chat, after)
                await self._outbox.postponed(parcel.id, self._store.clock() + wait, str(error))
            case Uncertain():
                await self._in_doubt(parcel, str(error))
            case Moved(to=to):
                await self._follow(parcel, letter, to)
                return False
            case Gone():
                await self._outbox.postponed(parcel.id, 0, str(error))
                await self._store.chats.set_blocked(parcel.chat, blocked=True)
                return False
            case _:
                await self._outbox.failed(parcel.id, str(error))
                await self._tell_failure(parcel, letter, error)
        return True

    async def _in_doubt(self, parcel: OutboxRow, why: str) -> None:
        await self._outbox.uncertain(parcel.id, why)
        self._doubts = True
        self._outbox.added.set()

    def _backoff(self, chat: str, after: float) -> float:
        self._failures[chat] += 1
        return max(after, min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (self._failures[chat] - 1)))

    async def _follow(self, parcel: OutboxRow, letter: OutgoingMessage, to: str) -> None:
        """The chat goes on under another key, which may have been seen already."""
        await self._outbox.postponed(parcel.id, 0)
        if not await self._store.chats.rename(parcel.chat, to):
            await self._outbox.failed(parcel.id, f"sent to {to} instead")
            await self._outbox.add(to, [letter.written()])
        self._outbox.added.set()

    async def _tell_failure(
        self, parcel: OutboxRow, letter: OutgoingMessage, error: ChannelError
    ) -> None:
        told = OutgoingMessage(self._texts.undeliverable.format(why=error))
        if letter.text != told.text:
            await self._outbox.add(parcel.chat, [told.written()])

    async def _notify(self, parcel: OutboxRow) -> None:
        """Tell of a text in doubt, once, under what it was to answer. A notice lost in the same
        way is told again: the alternative is a text lost in silence."""
        tries, self._noticing[parcel.id] = self._noticing[parcel.id], -1
        button = Choice(f"{AGAIN}:{parcel.id}", self._texts.show_again)
        try:
            asked = OutgoingMessage.read(parcel.payload).reply_to
            notice = OutgoingMessage(self._texts.in_doubt, [[button]], reply_to=asked)
            sent = await self._channel.send(parcel.chat, notice)
        except Uncertain:
            self._noticing[parcel.id] = tries + 1
            if tries + 1 == NOTICE_TRIES:
                await self._kept(parcel, lambda: self._outbox.notice_sent(parcel.id, "?"))
        except (Gone, Refused):
            await self._kept(parcel, lambda: self._outbox.notice_sent(parcel.id, "?"))
        except (Away, StoreError):
            self._noticing[parcel.id] = tries
        else:
            await self._kept(parcel, lambda: self._outbox.notice_sent(parcel.id, sent[-1]))
