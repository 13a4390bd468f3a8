"""What comes in from a messaging app: updates, each handled before it is acknowledged, and messages on their way
into the inbox.

While the state cannot be written, an update waits. One that cannot be parsed, or crashes its handler or the
whole program each time, is set aside. Of messages that were sent while the bot was off, many are asked about first.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from agent.language import speaking, spoken
from agent.store import Incoming
from agent.store.errors import StoreError
from agent.store.inbox import InboxRow
from agent.store.set_aside import UPDATES, SetAsideTable, update_key
from agent.trust import Origin
from bot import attachments
from bot.access import AccessLevel, Sender
from bot.attachments import MIB, OWN_VOICE, Attachment
from bot.channel import Button
from bot.commands import trust
from bot.commands.context import ButtonPress, HandlerContext, PressResult
from bot.texts import TEXTS

LONGEST = 4096  # characters: a whole message of Telegram's
LONGEST_OURS = 600  # of what the bot has said itself
CUT = " […]"
T = TypeVar("T")


class Quotation(NamedTuple):
    """A message that another one replies to.

    `name` is who said it, as they call themselves, or ""; `ours`: that is the bot.
    """

    name: str
    text: str
    ours: bool = False
    files: Sequence[Attachment] = ()

    @property
    def line(self) -> str:
        limit = LONGEST_OURS if self.ours else LONGEST
        text = self.text if len(self.text) <= limit else self.text[:limit].rstrip() + CUT
        names = ", ".join(file.name for file in self.files)
        quote = " ".join(filter(None, [text, names and f"[{names}]"]))
        return ": ".join(filter(None, [self.name, quote])) if quote else ""

    @property
    def attachments(self) -> list[Attachment]:
        """The quoted message's files, to be fetched with the answer's own, except those that the bot sent."""
        return [] if self.ours else [replace(file, answered=True) for file in self.files]


log = logging.getLogger(__name__)

FIRST_RETRY = 1.0
LONGEST_RETRY = 30.0
BACKLOG = 5  # more messages than these, sent while the bot was off, are offered as one question
BACKLOG_SECONDS = 60.0  # after the start, in which older messages may still come in
BACKLOG_PAUSE = 1.0
BACKLOG_BUTTON = "held"


async def until_stored(source: str, write: Callable[[], Awaitable[T]]) -> T:
    """What `write` returns; repeated with pauses while the state cannot be written."""
    pause = FIRST_RETRY
    while True:
        try:
            return await write()
        except StoreError as error:
            log.warning("an update of %s waits: %s", source, error)
            await asyncio.sleep(pause)
            pause = min(LONGEST_RETRY, 2 * pause)


class Unparsable(Exception):
    """An update that cannot be parsed; `why` is what was raised."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.why = why


class UpdateGate:
    """Has the updates (events, in Matrix) of the app `source` handled, each once. Handlers are quick, and store what
    must last."""

    def __init__(self, source: str, set_aside: SetAsideTable) -> None:
        self._source = source
        self._set_aside = set_aside
        self._crashed: set[tuple[str, str]] = set()
        self._unparsable: list[tuple[str, Exception, str]] = []  # key, what was raised, text
        self._keeping = asyncio.Lock()

    async def take(self, text: str, handle: Callable[[], Awaitable[None]]) -> None:
        """Return when the update (`text` as received) is handled, set aside, or left to `keep_unparsable`.
        `handle` may raise Unparsable, StoreError, and whatever a bug raises."""
        row = UPDATES, update_key(self._source, text)

        async def attempt() -> bool:
            async with self._set_aside.attempt(*row, text) as allowed:
                return not allowed or await self._handled(handle, row, text)

        while not await until_stored(self._source, attempt):
            pass

    async def keep_unparsable(self) -> None:
        """Set aside the updates that could not be parsed, in one transaction: with a commit each, a flood of
        them would delay all later ones. Acknowledge no update before this returns."""

        async def keep() -> None:
            count = len(self._unparsable)
            await self._set_aside.add_updates(self._unparsable[:count])
            del self._unparsable[:count]

        async with self._keeping:  # a webhook's updates come concurrently
            if self._unparsable:
                await until_stored(self._source, keep)

    async def _handled(
        self, handle: Callable[[], Awaitable[None]], row: tuple[str, str], text: str
    ) -> bool:
        """False to try again. Raises StoreError."""
        try:
            await handle()
        except StoreError:
            raise
        except Unparsable as crash:
            log.warning("an update of %s cannot be parsed (%s)", self._source, crash.why)
            self._unparsable.append((row[1], crash.why, text))
            return True
        except Exception as crash:
            log.warning("an update of %s failed (%s)", self._source, type(crash).__name__)
            self._crashed.add(row)
            if await self._set_aside.crashed(*row, crash, text):
                log.exception("an update of %s crashed each time", self._source)
                return True
            return False
        if row in self._crashed:
            self._crashed.discard(row)
            await self._set_aside.passed(*row)
        return True


