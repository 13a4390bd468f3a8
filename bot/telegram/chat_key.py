"""Where something is said: a chat and, where there are topics, one of them."""

from dataclasses import dataclass
from functools import lru_cache

PREFIX = "tg:"


@dataclass(frozen=True, slots=True)
class Place:
    """`chat_id` is negative for groups; `thread_id` None outside topics."""

    chat_id: int
    thread_id: int | None = None

    @classmethod
    def of(cls, key: str) -> "Place":
        """Read a chat's key, `tg:111` or `tg:-100222:7`."""
        return _read(key)

    @property
    def key(self) -> str:
        return f"{PREFIX}{self.chat_id}" + (f":{self.thread_id}" if self.thread_id else "")

    @property
    def private(self) -> bool:
        return self.chat_id > 0


@lru_cache(maxsize=1024)
def _read(key: str) -> Place:
    chat_id, _, thread = key.removeprefix(PREFIX).partition(":")
    return Place(int(chat_id), int(thread) if thread else None)
