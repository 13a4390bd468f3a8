"""Bot API calls on messages: chats by their key, styled texts, each call at its chat's pace."""

from collections.abc import Awaitable, Callable

from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    ReplyParameters,
)
from telegram.error import BadRequest, TelegramError

from bot.channel import Keyboard
from bot.telegram.chat_key import ChatKey, parse
from bot.telegram.pacer import Pacer, Pacers, Urgency
from bot.telegram.send_errors import channel_errors, is_unchanged, is_unknown_method
from bot.telegram.styled import Styled, entities

NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
# Bot API 10.3: a button under the draft; its press comes as `stopped_message_generation`.
CAN_STOP = {"can_stop": True}


class MessageCalls:
    """`drafts` tells whether the server knows drafts; an older one does not."""

    def __init__(self, bot: Bot, pacers: Pacers) -> None:
        self.bot = bot
        self._pacers = pacers
        self.drafts = True

    def pacer(self, chat: str) -> Pacer:
        return self._pacers.of(parse(chat).chat_id)

    async def send_text(
        self,
        chat: str,
        text: Styled,
        keyboard: Keyboard = (),
        *,
        silent: bool = False,
        reply_to: str = "",
    ) -> str:
        """The new message's id. Raises TelegramError; not paced: the caller holds a permit."""
        key = parse(chat)
        sent = await self.bot.send_message(
            key.chat_id,
            text.text,
            entities=entities(text),
            message_thread_id=key.thread_id,
            disable_notification=silent,
            reply_parameters=ReplyParameters(int(reply_to), allow_sending_without_reply=True)
            if reply_to
            else None,
            reply_markup=inline_keyboard(keyboard),
            link_preview_options=NO_PREVIEW,
        )
        return str(sent.message_id)

    async def edit_text(
        self, chat: str, message: str, text: Styled, keyboard: Keyboard = ()
    ) -> None:
        """Not paced. Raises TelegramError; an edit that changes nothing is none."""
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
            if not is_unchanged(error):
                raise

    async def put_progress(
        self, chat: str, message: str, text: Styled, wanted: Callable[[], bool]
    ) -> str:
        """Replace a message of progress, or send one silently where its id is ""; the id.

        Nothing is done, and "" stays, where it is no longer wanted when its turn
        comes. Raises ChannelError.
        """

        async def call() -> str:
            if not wanted():
                return message
            if message:
                await self.edit_text(chat, message, text)
                return message
            return await self.send_text(chat, text, silent=True)

        with channel_errors():
            return await self.pacer(chat).run(call, Urgency.PROGRESS)

    async def put_draft(
        self, chat: str, draft: int, text: Styled, wanted: Callable[[], bool]
    ) -> None:
        """Show a draft where it is still wanted when its turn comes. Errors are ignored."""
        key = parse(chat)

        async def call() -> None:
            if wanted():
                await self.bot.send_message_draft(
                    key.chat_id,
                    draft,
                    text.text,
                    key.thread_id,
                    entities=entities(text),
                    api_kwargs=CAN_STOP,
                )

        try:
            await self.pacer(chat).run(call, Urgency.PROGRESS)
        except TelegramError as error:
            self.drafts = self.drafts and not is_unknown_method(error)

    async def delete(self, chat: str, message: str) -> None:
        """Errors are ignored."""
        await self.unless_paused(
            chat, lambda key: self.bot.delete_message(key.chat_id, int(message))
        )

    async def unless_paused(self, chat: str, call: Callable[[ChatKey], Awaitable[object]]) -> None:
        """A call on which nothing depends: left out while the chat is paused, its errors ignored."""
        key = parse(chat)
        try:
            await self.pacer(chat).run_unless_paused(lambda: call(key))
        except TelegramError:
            return


def inline_keyboard(keyboard: Keyboard) -> InlineKeyboardMarkup | None:
    rows = [[InlineKeyboardButton(b.label, callback_data=b.key) for b in row] for row in keyboard]
    return InlineKeyboardMarkup(rows) if rows else None
