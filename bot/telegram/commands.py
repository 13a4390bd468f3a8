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
from bot.telegram import cards, memory, models, pairing, planning
from bot.telegram.door import Speaker
from bot.telegram.intake import welcome
from bot.telegram.place import Place
from bot.telegram.room import Heard, Room, heard

Handler = Callable[[Room, Heard], Awaitable[None]]
STOPPED = "stopped_message_generation"


@dataclass(frozen=True, slots=True)
class Command:
    """`who` may use it; `menu` says where Telegram lists it."""

    name: str
    run: Handler
    what: str
    who: Literal["member", "owner"] = "member"
    menu: Literal["everywhere", "private", "nowhere"] = "private"


async def start(room: Room, said: Heard) -> None:
    if said.argument:
        await pairing.use_code(room, said)
    else:
        await room.say(said.chat, room.texts.hello)


async def help_(room: Room, said: Heard) -> None:
    lines = [
        f"/{c.name}: {c.what}" for c in COMMANDS if said.standing == "owner" or c.who == "member"
    ]
    await room.say(said.chat, room.texts.help.format(commands="\n".join(lines)))


async def new(room: Room, said: Heard) -> None:
    await room.services.chats.stop(said.chat)
    await room.services.chats.new(said.chat)
    await room.say(said.chat, room.texts.new)


async def stop(room: Room, said: Heard) -> None:
    if not await room.services.chats.stop(said.chat):
        await room.say(said.chat, room.texts.nothing_runs)


async def stopped(room: Room, update: Update) -> None:
    """The Stop button under a draft, of which python-telegram-bot does not know yet."""
    press = update.api_kwargs.get(STOPPED)
    if not press:
        return
    place = Place(press["chat"]["id"], press.get("message_thread_id"))
    if room.door.standing(Speaker(place.chat_id, "")) != "stranger":
        await room.services.chats.stop(place.key)


async def retry(room: Room, said: Heard) -> None:
    if not await room.services.chats.retry(said.chat):
        await room.say(said.chat, room.texts.nothing_to_retry)


COMMANDS: Sequence[Command] = (
    Command("start", start, "begin", menu="nowhere"),
    Command("help", help_, "what I can do", menu="everywhere"),
    Command("new", new, "a new conversation", menu="everywhere"),
    Command("resume", memory.resume, "go on with an older conversation"),
    Command("stop", stop, "stop what I am doing", menu="everywhere"),
    Command("retry", retry, "answer the last message again", menu="everywhere"),
    Command("status", cards.status, "how I am", menu="everywhere"),
    Command("gpu", cards.gpu, "a picture of the graphics card"),
    Command("model", models.model, "which model, and switch it"),
    Command("context", cards.context, "what fills the context"),
    Command("memory", memory.notes, "what I remember, and correct it"),
    Command("forget", memory.forget, "forget a note, or all of this chat"),
    Command("jobs", planning.jobs, "what is planned"),
    Command("schedule", planning.schedule, "plan a reminder or a task"),
    Command("repos", planning.repos, "the repositories I can see"),
    Command("summary", planning.summary, "what happened in a repository"),
    Command("approve", cards.approvals, "open questions and standing permissions", "owner"),
    Command("export", memory.export, "this chat as files, to read and as JSON"),
    Command("settings", cards.settings, "thinking and other settings"),
)
HIDDEN: Sequence[Command] = (Command("pair", pairing.ask, "ask to be let in", menu="nowhere"),)


def handler(command: Command) -> Callable[[Room, Update], Awaitable[None]]:
    """Checks who asks, then runs the command; a plain error is told in its own words."""

    async def handle(room: Room, update: Update) -> None:
        said = heard(room, update)
        if said is None or not await _may(room, said, command):
            return
        try:
            await command.run(room, said)
        except AgentError as error:
            await room.say(said.chat, str(error))

    return handle


async def _may(room: Room, said: Heard, command: Command) -> bool:
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


async def unknown(room: Room, update: Update) -> None:
    """A command that is not ours: help, but not in a group where it may be another bot's."""
    said = heard(room, update)
    if said is None or said.message.text is None:
        return
    _, _, name = said.message.text.split()[0].partition("@")
    mine = name.lower() == (room.me.username or "").lower()
    if (mine or (said.speaker.group is None and not name)) and await welcome(room, said):
        await help_(room, said)


async def register(room: Room) -> None:
    """Tell Telegram which commands to list where. It shows menus; nothing depends on them."""
    everywhere = [BotCommand(c.name, c.what) for c in COMMANDS if c.menu == "everywhere"]
    private = [c for c in COMMANDS if c.menu != "nowhere"]
    members = [BotCommand(c.name, c.what) for c in private if c.who == "member"]
    owners = [BotCommand(c.name, c.what) for c in private]
    try:
        await room.bot.set_my_commands(members, BotCommandScopeAllPrivateChats())
        await room.bot.set_my_commands(everywhere, BotCommandScopeAllGroupChats())
        for owner in sorted(room.door.owners):
            await room.bot.set_my_commands(owners, BotCommandScopeChat(owner))
    except TelegramError:
        return
