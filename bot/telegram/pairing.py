"""Letting people in: by a one-time link, or because they ask and an owner presses a button."""

from bot.channel import Choice
from bot.telegram.buttons import Outcome, Press
from bot.telegram.chat_key import Place
from bot.telegram.handler_context import HandlerContext, Heard

LET_IN = "in"
KEEP_OUT = "out"
GROUP = "grp"


async def use_code(room: HandlerContext, said: Heard) -> None:
    """`/start CODE`, from the link that `voltaire setup` prints."""
    role = await room.door.use_code(said.speaker, said.argument.split()[0])
    if role is not None:
        await room.say(said.chat, room.texts.paired[role])
    elif said.standing == "stranger":
        await room.say(said.chat, room.texts.bad_code)
    else:
        await room.say(said.chat, room.texts.hello)


async def ask(room: HandlerContext, said: Heard) -> None:
    """/pair: a stranger asks; the owners get one question each."""
    if said.standing != "stranger":
        await room.say(said.chat, room.texts.already_in)
        return
    if not await room.door.asks(said.speaker):
        return  # asked before, or refused: nothing more is said
    await room.say(said.chat, room.texts.asked_to_pair)
    name = f"{said.speaker.name} ({said.speaker.user})"
    buttons = [
        [
            Choice(f"{LET_IN}:{said.speaker.user}", room.texts.let_in),
            Choice(f"{KEEP_OUT}:{said.speaker.user}", room.texts.keep_out),
        ]
    ]
    for owner in sorted(room.door.owners):
        await room.say(Place(owner).key, room.texts.wants_in.format(name=name), buttons)


async def let_in(room: HandlerContext, press: Press) -> Outcome:
    if press.standing != "owner":
        return Outcome(room.texts.only_owners)
    person = int(press.argument)
    name = await _name(room, person)
    await room.door.let_in(person, name, press.speaker.user)
    if person > 0:
        await room.say(Place(person).key, room.texts.paired["member"])
    told = room.texts.was_let_in.format(name=name or person, by=press.speaker.name, at=room.clock())
    return Outcome("", told)


async def keep_out(room: HandlerContext, press: Press) -> Outcome:
    if press.standing != "owner":
        return Outcome(room.texts.only_owners)
    person = int(press.argument)
    name = await _name(room, person)
    await room.door.shut_out(person, name, press.speaker.user)
    told = room.texts.was_kept_out.format(
        name=name or person, by=press.speaker.name, at=room.clock()
    )
    return Outcome("", told)


async def _name(room: HandlerContext, person: int) -> str:
    known = await room.store.people.get("telegram", str(person))
    return known.name if known else ""
