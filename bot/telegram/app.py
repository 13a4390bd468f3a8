"""The bot as a whole: python-telegram-bot's application inside our own loop.

async with telegram_bot(config, store) as bot:
    chats = Chats(..., Service(frozenset({SOURCE}), compose=bot.compose), bot.replies)
    async with chats:
        await bot.serve(Services(chats, ...))      # until cancelled
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, BinaryIO

from telegram import Update
from telegram.error import InvalidToken, TelegramError
from telegram.ext import (
    Application,
    ApplicationBuilder,
    BaseHandler,
    CallbackQueryHandler,
    ChatMemberHandler,
    CommandHandler,
    ContextTypes,
    MessageHandler,
    TypeHandler,
    filters,
)

from agent.errors import ToolError
from agent.sandbox.sandbox import Sandbox
from agent.store import Store
from agent.turn.journal import TurnReply
from bot.channel import ChannelError, Enclosed, OutgoingMessage
from bot.delivery import AGAIN, Delivery
from bot.replies import Replies
from bot.telegram import (
    approvals,
    commands,
    continue_button,
    intake,
    members,
    memory,
    models,
    pairing,
    planning,
    status_commands,
)
from bot.telegram.access import SOURCE, Access
from bot.telegram.buttons import Handler, Outcome, Press, pressed
from bot.telegram.channel import TelegramChannel
from bot.telegram.chat_key import PREFIX
from bot.telegram.config import TelegramConfig
from bot.telegram.connection import Connection
from bot.telegram.handler_context import HandlerContext, Services
from bot.telegram.live_message_store import LiveMessageStore
from bot.telegram.media import Media
from bot.telegram.pacer import Pacers
from bot.telegram.polling import Poll, Poller, Take, only_poller
from bot.telegram.update_gate import Arrivals
from bot.telegram.webhook import Webhook
from bot.texts import Texts, texts

__all__ = ["SOURCE", "TelegramBot", "TelegramUnavailable", "telegram_bot"]

log = logging.getLogger(__name__)

POLL_ANSWER_SECONDS = 5.0  # beyond the time that a poll may wait
UPDATES = ["message", "edited_message", "callback_query", "my_chat_member", commands.STOPPED]
Callback = Callable[[Update, ContextTypes.DEFAULT_TYPE], Coroutine[Any, Any, None]]


class TelegramUnavailable(Exception):
    """The bot cannot run; `str` is one plain sentence, `refused` whether the token is wrong."""

    def __init__(self, sentence: str, *, refused: bool = False) -> None:
        super().__init__(sentence)
        self.refused = refused


def table(room: HandlerContext) -> Sequence[BaseHandler[Update, Any, None]]:
    """Every kind of update and who deals with it; the first that matches does."""
    new, edited = filters.UpdateType.MESSAGE, filters.UpdateType.EDITED_MESSAGE
    return [
        CallbackQueryHandler(_with(room, partial(pressed, BUTTONS))),
        ChatMemberHandler(_with(room, members.changed), ChatMemberHandler.MY_CHAT_MEMBER),
        MessageHandler(new & filters.StatusUpdate.MIGRATE, _with(room, members.migrated)),
        *(
            CommandHandler(c.name, _with(room, commands.handler(c)), new)
            for c in (*commands.COMMANDS, *commands.HIDDEN)
        ),
        MessageHandler(new & filters.COMMAND, _with(room, commands.unknown)),
        MessageHandler(new & ~filters.StatusUpdate.ALL, _with(room, intake.message)),
        MessageHandler(edited & ~filters.COMMAND, _with(room, intake.edited)),
        TypeHandler(Update, _with(room, commands.stopped)),
    ]


async def press_again(room: HandlerContext, press: Press) -> Outcome:
    """[Show again] under the notice of a text in doubt."""
    if not await room.delivery.again(int(press.argument)):
        return Outcome(room.texts.not_in_doubt)
    return Outcome("", room.texts.shown_again)


BUTTONS: dict[str, Handler] = {
    approvals.KIND: approvals.decide,
    pairing.LET_IN: pairing.let_in,
    pairing.KEEP_OUT: pairing.keep_out,
    memory.NOTE: memory.press_note,
    memory.RESUME: memory.press_resume,
    memory.FORGET: memory.press_forget,
    planning.JOB: planning.press,
    status_commands.STATUS: status_commands.press_status,
    models.MODEL: models.press_model,
    continue_button.GO_ON: continue_button.press,
    status_commands.SETTING: status_commands.press_setting,
    status_commands.REVOKE: status_commands.press_revoke,
    intake.HELD: intake.press_backlog,
    AGAIN: press_again,
}


class TelegramBot:
    """`channel` and `replies` are what the agent is given; `serve` runs until it is cancelled."""

    def __init__(self, config: TelegramConfig, store: Store) -> None:
        self.config = config
        self.texts: Texts = texts(config.language)
        self.poll = Poll()
        self.application = _application(config)
        self.traces = LiveMessageStore(store.key_values, self.texts)
        self.channel = TelegramChannel(
            self.application.bot, Pacers(), self.traces, local=config.own_server
        )
        self.replies = Replies(self.channel, self.texts)
        self.delivery = Delivery(store, self.channel, self.texts, PREFIX, self.replies.final)
        self.door = Access(store.people, config.owners, config.allow)
        self.ask = approvals.Asking(self.channel, self.door, self.texts, store.approvals)
        self._store = store
        self._room: HandlerContext | None = None

    @property
    def username(self) -> str | None:
        return self._room.me.username if self._room else None

    def compose(self, reply: TurnReply) -> Sequence[str]:
        """A finished turn as outbox payloads (agent.turn.journal.Compose)."""
        refs = [answered.ref for answered in reply.answers if answered.ref]
        rows = continue_button.rows(reply, self.texts)
        return [OutgoingMessage(reply.text, rows, reply_to=refs[-1] if refs else "").written()]

    def courier(self, chat: str) -> "Courier":
        """What sends files to that chat (agent.tools.context.Courier)."""
        return Courier(self.channel, chat)

    def media(
        self, sandbox: Callable[[str], Awaitable[Sandbox]], sees: Callable[[], Awaitable[bool]]
    ) -> Media:
        """What fetches the files of messages; its `fetch` is agent.chats.assignment.Service's."""
        limit = self.channel.limits(PREFIX + "0").download
        return Media(
            self.application.bot, self._store, sandbox, sees, limit, self.config.transcribe_url
        )

    async def serve(self, services: Services) -> None:
        """Take updates and deliver what waits. Raises TelegramUnavailable."""
        room = self._room = await self._begin(services)
        self.replies.decided = partial(self._decided, room)
        self.application.add_handlers(table(room))
        take = Arrivals(self.application).take
        async with room.crew, asyncio.TaskGroup() as group:
            group.create_task(self.delivery.run())
            group.create_task(self.traces.end(self.channel))
            group.create_task(self._updates(room, take).run())
            group.create_task(commands.register(room))

    async def _begin(self, services: Services) -> HandlerContext:
        await self.door.remember()
        await _reach(self.application, self.config)
        return HandlerContext(
            self.config,
            self._store,
            self.application.bot,
            self.channel,
            self.door,
            self.delivery,
            self.texts,
            services,
            self.application.bot.bot,
            self._store.clock(),
            self.poll.sentence,
        )

    def _updates(self, room: HandlerContext, take: Take) -> Poller | Webhook:
        config = self.config
        if not config.webhook_url:
            return Poller(room.bot, self.poll, take, UPDATES)
        url, listen = config.webhook_url, config.webhook_listen
        return Webhook(room.bot, self.poll, take, UPDATES, url, listen)

    def _decided(self, room: HandlerContext, id: str) -> None:
        room.spawn(approvals.close(room, id))


