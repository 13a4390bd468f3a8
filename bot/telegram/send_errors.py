"""What Telegram's errors mean for what was sent: done, surely not done, or unknown.

python-telegram-bot strips "Bad Request: " and changes the case of its texts, so
they are compared in lower case. Its TimedOut and BadRequest are NetworkErrors.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)

from bot.channel import Away, ChannelError, Gone, Moved, Refused, Uncertain
from bot.telegram.chat_key import Place
from bot.telegram.connection import UNSENT

_NO_CHAT = (
    "chat not found",
    "user is deactivated",
    "group chat was deleted",
    "chat_write_forbidden",
)


@contextmanager
def understood() -> Iterator[None]:
    """Telegram's errors as those of a channel."""
    try:
        yield
    except TelegramError as error:
        raise meaning(error) from error


def meaning(error: TelegramError) -> ChannelError:
    text = str(error)
    match error:
        case RetryAfter(retry_after=timedelta() as after):
            return Away(text, after.total_seconds())
        case ChatMigrated():
            return Moved(Place(error.new_chat_id).key)
        case Forbidden():
            return Gone(text)
        case BadRequest():
            return Gone(text) if _says(error, *_NO_CHAT) else Refused(text)
        case InvalidToken():
            return Away(text)
        case NetworkError() if _answered(error) or isinstance(error.__cause__, UNSENT):
            return Away(text)
    return Uncertain(text)


def _answered(error: NetworkError) -> bool:
    """A 5xx: somebody said that it was not done. A gateway that gave up waiting does not know."""
    told = error.__cause__ is None or isinstance(error.__cause__, TelegramError)
    return told and "(504)" not in str(error)


def unchanged(error: BadRequest) -> bool:
    """An edit that changes nothing is refused."""
    return _says(error, "message is not modified")


def no_such_method(error: TelegramError) -> bool:
    return isinstance(error, InvalidToken) and "not found" in str(error).lower()


def _says(error: TelegramError, *texts: str) -> bool:
    return any(text in str(error).lower() for text in texts)
