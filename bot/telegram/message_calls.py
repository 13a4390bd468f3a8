"""Bot API calls on messages: chats by their key, each call at its chat's pace, errors as a channel's.

python-telegram-bot strips "Bad Request: " and changes the case of Telegram's texts, so
they are compared in lower case. Its TimedOut and BadRequest are NetworkErrors.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, TypeVar

from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    Message,
    ReplyParameters,
    WebAppInfo,
)
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
    Button,
    ChannelError,
    ChatGone,
    ChatMoved,
    DeliveryUncertain,
    Keyboard,
    MessageRefused,
    NotSent,
)
from bot.rate_limiter import Rate, RateLimiter, Urgency, loop_time
from bot.telegram.connection import UNSENT
from bot.telegram.styled import Styled, entities

SOURCE = "telegram"  # of rows in the database
PREFIX = "tg:"
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
# Bot API 10.3: a button under the draft; its press comes as `stopped_message_generation`.
CAN_STOP = {"can_stop": True}
NO_CHAT = (
    "chat not found",
    "user is deactivated",
    "group chat was deleted",
    "chat_write_forbidden",
)


T = TypeVar("T")


PRIVATE = Rate(burst=5, seconds=1.0, spare=2)
GROUP = Rate(burst=8, seconds=5.0, spare=4)  # at most 8 + 12 in any minute
OVERALL = Rate(burst=20, seconds=1 / 28, spare=5)
OVERALL_CALLS = 100  # in flight at a time


class Pacer:
    """The calls to one chat, one at a time."""

    def __init__(self, rate: Rate, overall: RateLimiter) -> None:
        self._chat = RateLimiter(rate, calls=1)
        self._overall = overall
        self._left_out_until: dict[str, float] = {}  # by kind of call

    @asynccontextmanager
    async def permit(
        self, urgency: Urgency = Urgency.FINAL, tickets: tuple[int, int] | None = None
    ) -> AsyncIterator[None]:
        """Wait in the chat's and the bot's queue, and hold the chat for one call."""
        chat, overall = tickets or (self._chat.ticket(), self._overall.ticket())
        async with self._chat.permit(urgency, chat), self._overall.permit(urgency, overall):
            yield

    async def run(self, call: Callable[[], Awaitable[T]], urgency: Urgency = Urgency.FINAL) -> T:
        """Make a call, again after a 429, which Telegram did not carry out; return its result."""
        tickets = self._chat.ticket(), self._overall.ticket()
        while True:
            async with self.permit(urgency, tickets):
                try:
                    return await call()
                except RetryAfter as refusal:
                    self.pause(refusal)

    async def run_unless_paused(self, kind: str, call: Callable[[], Awaitable[object]]) -> None:
        """Make a call that may be left out: it never waits, and is not made while the chat is paused. A 429
        holds back calls of its kind only."""
        if self._chat.paused or self._left_out_until.get(kind, 0.0) > loop_time():
            return
        try:
            await call()
        except RetryAfter as refusal:
            self._left_out_until[kind] = loop_time() + seconds_of(refusal)

    def pause(self, refusal: RetryAfter) -> None:
        self._chat.pause(seconds_of(refusal))


class Pacers:
    """The pacer of each chat. Telegram's ids of groups are negative."""

    def __init__(self) -> None:
        self._overall = RateLimiter(OVERALL, OVERALL_CALLS)
        self._pacers: dict[int, Pacer] = {}

    def of(self, chat_id: int) -> Pacer:
        if chat_id not in self._pacers:
            self._pacers[chat_id] = Pacer(GROUP if chat_id < 0 else PRIVATE, self._overall)
        return self._pacers[chat_id]


def seconds_of(refusal: RetryAfter) -> float:
    """The seconds to wait that Telegram demands."""
    assert isinstance(refusal.retry_after, timedelta)  # PTB_TIMEDELTA
    return refusal.retry_after.total_seconds() + 0.1


@dataclass(frozen=True, slots=True)
class ChatKey:
    """A chat and, where there are topics, one of them. `chat_id` is negative for groups; `thread_id` None outside topics. `str` is the chat's key."""

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


def chat_arguments(chat: str) -> dict[str, Any]:
    """The chat as arguments of a Bot API call."""
    key = parse(chat)
    return {"chat_id": key.chat_id, "message_thread_id": key.thread_id}


