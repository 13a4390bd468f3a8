"""Accounts: the bot's and those of the people it talks to."""

from dataclasses import dataclass

from bot.localgram.wire import Json, given


@dataclass(frozen=True, slots=True)
class Account:
    id: int
    first_name: str
    username: str = ""
    last_name: str = ""
    language: str = "en"
    is_bot: bool = False

    def json(self) -> Json:
        return {
            "id": self.id,
            "is_bot": self.is_bot,
            **self.names(),
            **given(language_code=None if self.is_bot else self.language),
        }

    def names(self) -> Json:
        more = given(last_name=self.last_name, username=self.username)
        return {"first_name": self.first_name, **more}

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip()
