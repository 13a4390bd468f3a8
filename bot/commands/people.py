"""/start: what this is, where it runs, which wishes to try; and letting people in, by a one-time link, or because they
ask and an owner presses a button."""

import socket
from collections.abc import Callable
from typing import Literal
from urllib.parse import urlsplit

from agent.language import ENGLISH, speaking, spoken
from agent.sandbox.output_buffer import visible
from agent.store import Incoming
from backend.client import BackendUnavailable
from bot.access import AccessLevel, Sender
from bot.channel import Button, Keyboard
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult
from bot.texts import TEXTS

LET_IN = "in"
REFUSE = "out"


async def start(context: HandlerContext, call: CommandCall) -> None:
    """/start, or /start CODE from the link that `voltaire setup` prints."""
    if not call.argument:
        await hello(context, call.chat, call.level)
        return
    level = await context.access.use_code(call.sender, call.argument.split()[0])
    if level is not None:
        await context.send(call.chat, TEXTS.paired[level])
        await hello(context, call.chat, level)
    elif call.level == "stranger":
        await context.send(call.chat, TEXTS.bad_code)
    else:
        await hello(context, call.chat, call.level)


async def pair(context: HandlerContext, call: CommandCall) -> None:
    """/pair: a stranger asks; each owner gets one question."""
    if call.level != "stranger":
        await context.send(call.chat, TEXTS.already_in)
        return
    if not await context.access.request(call.sender):
        return  # asked before, or refused: nothing more is said
    await context.store.chats.open(call.chat, language=spoken())
    await context.send(call.chat, TEXTS.asked_to_pair)
    await ask_owners(context, call.sender, lambda: TEXTS.wants_in)


async def ask_owners(context: HandlerContext, sender: Sender, form: Callable[[], str]) -> None:
    """Ask each owner, in their own language, whether a stranger may talk."""
    user = sender.user
    for owner in sorted(context.access.owners):
        chat = context.channel.private_chat(owner)
        with speaking(await context.store.chats.spoken(chat), context.language, ENGLISH):
            question = form().format(name=f"{visible(sender.name)} ({user})")
            buttons = [
                Button(f"{LET_IN}:{user}", TEXTS.let_in),
                Button(f"{REFUSE}:{user}", TEXTS.refuse),
            ]
            await context.send(chat, question, [buttons])


async def offer_to_let_in_group(
    context: HandlerContext, chat: str, group: str, added_by: str
) -> None:
    """Ask an owner who has added the bot to a group whether everybody there may talk to it."""
    access = context.access
    if added_by in access.owners and access.groups != "off" and group not in access.members:
        await context.send(
            chat, TEXTS.added_to_group, [[Button(f"{LET_IN}:{group}", TEXTS.let_in)]]
        )


async def press_let_in(context: HandlerContext, press: ButtonPress) -> PressResult:
    result = await decide(context, press, "member", TEXTS.was_let_in)
    person = press.argument
    if person != press.sender.group:
        chat = context.channel.private_chat(person)
        with speaking(await context.store.chats.spoken(chat)):
            await context.send(chat, TEXTS.paired["member"])
    return result


async def press_refuse(context: HandlerContext, press: ButtonPress) -> PressResult:
    return await decide(context, press, "refused", TEXTS.was_refused)


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


# -- chats of one owner in several apps ---------------------------------------


CODE_SECONDS = 900.0


async def link(context: HandlerContext, call: CommandCall) -> None:
    """/link makes a code, and /link CODE in the other app uses it; /link alerts brings alerts to this chat;
    /link end separates it from the others."""
    links, argument = context.store.links, call.argument.strip()
    alerts = context.channel.private_chat(call.sender.user)
    if call.sender.group is not None:
        await context.send(call.chat, TEXTS.link_private)
    elif argument.lower() == "end":
        ended = await links.end(call.chat, alerts, call.sender.name)
        await context.send(call.chat, TEXTS.link_ended if ended else TEXTS.not_linked)
    elif argument.lower() == "alerts":
        here = await links.alert_here(alerts)
        await context.send(call.chat, TEXTS.alerts_here if here else TEXTS.not_linked)
    elif argument:
        other = await links.use_code(call.chat, alerts, argument, call.sender.name)
        await context.send(call.chat, TEXTS.linked if other else TEXTS.bad_link_code)
        if other:  # told in both, in case it was not the owner
            await context.send(other, TEXTS.linked)
    else:
        code = await links.make_code(call.chat, alerts, CODE_SECONDS)
        known = TEXTS.linked_now if await links.of(call.chat) else ""
        minutes = round(CODE_SECONDS / 60)
        told = TEXTS.link_code.format(code=code, minutes=minutes)
        await context.send(call.chat, f"{known}\n\n{told}".strip())


WISH = "try"
TOY, TOY_PROFILE = "pocket.gguf", "pocket"  # the model that ships along


async def hello(context: HandlerContext, chat: str, level: AccessLevel) -> None:
    """The first screen that a person sees; one line in a group."""
    if context.channel.user_of(chat) is None:
        await context.send(chat, TEXTS.hello)
    else:
        await context.store.chats.open(chat, language=spoken())  # of what is said there unasked
        await context.send(chat, *await first_screen(context, level))


async def first_screen(context: HandlerContext, level: AccessLevel) -> tuple[str, Keyboard]:
    host = socket.gethostname() if level == "owner" else TEXTS.owners_machine
    runs_at = TEXTS.runs_at.get(context.channel.source, TEXTS.runs_at["other"])
    place = TEXTS.runs_here if context.demo else runs_at
    model = await model_words(context)
    parts = [TEXTS.what_i_am, place.format(host=host), model, TEXTS.try_these]
    with speaking(ENGLISH if model in (TEXTS.toy_serves, TEXTS.toy_serves_demo) else spoken()):
        wishes = enumerate(TEXTS.wishes)
        keyboard = [[Button(f"{WISH}:{n}:{spoken()}", wish)] for n, wish in wishes]
    return "\n\n".join(filter(None, parts)), keyboard


async def model_words(context: HandlerContext) -> str:
    """Describe the model that serves, with the host of an external one."""
    backend = context.services.backend
    try:
        server = (await backend.status()).backend
        if server.model == TOY or (not server.model and server.profile == TOY_PROFILE):  # it starts
            return TEXTS.toy_serves_demo if context.demo else TEXTS.toy_serves
        where = ""
        if server.kind == "external":
            where = TEXTS.model_at.format(host=urlsplit((await backend.endpoint()).url).hostname)
        return TEXTS.model_serves.format(name=server.profile or server.model or "?", where=where)
    except BackendUnavailable:
        return TEXTS.no_model_yet


async def press_wish(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Start a turn as if the person had written the wish, and show the wish in the chat."""
    number, _, language = press.argument.partition(":")
    with speaking(language):
        wishes = {str(n): wish for n, wish in enumerate(TEXTS.wishes)}
    if number not in wishes:
        return PressResult(TEXTS.expired)
    wish = wishes[number]
    incoming = Incoming(
        press.chat,
        context.channel.source,
        f"{WISH}:{press.message}:{press.argument}:{context.store.clock():.0f}",
        wish,
        sender=press.sender.name if press.sender.group else "",
        origin="owner" if press.level == "owner" else "person",
    )
    await context.send(press.chat, f"› *{wish}*", silent=True)
    await context.services.chats.submit(incoming)
    return PressResult(wish)