class MessageCalls:
    """The Bot API calls on messages. `drafts` is False once the server has refused drafts, as older ones do."""

    def __init__(self, bot: Bot, pacers: Pacers) -> None:
        self.bot = bot
        self._pacers = pacers
        self.drafts = True

    def pacer(self, chat: str) -> Pacer:
        return self._pacers.of(parse(chat).chat_id)

    @contextmanager
    def pausing(self, chat: str) -> Iterator[None]:
        """Convert errors to ChannelErrors; a 429 pauses the chat. The caller holds a permit."""
        with channel_errors():
            try:
                yield
            except RetryAfter as refusal:
                self.pacer(chat).pause(refusal)
                raise

    async def send_text(
        self,
        chat: str,
        text: Styled,
        keyboard: Keyboard = (),
        *,
        silent: bool = False,
        reply_to: str = "",
    ) -> str:
        """Send without rate limiting, as the caller holds a permit; return the message's id. Raises TelegramError."""
        sent = await self.bot.send_message(
            text=text.text,
            entities=entities(text),
            disable_notification=silent,
            reply_parameters=reply_parameters(reply_to),
            reply_markup=inline_keyboard(keyboard),
            link_preview_options=NO_PREVIEW,
            **chat_arguments(chat),
        )
        return str(sent.message_id)

    async def send_rich(
        self, chat: str, html: str, *, silent: bool = False, reply_to: str = ""
    ) -> str:
        """Send without rate limiting; return the new message's id. Raises TelegramError."""
        call = {
            **chat_arguments(chat),
            "rich_message": {"html": html},
            "disable_notification": silent or None,
            "reply_parameters": reply_parameters(reply_to),
        }
        sent = await self.bot.do_api_request("sendRichMessage", call, return_type=Message)
        assert isinstance(sent, Message)
        return str(sent.message_id)

    async def edit_text(
        self, chat: str, message: str, text: Styled, keyboard: Keyboard = ()
    ) -> None:
        """Edit without rate limiting; "message is not modified" is no error. Raises TelegramError."""
        try:
            await self.bot.edit_message_text(
                text.text,
                parse(chat).chat_id,
                int(message),
                entities=entities(text),
                reply_markup=inline_keyboard(keyboard),
                link_preview_options=NO_PREVIEW,
            )
        except BadRequest as error:
            if not mentions(error, "message is not modified"):
                raise

    async def put_progress(
        self,
        chat: str,
        message: str,
        text: Styled,
        wanted: Callable[[], bool],
        keyboard: Keyboard = (),
    ) -> str:
        """Replace a message of progress, or send one silently if its id is ""; return the id.

        Nothing is done, and "" stays, where it is no longer wanted when its turn
        comes. Raises ChannelError.
        """

        async def call() -> str:
            if not wanted():
                return message
            if message:
                await self.edit_text(chat, message, text, keyboard)
                return message
            return await self.send_text(chat, text, keyboard, silent=True)

        with channel_errors():
            return await self.pacer(chat).run(call, Urgency.PROGRESS)

    async def put_draft(
        self, chat: str, draft: int, text: Styled, wanted: Callable[[], bool]
    ) -> None:
        """Show a draft, if it is still wanted once the rate limit allows it. Errors are ignored."""

        async def call() -> None:
            if wanted():
                await self.bot.send_message_draft(
                    draft_id=draft,
                    text=text.text,
                    entities=entities(text),
                    api_kwargs=CAN_STOP,
                    **chat_arguments(chat),
                )

        try:
            await self.pacer(chat).run(call, Urgency.PROGRESS)
        except TelegramError as error:
            if isinstance(error, InvalidToken) and mentions(error, "not found"):  # no such method
                self.drafts = False

    async def delete(self, chat: str, message: str) -> None:
        """Delete a message. Errors are ignored."""
        await self.unless_paused(
            "delete", chat, lambda key: self.bot.delete_message(key.chat_id, int(message))
        )

    async def unless_paused(
        self, kind: str, chat: str, call: Callable[[ChatKey], Awaitable[object]]
    ) -> None:
        """Make a dispensable call, unless the chat or this kind of call is paused. Errors are
        ignored."""
        key = parse(chat)
        with suppress(TelegramError):
            await self.pacer(chat).run_unless_paused(kind, lambda: call(key))


def inline_keyboard(keyboard: Keyboard) -> InlineKeyboardMarkup | None:
    rows = [[inline_button(button) for button in row] for row in keyboard]
    return InlineKeyboardMarkup(rows) if rows else None


def inline_button(button: Button) -> InlineKeyboardButton:
    if button.page:
        return InlineKeyboardButton(button.label, web_app=WebAppInfo(button.page))
    return InlineKeyboardButton(button.label, callback_data=button.key)


@contextmanager
def channel_errors() -> Iterator[None]:
    """Convert Telegram's errors to ChannelErrors."""
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
            return ChatGone(text) if mentions(error, *NO_CHAT) else MessageRefused(text)
        case InvalidToken():
            return NotSent(text)
        case NetworkError(__cause__=cause):
            # A 5xx says that it was not done; a gateway that timed out (504) does not know.
            refused = cause is None or isinstance(cause, TelegramError)
            if (refused and "(504)" not in text) or isinstance(cause, UNSENT):
                return NotSent(text)
    return DeliveryUncertain(text)


def mentions(error: TelegramError, *texts: str) -> bool:
    return any(text in str(error).lower() for text in texts)


def reply_parameters(reply_to: str) -> ReplyParameters | None:
    """Create the parameters of a reply; `reply_to` is a message's id, or ""."""
    if not reply_to:
        return None
    return ReplyParameters(int(reply_to), allow_sending_without_reply=True)