# -- messages -----------------------------------------------------------------


def origin(level: AccessLevel) -> Origin:
    return "owner" if level == "owner" else "person"


async def mark_untrusted(context: HandlerContext, incoming: Incoming, message: str) -> Incoming:
    """Mark a message as untrusted if the bot's own one that it quotes (id `message`, or "") may repeat untrusted text."""
    source = message and await context.store.taints.of_message(incoming.chat, message)
    if not source:
        return incoming
    found = [*filter(None, [incoming.stranger]), f"answer that may repeat {source}"]
    return replace(incoming, stranger="; ".join(found))


async def quote_heard(
    context: HandlerContext, quote: Quotation, chat: str, source: str, ref: str
) -> Quotation:
    """Replace the file of a quoted voice message by its words, if the message `ref` was transcribed already."""
    if not any(file.kind in OWN_VOICE for file in quote.files):
        return quote
    text = await context.store.inbox.text_of(chat, source, ref)
    return quote._replace(text=text, files=()) if text else quote


async def receive(context: HandlerContext, incoming: Incoming) -> None:
    """Store a message of somebody who may write, and start its turn.

    One from before the start is answered, or asked about, once no more of those come in.
    """
    incoming = replace(incoming, language=spoken())
    starting = 0 <= context.store.clock() - context.started_at < BACKLOG_SECONDS
    if starting and 0 < incoming.at < context.started_at - 1:
        if await context.store.inbox.add(incoming):
            context.backlog[incoming.chat] += 1
            context.start(offer_backlog(context, incoming.chat, context.backlog[incoming.chat]))
    elif not await context.services.chats.submit(incoming):
        return
    if incoming.origin == "owner":
        await trust.offer(context, incoming.chat, incoming.text)
    context.channel.received(incoming.chat, incoming.ref)
    limit = context.channel.limits(incoming.chat).download
    for file in attachments.from_json(incoming.body):
        if file.size > limit:
            with speaking(await context.chosen_language(incoming.chat)):
                text = TEXTS.too_large.format(name=file.name, limit=limit // MIB)
                await context.send(incoming.chat, text, silent=True)
    context.start(context.reactions.seen(incoming.chat, incoming.ref))


async def may_write(context: HandlerContext, chat: str, sender: Sender, level: AccessLevel) -> bool:
    """Whether this person is answered; a stranger gets one fixed line a day."""
    if sender.group is not None and context.access.groups == "off":
        return False
    if level == "stranger":
        if sender.group is None and await context.access.stranger_notice_due(sender):
            await context.send(chat, TEXTS.stranger)
        return False
    return await is_bearable(context, chat, sender)


async def is_bearable(context: HandlerContext, chat: str, sender: Sender) -> bool:
    """Whether this person keeps within the message rate; warn them once when they do not."""
    flood = context.access.flood(sender)
    if flood == "first":
        await context.send(chat, TEXTS.slower)
    return flood == "no"


async def offer_backlog(context: HandlerContext, chat: str, count: int) -> None:
    await asyncio.sleep(BACKLOG_PAUSE)
    if context.backlog[chat] != count:
        return  # a later message has come, and its call goes on
    rows = await waiting_rows(context, chat)
    if len(rows) <= BACKLOG:
        context.services.chats.wake(chat)
        return
    choices = (
        ("all", TEXTS.answer_all),
        ("last", TEXTS.answer_last),
        ("none", TEXTS.answer_none),
    )
    keyboard = [[Button(f"{BACKLOG_BUTTON}:{rows[-1].id}:{key}", label)] for key, label in choices]
    await context.send(chat, TEXTS.backlog.format(count=len(rows)), keyboard)


async def waiting_rows(context: HandlerContext, chat: str) -> list[InboxRow]:
    """People's messages that are not answered yet."""
    rows = await context.store.inbox.waiting(chat)
    return [row for row in rows if row.incoming.source == context.channel.source]


async def press_backlog(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Handle a press on [ROW:CHOICE]: answer all, the last or none of the waiting messages up to that inbox row."""
    last, _, choice = press.argument.partition(":")
    rows = [row.id for row in await waiting_rows(context, press.chat) if row.id <= int(last)]
    if not rows:
        return PressResult(TEXTS.expired)
    dropped = {"last": rows[:-1], "none": rows}.get(choice, [])
    await context.store.inbox.discard(press.chat, dropped)
    context.services.chats.wake(press.chat)
    answered = len(rows) - len(dropped)
    text = TEXTS.backlog_decided.format(answered=answered, dropped=len(dropped))
    return PressResult("", text)
