"""What the bot says about itself: commands by scope and language, name, descriptions."""

import re
from dataclasses import dataclass, field

from bot.localgram.chat import Chat
from bot.localgram.wire import Json, bad_request

COMMAND = re.compile(r"[a-z0-9_]{1,32}")
LANGUAGE = re.compile(r"(?:[a-z]{2})?")
SCOPES = frozenset(
    {
        "default", "all_private_chats", "all_group_chats", "all_chat_administrators",
        "chat", "chat_administrators", "chat_member",
    }
)  # fmt: skip
TEXTS = {"name": 64, "description": 512, "short_description": 120}
Scope = tuple[str, int, int]  # kind, chat, user; zero where it has none


@dataclass(slots=True)
class Profile:
    name: str
    commands: dict[tuple[Scope, str], list[Json]] = field(default_factory=dict)
    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    menu: Json = field(default_factory=lambda: {"type": "commands"})

    def set_commands(self, scope: Scope, language: str, commands: list[Json]) -> None:
        self.commands[scope, _language(language)] = [_command(command) for command in commands]

    def get_commands(self, scope: Scope, language: str) -> list[Json]:
        return self.commands.get((scope, _language(language)), [])

    def shown_commands(self, chat: Chat, user: int, language: str) -> list[Json]:
        """What this person's menu shows: the narrowest scope that has commands."""
        for scope in _precedence(chat, user):
            for tongue in (language, ""):
                if found := self.commands.get((scope, tongue)):
                    return found
        return []

    def set_text(self, kind: str, language: str, text: str) -> None:
        if len(text) > TEXTS[kind]:
            raise bad_request(f"bot {kind.replace('_', ' ')} is too long")
        self.texts[kind, _language(language)] = text

    def get_text(self, kind: str, language: str) -> str:
        fallback = self.name if kind == "name" else ""
        return self.texts.get((kind, language)) or self.texts.get((kind, "")) or fallback


def _language(code: str) -> str:
    if not LANGUAGE.fullmatch(code):
        raise bad_request("invalid language code specified")
    return code


def _command(command: Json) -> Json:
    name = str(command.get("command", "")).removeprefix("/")
    description = str(command.get("description", "")).strip()
    if not COMMAND.fullmatch(name):
        raise bad_request("BOT_COMMAND_INVALID")
    if not 1 <= len(description) <= 256:
        raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    return {"command": name, "description": description}


def _precedence(chat: Chat, user: int) -> list[Scope]:
    if chat.private:
        return [("chat", chat.id, 0), ("all_private_chats", 0, 0), ("default", 0, 0)]
    scopes: list[Scope] = [("chat_member", chat.id, user)]
    if user in chat.admins:
        scopes += [("chat_administrators", chat.id, 0)]
    scopes += [("chat", chat.id, 0)]
    if user in chat.admins:
        scopes += [("all_chat_administrators", 0, 0)]
    return [*scopes, ("all_group_chats", 0, 0), ("default", 0, 0)]
