"""The one table of python-telegram-bot's handlers, and the short functions that it names.

Each turns an update into what the handlers of any app (bot.commands) work with.
"""

import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from telegram import (
    Bot,
    BotCommand,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
    CallbackQuery,
    ChatMember,
    Message,
    ReactionTypeEmoji,
    Update,
    User,
)
from telegram.error import TelegramError
from telegram.ext import (
    BaseHandler,
    BusinessConnectionHandler,
    CallbackQueryHandler,
    ChatMemberHandler,
    CommandHandler,
    ContextTypes,
    InlineQueryHandler,
    MessageHandler,
    MessageReactionHandler,
    TypeHandler,
    filters,
)

from agent.language import CATALOGUES, catalogue, languages, speaking
from agent.store.errors import StoreError
from bot import intake
from bot.access import Sender
from bot.channel import FEEDBACK, TONIGHT, ChannelError, OutgoingMessage, send
from bot.commands import jobs, people
from bot.commands.context import ButtonPress, CommandCall, HandlerContext
from bot.commands.table import (
    COMMANDS,
    HIDDEN,
    Command,
    command_named,
    handle_press,
    is_known,
    run_command,
    show_press_result,
)
from bot.telegram.incoming_message import (
    COMMAND,
    addressed,
    addressing_sender,
    chat_of,
    inbox_row,
    on_message,
    sender_of,
)
from bot.telegram.message_calls import ChatKey
from bot.texts import TEXTS, Texts

# The press on the Stop button under a draft (Bot API 10.3), which python-telegram-bot does not know.
STOPPED = "stopped_message_generation"
UPDATES = [
    "message",
    "edited_message",
    "callback_query",
    "my_chat_member",
    "message_reaction",
    "business_connection",
    "inline_query",
    "guest_message",
    STOPPED,
]
REGISTERED = "telegram.registered"  # a digest of what was registered in other languages
ANSWER_SECONDS = 5.0  # Telegram forgets a press within seconds
NOT_THERE = (ChatMember.BANNED, ChatMember.LEFT)

Handler = Callable[[HandlerContext, Update], Awaitable[None]]


