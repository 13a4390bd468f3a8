"""Who may write, letting people in, messages into the inbox, and what came in while the bot was off.

People are let in by a one-time link, or because they ask and an owner presses a button.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from agent.language import ENGLISH, speaking, spoken
from agent.sandbox.output_buffer import visible
from agent.store import Incoming
from agent.store.inbox import InboxRow
from agent.trust import Origin
from bot import attachments
from bot.access import AccessLevel, Sender
from bot.attachments import MIB
from bot.channel import Button
from bot.commands import first_screen, trust
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult
from bot.texts import Texts

BACKLOG = 5  # more messages than these, sent while the bot was off, are offered as one question
BACKLOG_SECONDS = 60.0  # after the start, in which older messages may still come in
BACKLOG_PAUSE = 1.0
BACKLOG_BUTTON = "held"
LET_IN = "in"
REFUSE = "out"


def origin(level: AccessLevel) -> Origin:
    return "owner" if level == "owner" else "person"


async def with_answered(context: HandlerContext, incoming: Incoming, message: str) -> Incoming:
    """Mark a message as a stranger's text where it quotes our `message` ("": it quotes none), and that one may
    repeat what strangers wrote."""
    source = message and await context.store.taints.of_message(incoming.chat, message)
    if not source:
        return incoming
    found = [*filter(None, [incoming.stranger]), f"answer that may repeat {source}"]
    return replace(incoming, stranger="; ".join(found))


async def receive(context: HandlerContext, incoming: Incoming) -> None:
    """Keep a message of somebody who may write, and have it answered.

    One from before the start is answered, or asked about, once no more of those come in.
    """
    incoming = replace(incoming, language=spoken())
    starting = context.store.clock() - context.started_at < BACKLOG_SECONDS
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
                text = context.texts.too_large.format(name=file.name, limit=limit // MIB)
                await context.send(incoming.chat, text, silent=True)
    context.start(context.reactions.seen(incoming.chat, incoming.ref))


async def may_write(context: HandlerContext, chat: str, sender: Sender, level: AccessLevel) -> bool:
    """Whether this person is answered; a stranger gets one fixed line a day, a flood one warning."""
    if sender.group is not None and context.access.groups == "off":
        return False
    if level == "stranger":
        if sender.group is None and await context.access.stranger_notice_due(sender):
            await context.send(chat, context.texts.stranger)
        return False
    flood = context.access.flood(sender)
    if flood == "first":
        await context.send(chat, context.texts.slower)
    return flood == "no"


async def wake(context: HandlerContext, chat: str) -> str:
    """Unblock the chat of a command, so that waiting messages go out; return its chosen language ("": none).

    The inbox unblocks the chat of a message.
    """
    known = await context.store.chats.get(chat)
    if known is not None and known.blocked:
        await context.store.chats.set_blocked(chat, blocked=False)
        context.store.outbox.wake()
    return known.chosen_language if known else ""


async def offer_backlog(context: HandlerContext, chat: str, count: int) -> None:
    await asyncio.sleep(BACKLOG_PAUSE)
    if context.backlog[chat] != count:
        return  # a later message has come, and its call goes on
    rows = await waiting_rows(context, chat)
    if len(rows) <= BACKLOG:
        context.services.chats.wake(chat)
        return
    choices = (
        ("all", context.texts.answer_all),
        ("last", context.texts.answer_last),
        ("none", context.texts.answer_none),
    )
    keyboard = [[Button(f"{BACKLOG_BUTTON}:{rows[-1].id}:{key}", label)] for key, label in choices]
    await context.send(chat, context.texts.backlog.format(count=len(rows)), keyboard)


async def waiting_rows(context: HandlerContext, chat: str) -> list[InboxRow]:
    """The messages that people sent and that are not answered yet."""
    rows = await context.store.inbox.waiting(chat)
    return [row for row in rows if row.incoming.source == context.channel.source]


async def press_backlog(context: HandlerContext, press: ButtonPress) -> PressResult:
    """`ROW:CHOICE`, for the messages up to that row."""
    last, _, choice = press.argument.partition(":")
    rows = [row.id for row in await waiting_rows(context, press.chat) if row.id <= int(last)]
    if not rows:
        return PressResult(context.texts.expired)
    dropped = {"last": rows[:-1], "none": rows}.get(choice, [])
    await context.store.inbox.discard(press.chat, dropped)
    context.services.chats.wake(press.chat)
    answered = len(rows) - len(dropped)
    text = context.texts.backlog_decided.format(answered=answered, dropped=len(dropped))
    return PressResult("", text)


# -- letting people in --------------------------------------------------------


async def start(context: HandlerContext, call: CommandCall) -> None:
    """/start, or /start CODE from the link that `voltaire setup` prints."""
    if not call.argument:
        await first_screen.hello(context, call.chat, call.level)
        return
    level = await context.access.use_code(call.sender, call.argument.split()[0])
    if level is not None:
        await context.send(call.chat, context.texts.paired[level])
        await first_screen.hello(context, call.chat, level)
    elif call.level == "stranger":
        await context.send(call.chat, context.texts.bad_code)
    else:
        await first_screen.hello(context, call.chat, call.level)


async def pair(context: HandlerContext, call: CommandCall) -> None:
    """/pair: a stranger asks; each owner gets one question."""
    if call.level != "stranger":
        await context.send(call.chat, context.texts.already_in)
        return
    if not await context.access.request(call.sender):
        return  # asked before, or refused: nothing more is said
    await context.store.chats.open(call.chat, language=spoken())
    await context.send(call.chat, context.texts.asked_to_pair)
    await ask_owners(context, call.sender, lambda texts: texts.wants_in)


async def ask_owners(context: HandlerContext, sender: Sender, form: Callable[[Texts], str]) -> None:
    """Whether a stranger may talk; each owner in their own language."""
    user, texts = sender.user, context.texts
    for owner in sorted(context.access.owners):
        chat = context.channel.private_chat(owner)
        with speaking(await context.store.chats.spoken(chat), context.language, ENGLISH):
            question = form(texts).format(name=f"{visible(sender.name)} ({user})")
            buttons = [
                Button(f"{LET_IN}:{user}", texts.let_in),
                Button(f"{REFUSE}:{user}", texts.refuse),
            ]
            await context.send(chat, question, [buttons])


async def offer_to_let_in_group(
    context: HandlerContext, chat: str, group: str, added_by: str
) -> None:
    """Ask an owner who has added the bot to a group whether everybody there may talk to it."""
    access, texts = context.access, context.texts
    if added_by in access.owners and access.groups != "off" and group not in access.members:
        await context.send(
            chat, texts.added_to_group, [[Button(f"{LET_IN}:{group}", texts.let_in)]]
        )


async def press_let_in(context: HandlerContext, press: ButtonPress) -> PressResult:
    result = await decide(context, press, "member", context.texts.was_let_in)
    person = press.argument
    if person != press.sender.group:
        chat = context.channel.private_chat(person)
        with speaking(await context.store.chats.spoken(chat)):
            await context.send(chat, context.texts.paired["member"])
    return result


async def press_refuse(context: HandlerContext, press: ButtonPress) -> PressResult:
    return await decide(context, press, "refused", context.texts.was_refused)


async def decide(
    context: HandlerContext, press: ButtonPress, role: Literal["member", "refused"], form: str
) -> PressResult:
    """Give the user or group of the button that role; the message says who did so, and when."""
    person, channel = press.argument, context.channel
    name = await context.access.name_of(person)  # a group has none until it is let in
    name = name or visible(await channel.name(channel.private_chat(person)))
    await context.access.put(person, role, name, press.sender.user)
    at = f"{await context.local_time(press.chat):%H:%M}"
    text = form.format(name=name or person, by=press.sender.name, at=at)
    return PressResult("", text)
