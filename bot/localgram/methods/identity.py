"""The bot about itself: getMe, commands, name, descriptions, the menu button."""

from functools import partial

from bot.localgram.methods import Methods
from bot.localgram.profile import SCOPES, Scope
from bot.localgram.wire import Call, Json, bad_request, integer
from bot.localgram.world import World

COMMANDS = 100


def get_me(world: World, _: Call) -> Json:
    return world.bot_json()


def _scope(world: World, call: Call) -> Scope:
    given = call.mapping("scope")
    kind = str(given.get("type", "default"))
    if kind not in SCOPES:
        raise bad_request("unsupported bot command scope specified")
    chat = world.chat_of(str(given.get("chat_id", ""))).id if kind.startswith("chat") else 0
    return kind, chat, integer(given.get("user_id"))


def set_my_commands(world: World, call: Call) -> bool:
    commands = call.sequence("commands")
    if len(commands) > COMMANDS:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    if not all(isinstance(command, dict) for command in commands):
        raise bad_request("expected an Array of BotCommand")
    world.profile.set_commands(_scope(world, call), call.text("language_code"), commands)
    _menus_changed(world)
    return True


def delete_my_commands(world: World, call: Call) -> bool:
    world.profile.set_commands(_scope(world, call), call.text("language_code"), [])
    _menus_changed(world)
    return True


def _menus_changed(world: World) -> None:
    for chat in world.chats.values():
        world.changed(chat)


def get_my_commands(world: World, call: Call) -> list[Json]:
    return world.profile.get_commands(_scope(world, call), call.text("language_code"))


def set_text(kind: str, world: World, call: Call) -> bool:
    world.profile.set_text(kind, call.text("language_code"), call.text(kind))
    _menus_changed(world)
    return True


def get_text(kind: str, world: World, call: Call) -> Json:
    return {kind: world.profile.get_text(kind, call.text("language_code"))}


def set_chat_menu_button(world: World, call: Call) -> bool:
    world.profile.menu = call.mapping("menu_button") or {"type": "commands"}
    return True


def get_chat_menu_button(world: World, _: Call) -> Json:
    return world.profile.menu


METHODS: Methods = {
    "getMe": get_me,
    "setMyCommands": set_my_commands,
    "deleteMyCommands": delete_my_commands,
    "getMyCommands": get_my_commands,
    "setMyName": partial(set_text, "name"),
    "getMyName": partial(get_text, "name"),
    "setMyDescription": partial(set_text, "description"),
    "getMyDescription": partial(get_text, "description"),
    "setMyShortDescription": partial(set_text, "short_description"),
    "getMyShortDescription": partial(get_text, "short_description"),
    "setChatMenuButton": set_chat_menu_button,
    "getChatMenuButton": get_chat_menu_button,
}