def _application(config: TelegramConfig) -> Application[Any, Any, Any, Any, Any, Any]:
    return (
        ApplicationBuilder()
        .token(config.token)
        .base_url(f"{config.root}/bot")
        .base_file_url(f"{config.root}/file/bot")
        .request(Connection(config.root, config.answer_seconds))
        .get_updates_request(Connection(config.root, POLL_ANSWER_SECONDS))
        .updater(None)
        .build()
    )


@asynccontextmanager
async def telegram_bot(config: TelegramConfig, store: Store) -> AsyncIterator[TelegramBot]:
    """The bot, not yet listening. Raises TelegramUnavailable where another process polls this token."""
    with only_poller(config.lock):
        bot = TelegramBot(config, store)
        await bot.traces.recall()
        async with bot.replies.crew:
            try:
                yield bot
            finally:
                await _quietly(bot.application.shutdown())
                await _quietly(bot.application.bot.shutdown())  # where only the bot had begun


async def _reach(
    application: Application[Any, Any, Any, Any, Any, Any], config: TelegramConfig
) -> None:
    """Find the Bot API server and learn who we are; the network may come up a little later."""
    pause, reason = 0.5, "no answer"
    try:
        async with asyncio.timeout(config.start_seconds):
            while True:
                try:
                    await application.initialize()
                    return
                except InvalidToken:
                    raise TelegramUnavailable(
                        "Telegram does not know this bot token; see @BotFather.", refused=True
                    ) from None
                except TelegramError as error:
                    reason = str(error)
                await asyncio.sleep(pause)
                pause *= 1.5
    except TimeoutError:
        raise TelegramUnavailable(
            f"The Bot API server at {config.root} cannot be reached ({reason})."
        ) from None


async def _quietly(work: Awaitable[object]) -> None:
    with suppress(RuntimeError, TelegramError):  # not started, or not reachable any more
        await work


def _with(
    room: HandlerContext, handler: Callable[[HandlerContext, Update], Awaitable[None]]
) -> Callback:
    async def callback(update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
        await handler(room, update)

    return callback


class Courier:
    """agent.tools.context.Courier: a file to one chat."""

    def __init__(self, channel: TelegramChannel, chat: str) -> None:
        self._channel = channel
        self._chat = chat

    async def send_file(self, file: BinaryIO, name: str, caption: str) -> None:
        await self.send_album([(file, name)], caption)

    async def send_album(self, files: Sequence[Enclosed], caption: str) -> None:
        limit = self._channel.limits(self._chat).upload
        for file, name in files:
            if (size := file.seek(0, 2)) > limit:
                raise ToolError(
                    f"{name} has {size:,} bytes; Telegram takes {limit:,} at most. Split or compress it."
                )
        try:
            await self._channel.album(self._chat, files, caption)
        except ChannelError as error:
            names = ", ".join(name for _, name in files)
            raise ToolError(f"{names} was not sent: {error}") from error
