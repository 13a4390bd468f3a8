"""Accounts: the bot's and those of the people it talks to."""

from dataclasses import dataclass

from bot.localgram.wire import Json


@dataclass(frozen=True, slots=True)
class Account:
    id: int
    first_name: str
    username: str = ""
    last_name: str = ""
    language: str = "en"
    is_bot: bool = False

    def json(self) -> Json:
        shown: Json = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name}
        if self.last_name:
            shown["last_name"] = self.last_name
        if self.username:
            shown["username"] = self.username
        if not self.is_bot:
            shown["language_code"] = self.language
        return shown

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip()