def handlers(context: HandlerContext) -> Sequence[BaseHandler[Update, Any, None]]:
    """All handlers, of which the first that matches handles an update."""
    new, edited = filters.UpdateType.MESSAGE, filters.UpdateType.EDITED_MESSAGE

    def bound(handler: Handler) -> Callable[..., Coroutine[Any, Any, None]]:
        async def callback(update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
            user = update.effective_user
            with context.speaking_to((user and user.language_code) or ""):
                await handler(context, update)

        return callback

    return [
        CallbackQueryHandler(bound(on_press)),
        ChatMemberHandler(bound(on_membership), ChatMemberHandler.MY_CHAT_MEMBER),
        MessageHandler(new & filters.StatusUpdate.MIGRATE, bound(on_migration)),
        *(CommandHandler(c.name, bound(on_command(c)), new) for c in (*COMMANDS, *HIDDEN)),
        MessageHandler(new & filters.COMMAND, bound(on_unknown_command)),
        MessageHandler(new & ~filters.StatusUpdate.ALL, bound(on_message)),
        MessageHandler(edited, bound(on_edit)),
        MessageReactionHandler(bound(on_reaction)),
        BusinessConnectionHandler(bound(on_business)),
        InlineQueryHandler(bound(on_inline)),
        MessageHandler(filters.UpdateType.GUEST_MESSAGE, bound(on_guest_message)),
        TypeHandler(Update, bound(on_stop_button)),
    ]


async def on_edit(context: HandlerContext, update: Update) -> None:
    """A message was edited: it replaces the one that still waits, else it is a correction of its own."""
    message = update.edited_message
    assert message
    if is_command(message, message.get_bot().bot):
        return
    sender = addressing_sender(context, message)
    if sender is None or (level := context.access.level(sender)) == "stranger":
        return
    words = message.text if message.text is not None else message.caption
    if words is not None and await intake.may_write(context, str(chat_of(message)), sender, level):
        await context.services.chats.submit(await inbox_row(context, update, message, level))


def on_command(command: Command) -> Handler:
    async def handler(context: HandlerContext, update: Update) -> None:
        message = update.message
        if message and not is_command(message, message.get_bot().bot):
            await on_message(context, update)  # /status.txt
        elif (
            message
            and (call := command_call(context, update))
            and await run_command(context, command, call)
        ):
            row = await inbox_row(context, update, message, call.level)
            said = row.text.split(maxsplit=1)[1]
            await intake.receive(context, replace(row, text=said))

    return handler


async def on_unknown_command(context: HandlerContext, update: Update) -> None:
    """Answer an unknown command with help, unless it is another bot's, or text such as "/home is full"."""
    message, call = update.message, command_call(context, update)
    if message and not is_command(message, message.get_bot().bot):
        await on_message(context, update)
        return
    if call is None or message is None or message.text is None:
        return
    _, _, name = message.text.split()[0].partition("@")
    mine = name.lower() == (message.get_bot().bot.username or "").lower()
    if mine or (call.sender.group is None and not name):
        await run_command(context, command_named("help"), call)


def is_command(message: Message, me: User) -> bool:
    """Whether a message is a known command, or a single word that looks like one."""
    found = COMMAND.match(message.text or "")
    if found is None:
        return False
    name, bot, argument = found.groups()
    if bot or not argument or is_known(name.lower(), argument):
        return True
    return message.chat.id < 0 and not addressed(message, me)  # another bot's


async def on_press(context: HandlerContext, update: Update) -> None:
    """Decide at once; answer the press and edit its message in the background."""
    query = update.callback_query
    assert query
    if not isinstance(query.message, Message):  # too old to be known
        context.start(answer(query, TEXTS.expired))
        return
    kind, _, argument = (query.data or "").partition(":")
    sender = sender_of(query.message, query.from_user)
    press = ButtonPress(
        str(chat_of(query.message)),
        str(query.message.message_id),
        sender,
        context.access.level(sender),
        argument,
    )
    result = await handle_press(context, kind, press)

    async def show() -> None:
        await answer(query, result.toast)
        await show_press_result(context, press, result)

    context.start(show())


async def on_reaction(context: HandlerContext, update: Update) -> None:
    """Store 👍 or 👎 of who asked on an answer with its turn; taking it back clears that."""
    change = update.message_reaction
    if change is None or change.user is None:
        return
    group = str(change.chat.id) if change.chat.id < 0 else None
    if context.access.level(Sender(str(change.user.id), "", group)) == "stranger":
        return
    emoji = [each.emoji for each in change.new_reaction if isinstance(each, ReactionTypeEmoji)]
    liked = next((FEEDBACK[each] for each in emoji if each in FEEDBACK), None)
    chat, message, user = str(ChatKey(change.chat.id)), str(change.message_id), str(change.user.id)
    await context.store.turns.judge(chat, message, user, liked)
    if any(each in TONIGHT for each in emoji):
        await jobs.react_tonight(context, chat, message, user)


async def on_business(context: HandlerContext, update: Update) -> None:
    """Somebody connected the bot to their business account: tell them that it does not answer there."""
    connection = update.business_connection
    assert connection
    level = context.access.level(Sender(str(connection.user.id), connection.user.full_name))
    if connection.is_enabled and level != "stranger":
        chat = str(ChatKey(connection.user_chat_id))
        await context.send(chat, TEXTS.no_business)


async def on_inline(context: HandlerContext, update: Update) -> None:
    """ "@bot disk?" in another chat: facts for an owner, no answer for anybody else."""
    query = update.inline_query
    assert query
    if str(query.from_user.id) in context.access.owners:
        from bot.telegram.inline import offer_facts  # few use it

        context.start(offer_facts(context, query))


async def on_guest_message(context: HandlerContext, update: Update) -> None:
    """The bot is mentioned in a chat that it is not in: one line there, no answer for strangers."""
    message = update.guest_message
    if message is None or message.from_user is None or message.guest_query_id is None:
        return
    sender = Sender(str(message.from_user.id), message.from_user.full_name)
    if context.access.level(sender) != "stranger":
        from bot.telegram.inline import decline_guest  # few use it

        query = message.guest_query_id
        context.start(decline_guest(message.get_bot(), query, TEXTS.no_guest))


async def on_stop_button(context: HandlerContext, update: Update) -> None:
    if press := update.api_kwargs.get(STOPPED):
        chat = ChatKey(press["chat"]["id"], press.get("message_thread_id"))
        if context.access.level(Sender(str(chat.chat_id), "")) != "stranger":
            await context.services.chats.stop(str(chat))


async def on_membership(context: HandlerContext, update: Update) -> None:
    """The bot's membership changed: a chat that removed it is blocked until it is let in again.

    An owner who adds the bot to a group is asked whether everybody there may talk to it.
    """
    change = update.my_chat_member
    assert change
    chat = str(ChatKey(change.chat.id))
    out = change.new_chat_member.status in NOT_THERE
    await context.store.chats.set_blocked(chat, blocked=out)
    if out:
        return
    context.store.outbox.wake()  # what waited for this chat may go out
    if change.chat.id < 0 and change.old_chat_member.status in NOT_THERE:
        by = str(change.from_user.id)
        await people.offer_to_let_in_group(context, chat, str(change.chat.id), by)


async def on_migration(context: HandlerContext, update: Update) -> None:
    """A group became a supergroup, with another id; a message in each of the two says so."""
    message = update.message
    assert message
    old = message.migrate_from_chat_id or message.chat.id
    new = message.migrate_to_chat_id or message.chat.id
    await context.store.chats.rename(str(ChatKey(old)), str(ChatKey(new)))
    if str(old) in context.access.members:
        await context.access.put(str(new), "member", message.chat.title or "", str(old))


def on_wait(context: HandlerContext, update: Update, error: StoreError) -> None:
    """Tell a person who may write that their message waits; sent directly, as the outbox cannot be written
    either."""
    chat, user = update.effective_chat, update.effective_user
    if chat is None or user is None:
        return
    sender = Sender(str(user.id), user.full_name, str(chat.id) if chat.id < 0 else None)
    if context.access.level(sender) != "stranger":
        key = str(ChatKey(chat.id))
        notice = OutgoingMessage(TEXTS.not_kept.format(why=error))

        async def tell() -> None:
            with suppress(ChannelError):
                await send(context.channel, key, notice)

        context.start(tell())


async def register_commands(context: HandlerContext, bot: Bot) -> None:
    """Register in every language the commands to list and the description that a new chat shows. Done again
    only when a text or the owners change. Errors are ignored."""
    owners = sorted(context.access.owners)
    if context.language:
        with speaking(context.language), suppress(TelegramError):
            await register_texts(context, bot, "", owners)
        return
    with suppress(TelegramError):
        await register_texts(context, bot, "", owners)
        digest = hashlib.sha256(f"{owners} {context.demo} {Texts()}".encode())
        for code in languages()[1:]:
            digest.update((CATALOGUES / f"{code}.po").read_bytes())
        if await context.store.key_values.get(REGISTERED, str) == digest.hexdigest():
            return
        for code in languages()[1:]:
            with speaking(code):
                await register_texts(context, bot, code, owners)
            catalogue.cache_clear()  # few of them will be spoken
        await context.store.key_values.put(REGISTERED, digest.hexdigest())


async def register_texts(
    context: HandlerContext, bot: Bot, code: str, owners: Sequence[str]
) -> None:
    """Register commands and descriptions in the language spoken, for users of the language `code`; "" is
    everybody whose language has none of its own. Raises TelegramError."""
    about, texts = TEXTS.description_demo if context.demo else TEXTS.description, TEXTS.commands

    def listed(commands: Sequence[Command]) -> list[BotCommand]:
        return [BotCommand(c.name, texts[c.name]) for c in commands]

    private = [c for c in COMMANDS if c.menu != "nowhere"]
    members = [c for c in private if c.level == "member"]
    everywhere = [c for c in COMMANDS if c.menu == "everywhere"]
    spoken = code or None
    await bot.set_my_commands(listed(members), BotCommandScopeAllPrivateChats(), spoken)
    await bot.set_my_commands(listed(everywhere), BotCommandScopeAllGroupChats(), spoken)
    await bot.set_my_description(about, spoken)
    await bot.set_my_short_description(TEXTS.short_description, spoken)
    for owner in owners:
        await bot.set_my_commands(listed(private), BotCommandScopeChat(int(owner)), spoken)


def command_call(context: HandlerContext, update: Update) -> CommandCall | None:
    """The command of an update; None if it has no sender."""
    message = update.message
    if message is None or message.from_user is None:
        return None
    sender = sender_of(message, message.from_user)
    argument = "".join((message.text or "").split(maxsplit=1)[1:])
    return CommandCall(str(chat_of(message)), sender, context.access.level(sender), argument)


async def answer(query: CallbackQuery, toast: str) -> None:
    with suppress(TelegramError):  # too late, or answered already
        await query.answer(toast[:200] or None, read_timeout=ANSWER_SECONDS)
