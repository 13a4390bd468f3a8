"""Messages: who is speaking, and from there into the inbox. Everything here is quick and durable."""

import asyncio
import logging

from telegram import Update

from agent.store import Incoming
from bot.channel import Choice
from bot.telegram.access import SOURCE
from bot.telegram.attachments import attachments
from bot.telegram.buttons import Outcome, Press
from bot.telegram.channel import MIB
from bot.telegram.handler_context import HandlerContext, Heard, heard
from bot.telegram.words import addressed, incoming

log = logging.getLogger(__name__)

SEEN = "👀"
BACKLOG = 5  # more messages than these, sent while we were off, are offered as one card
BACKLOG_SECONDS = 60.0  # how long after the start old messages may still come in
BACKLOG_PAUSE = 1.0
HELD = "held"


async def message(room: HandlerContext, update: Update) -> None:
    """A message that is no command."""
    said = heard(room, update)
    if said is None or not await welcomed(room, said) or not _meant(room, said):
        return
    entry = incoming(said.update_id, said.message, room.me)
    if _is_old(room, said):
        await _hold(room, entry)
    elif not await room.services.chats.submit(entry):
        return
    room.post.heard(said.chat, entry.ref)
    await _warn_of_size(room, said)
    room.spawn(room.post.react(said.chat, entry.ref, SEEN))


async def _warn_of_size(room: HandlerContext, said: Heard) -> None:
    """The person hears at once that a file is too large, and what to do."""
    limit = room.post.limits(said.chat).download
    for attachment in attachments(said.message):
        if attachment.size > limit:
            told = room.texts.too_large.format(name=attachment.name, limit=limit // MIB)
            await room.say(said.chat, told, quiet=True)


async def edited(room: HandlerContext, update: Update) -> None:
    """A message was corrected: in its place while it waits, else a correction of its own."""
    said = heard(room, update)
    if said is None or said.standing == "stranger" or not _meant(room, said):
        return
    if said.message.text is None and said.message.caption is None:
        return
    await room.services.chats.submit(incoming(said.update_id, said.message, room.me, edited=True))


async def welcome(room: HandlerContext, said: Heard) -> bool:
    """The same, and who writes can be written to: what waited while the chat rested goes out.
    (A message that enters the inbox wakes its chat by that.)"""
    welcome = await welcomed(room, said)
    if welcome:
        await _back(room, said.chat)
    return welcome


async def welcomed(room: HandlerContext, said: Heard) -> bool:
    """Whether this person is answered at all; a stranger costs one fixed line a day."""
    if said.speaker.group is not None and room.config.groups == "off":
        return False
    if said.standing == "stranger":
        if said.speaker.group is None and await room.door.is_due_a_line(said.speaker):
            await room.say(said.chat, room.texts.stranger)
        return False
    flood = room.door.floods(said.speaker)
    if flood == "first":
        await room.say(said.chat, room.texts.slower)
    return flood == "no"


async def _back(room: HandlerContext, chat: str) -> None:
    known = await room.store.chats.get(chat)
    if known is not None and known.blocked:
        await room.store.chats.set_blocked(chat, blocked=False)
        room.store.outbox.added.set()


def _meant(room: HandlerContext, said: Heard) -> bool:
    if said.message.from_user is not None and said.message.from_user.is_bot:
        return said.message.sender_chat is not None  # an admin who speaks as the group
    alone = said.speaker.group is None
    return alone or room.config.groups == "all" or addressed(said.message, room.me)


# -- messages from before the start ---------------------------------------------


def _is_old(room: HandlerContext, said: Heard) -> bool:
    soon = room.store.clock() - room.started_at < BACKLOG_SECONDS
    return soon and said.message.date.timestamp() + 1 < room.started_at


async def _hold(room: HandlerContext, entry: Incoming) -> None:
    """Keep it without waking the chat; once no more come in, go on or ask."""
    if await room.store.inbox.add(entry):
        room.backlog[entry.chat] += 1
        room.spawn(_settle(room, entry.chat, room.backlog[entry.chat]))


async def _settle(room: HandlerContext, chat: str, count: int) -> None:
    await asyncio.sleep(BACKLOG_PAUSE)
    if room.backlog[chat] != count:
        return
    rows = await room.store.inbox.waiting(chat, [SOURCE])
    if len(rows) <= BACKLOG:
        room.services.chats.wake(chat)
        return
    choices = (
        ("all", room.texts.answer_all),
        ("last", room.texts.answer_last),
        ("none", room.texts.answer_none),
    )
    buttons = [[Choice(f"{HELD}:{rows[-1].id}:{key}", label)] for key, label in choices]
    await room.say(chat, room.texts.backlog.format(count=len(rows)), buttons)


async def press_backlog(room: HandlerContext, press: Press) -> Outcome:
    """What the person chose for the messages up to that row."""
    last, _, choice = press.argument.partition(":")
    waiting = await room.store.inbox.waiting(press.chat, [SOURCE])
    rows = [row.id for row in waiting if row.id <= int(last)]
    if not rows:
        return Outcome(room.texts.expired)
    dropped = {"last": rows[:-1], "none": rows}.get(choice, [])
    await room.store.inbox.discard(press.chat, dropped)
    room.services.chats.wake(press.chat)
    told = room.texts.backlog_decided.format(
        answered=len(rows) - len(dropped), dropped=len(dropped)
    )
    return Outcome("", told)
