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

from bot.channel import (
    ChannelError,
    ChatGone,
    ChatMoved,
    DeliveryUncertain,
    MessageRefused,
    NotSent,
)
from bot.telegram.chat_key import ChatKey
from bot.telegram.connection import UNSENT

NO_CHAT = (
    "chat not found",
    "user is deactivated",
    "group chat was deleted",
    "chat_write_forbidden",
)


@contextmanager
def channel_errors() -> Iterator[None]:
    """Raise Telegram's errors as those of a channel."""
    try:
        yield
    except TelegramError as error:
        raise channel_error(error) from error


def channel_error(error: TelegramError) -> ChannelError:
    text = str(error)
    match error:
        case RetryAfter(retry_after=timedelta() as after):
            return NotSent(text, after.total_seconds())
        case ChatMigrated():
            return ChatMoved(str(ChatKey(error.new_chat_id)))
        case Forbidden():
            return ChatGone(text)
        case BadRequest():
            return ChatGone(text) if says(error, *NO_CHAT) else MessageRefused(text)
        case InvalidToken():
            return NotSent(text)
        case NetworkError() if refused_by_server(error) or isinstance(error.__cause__, UNSENT):
            return NotSent(text)
    return DeliveryUncertain(text)


def refused_by_server(error: NetworkError) -> bool:
    """A 5xx: the server says that it was not done. A gateway that timed out (504) does not know."""
    answered = error.__cause__ is None or isinstance(error.__cause__, TelegramError)
    return answered and "(504)" not in str(error)


def is_unchanged(error: BadRequest) -> bool:
    """An edit that changes nothing is refused."""
    return says(error, "message is not modified")


def is_unknown_method(error: TelegramError) -> bool:
    return isinstance(error, InvalidToken) and says(error, "not found")


def says(error: TelegramError, *texts: str) -> bool:
    return any(text in str(error).lower() for text in texts)
