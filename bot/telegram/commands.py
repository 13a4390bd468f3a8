"""The chat commands. Each is a function of the room and the message; answers go through the outbox."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from telegram import (
    BotCommand,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
    Update,
)
from telegram.error import TelegramError

from agent.errors import AgentError
from bot.telegram import memory, models, pairing, planning, status_commands
from bot.telegram.access import Speaker
from bot.telegram.chat_key import Place
from bot.telegram.handler_context import HandlerContext, Heard, heard
from bot.telegram.intake import welcome

Handler = Callable[[HandlerContext, Heard], Awaitable[None]]
STOPPED = "stopped_message_generation"


@dataclass(frozen=True, slots=True)
class Command:
    """`who` may use it; `menu` says where Telegram lists it. What it does stands in Texts.commands."""

    name: str
    run: Handler
    who: Literal["member", "owner"] = "member"
    menu: Literal["everywhere", "private", "nowhere"] = "private"


async def start(room: HandlerContext, said: Heard) -> None:
    if said.argument:
        await pairing.use_code(room, said)
    else:
        await room.say(said.chat, room.texts.hello)


async def help_(room: HandlerContext, said: Heard) -> None:
    lines = [
        f"/{c.name}: {room.texts.commands[c.name]}"
        for c in COMMANDS
        if said.standing == "owner" or c.who == "member"
    ]
    await room.say(said.chat, room.texts.help.format(commands="\n".join(lines)))


async def new(room: HandlerContext, said: Heard) -> None:
    await room.services.chats.stop(said.chat)
    await room.services.chats.new(said.chat)
    await room.say(said.chat, room.texts.new)


async def stop(room: HandlerContext, said: Heard) -> None:
    if not await room.services.chats.stop(said.chat):
        await room.say(said.chat, room.texts.nothing_runs)


async def stopped(room: HandlerContext, update: Update) -> None:
    """The Stop button under a draft, of which python-telegram-bot does not know yet."""
    press = update.api_kwargs.get(STOPPED)
    if not press:
        return
    place = Place(press["chat"]["id"], press.get("message_thread_id"))
    if room.door.standing(Speaker(place.chat_id, "")) != "stranger":
        await room.services.chats.stop(place.key)


async def retry(room: HandlerContext, said: Heard) -> None:
    if not await room.services.chats.retry(said.chat):
        await room.say(said.chat, room.texts.nothing_to_retry)


COMMANDS: Sequence[Command] = (
    Command("start", start, menu="nowhere"),
    Command("help", help_, menu="everywhere"),
    Command("new", new, menu="everywhere"),
    Command("resume", memory.resume),
    Command("stop", stop, menu="everywhere"),
    Command("retry", retry, menu="everywhere"),
    Command("status", status_commands.status, menu="everywhere"),
    Command("gpu", status_commands.gpu),
    Command("model", models.model),
    Command("context", status_commands.context),
    Command("memory", memory.notes),
    Command("forget", memory.forget),
    Command("jobs", planning.jobs),
    Command("schedule", planning.schedule),
    Command("repos", planning.repos),
    Command("summary", planning.summary),
    Command("approve", status_commands.approvals, who="owner"),
    Command("export", memory.export),
    Command("settings", status_commands.settings),
)
HIDDEN: Sequence[Command] = (Command("pair", pairing.ask, menu="nowhere"),)


def handler(command: Command) -> Callable[[HandlerContext, Update], Awaitable[None]]:
    """Checks who asks, then runs the command; a plain error is told in its own words."""

    async def handle(room: HandlerContext, update: Update) -> None:
        said = heard(room, update)
        if said is None or not await _may(room, said, command):
            return
        try:
            await command.run(room, said)
        except AgentError as error:
            await room.say(said.chat, str(error))

    return handle


async def _may(room: HandlerContext, said: Heard, command: Command) -> bool:
    if (
        said.standing == "stranger"
        and command.name in ("start", "pair")
        and said.speaker.group is None
    ):
        return command.name == "pair" or bool(said.argument) or await welcome(room, said)
    if not await welcome(room, said):
        return False
    if command.who == "owner" and said.standing != "owner":
        await room.say(said.chat, room.texts.only_owners)
        return False
    return True


async def unknown(room: HandlerContext, update: Update) -> None:
    """A command that is not ours: help, but not in a group where it may be another bot's."""
    said = heard(room, update)
    if said is None or said.message.text is None:
        return
    _, _, name = said.message.text.split()[0].partition("@")
    mine = name.lower() == (room.me.username or "").lower()
    if (mine or (said.speaker.group is None and not name)) and await welcome(room, said):
        await help_(room, said)


async def register(room: HandlerContext) -> None:
    """Tell Telegram which commands to list where. It shows menus; nothing depends on them."""
    private = [c for c in COMMANDS if c.menu != "nowhere"]
    members = _listed(room, [c for c in private if c.who == "member"])
    everywhere = _listed(room, [c for c in COMMANDS if c.menu == "everywhere"])
    owners = _listed(room, private)
    try:
        await room.bot.set_my_commands(members, BotCommandScopeAllPrivateChats())
        await room.bot.set_my_commands(everywhere, BotCommandScopeAllGroupChats())
        for owner in sorted(room.door.owners):
            await room.bot.set_my_commands(owners, BotCommandScopeChat(owner))
    except TelegramError:
        return


def _listed(room: HandlerContext, commands: Sequence[Command]) -> list[BotCommand]:
    return [BotCommand(c.name, room.texts.commands[c.name]) for c in commands]
