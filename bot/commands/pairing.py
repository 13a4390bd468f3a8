"""Letting people in: by a one-time link, or because they ask and an owner presses a button."""

from bot.channel import Button
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult

LET_IN = "in"
REFUSE = "out"


async def start(context: HandlerContext, call: CommandCall) -> None:
    """/start, or /start CODE from the link that `voltaire setup` prints."""
    if not call.argument:
        await context.send(call.chat, context.texts.hello)
        return
    level = await context.access.use_code(call.sender, call.argument.split()[0])
    if level is not None:
        await context.send(call.chat, context.texts.paired[level])
    elif call.level == "stranger":
        await context.send(call.chat, context.texts.bad_code)
    else:
        await context.send(call.chat, context.texts.hello)


async def pair(context: HandlerContext, call: CommandCall) -> None:
    """/pair: a stranger asks; each owner gets one question."""
    if call.level != "stranger":
        await context.send(call.chat, context.texts.already_in)
        return
    if not await context.access.request(call.sender):
        return  # asked before, or refused: nothing more is said
    await context.send(call.chat, context.texts.asked_to_pair)
    user = call.sender.user
    keyboard = [
        [
            Button(f"{LET_IN}:{user}", context.texts.let_in),
            Button(f"{REFUSE}:{user}", context.texts.refuse),
        ]
    ]
    question = context.texts.wants_in.format(name=f"{call.sender.name} ({user})")
    for owner in sorted(context.access.owners):
        await context.send(context.channel.private_chat(owner), question, keyboard)


async def ask_about_group(context: HandlerContext, chat: str, group: str) -> None:
    """An owner has added the bot to a group: may everybody there talk to it?"""
    keyboard = [[Button(f"{LET_IN}:{group}", context.texts.let_in)]]
    await context.send(chat, context.texts.added_to_group, keyboard)


async def press_let_in(context: HandlerContext, press: ButtonPress) -> PressResult:
    if press.level != "owner":
        return PressResult(context.texts.only_owners)
    person, name = press.argument, await context.access.name_of(press.argument)
    await context.access.let_in(person, name, press.sender.user)
    if person != press.sender.group:
        chat = context.channel.private_chat(person)
        await context.send(chat, context.texts.paired["member"])
    return await decided(context, press, context.texts.was_let_in, name)


async def press_refuse(context: HandlerContext, press: ButtonPress) -> PressResult:
    if press.level != "owner":
        return PressResult(context.texts.only_owners)
    person, name = press.argument, await context.access.name_of(press.argument)
    await context.access.refuse(person, name, press.sender.user)
    return await decided(context, press, context.texts.was_refused, name)


async def decided(context: HandlerContext, press: ButtonPress, form: str, name: str) -> PressResult:
    at = f"{await context.local_time(press.chat):%H:%M}"
    text = form.format(name=name or press.argument, by=press.sender.name, at=at)
    return PressResult("", text)
