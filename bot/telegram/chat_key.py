"""Where something is said: a chat and, where there are topics, one of them."""

from dataclasses import dataclass
from functools import lru_cache

SOURCE = "telegram"  # of rows in the database
PREFIX = "tg:"


@dataclass(frozen=True, slots=True)
class ChatKey:
    """`chat_id` is negative for groups; `thread_id` None outside topics. `str` is the chat's key."""

    chat_id: int
    thread_id: int | None = None

    def __str__(self) -> str:
        return f"{PREFIX}{self.chat_id}" + (f":{self.thread_id}" if self.thread_id else "")

    @property
    def private(self) -> bool:
        return self.chat_id > 0


@lru_cache(maxsize=1024)
def parse(key: str) -> ChatKey:
    """Read a chat's key, `tg:111` or `tg:-100222:7`."""
    chat_id, _, thread = key.removeprefix(PREFIX).partition(":")
    return ChatKey(int(chat_id), int(thread) if thread else None)
