"""Two independent clients read every answer: aiogram's typed models, python-telegram-bot."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiogram import Bot
from aiogram import types as t
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import TelegramAPIError, TelegramMigrateToChat, TelegramRetryAfter
from telegram import InlineKeyboardButton, InlineKeyboardMarkup, ReactionTypeEmoji, Update
from telegram.error import BadRequest, Conflict, Forbidden, NetworkError, RetryAfter
from telegram.ext import (
    Application,
    CallbackQueryHandler,
    CommandHandler,
    ContextTypes,
    MessageHandler,
    filters,
)

from bot.localgram import Localgram, Person

from .conftest import TOKEN, png

Ptb = Application[Any, Any, Any, Any, Any, Any]


@pytest.fixture
async def aiogram(gram: Localgram) -> AsyncIterator[Bot]:
    session = AiohttpSession(api=TelegramAPIServer.from_base(gram.url))
    async with Bot(TOKEN, session=session) as bot:
        yield bot


def picture(name: str = "x.png") -> t.BufferedInputFile:
    return t.BufferedInputFile(png(), name)


def keys(*labels: str) -> t.InlineKeyboardMarkup:
    row = [t.InlineKeyboardButton(text=label, callback_data=label) for label in labels]
    return t.InlineKeyboardMarkup(inline_keyboard=[row])


async def test_aiogram_accepts_texts_and_gestures(aiogram: Bot, alice: Person) -> None:
    said = await alice.send("/start code")
    assert (await aiogram.get_me()).has_topics_enabled is False
    (update,) = await aiogram.get_updates()
    assert update.message is not None
    assert update.message.text == "/start code"
    sent = await aiogram.send_message(5, "hello", reply_markup=keys("A", "B"))
    assert sent.reply_markup is not None
    assert [key.callback_data for key in sent.reply_markup.inline_keyboard[0]] == ["A", "B"]
    edited = await aiogram.edit_message_text(
        "bold",
        chat_id=5,
        message_id=sent.message_id,
        entities=[t.MessageEntity(type="bold", offset=0, length=4)],
    )
    assert isinstance(edited, t.Message)
    assert edited.html_text == "<b>bold</b>"
    assert await aiogram.send_message_draft(5, 1, text="x")
    assert await aiogram.send_chat_action(5, "typing")
    assert await aiogram.set_message_reaction(5, said.id, [t.ReactionTypeEmoji(emoji="👀")])
    assert await aiogram.delete_message(5, sent.message_id)
    assert (await aiogram.copy_message(5, 5, said.id)).message_id
    assert (await aiogram.forward_message(5, 5, said.id)).forward_origin is not None


async def test_aiogram_accepts_files(aiogram: Bot, alice: Person) -> None:
    photo = await aiogram.send_photo(5, picture(), caption="c")
    assert photo.photo is not None
    assert (photo.photo[-1].width, photo.photo[-1].height) == (4, 3)
    file = await aiogram.get_file(photo.photo[-1].file_id)
    fetched = await aiogram.download(file)
    assert fetched is not None
    assert fetched.read() == png()
    text = t.BufferedInputFile(b"text", "a.txt")
    document = await aiogram.send_document(5, text)
    assert document.document is not None
    assert (document.document.file_name, document.document.mime_type) == ("a.txt", "text/plain")
    album = await aiogram.send_media_group(
        5, [t.InputMediaPhoto(media=picture()), t.InputMediaPhoto(media=photo.photo[0].file_id)]
    )
    assert len({message.media_group_id for message in album}) == 1
    voice = await aiogram.send_voice(5, t.BufferedInputFile(b"OggS", "v.ogg"), duration=3)
    assert voice.voice is not None
    assert voice.voice.duration == 3
    await aiogram.send_audio(5, t.BufferedInputFile(b"x", "a.mp3"), title="T")
    await aiogram.send_video(5, t.BufferedInputFile(b"x", "v.mp4"))
    await aiogram.send_animation(5, t.BufferedInputFile(b"x", "a.gif"))
    await aiogram.send_video_note(5, t.BufferedInputFile(b"x", "n.mp4"))
    await aiogram.send_sticker(5, t.BufferedInputFile(b"x", "s.webp"))
    media = t.InputMediaDocument(media=t.BufferedInputFile(b"new", "b.txt"), caption="now")
    changed = await aiogram.edit_message_media(media, chat_id=5, message_id=document.message_id)
    assert isinstance(changed, t.Message)
    assert changed.caption == "now"
    changed = await aiogram.edit_message_caption(
        chat_id=5, message_id=document.message_id, caption="then"
    )
    assert isinstance(changed, t.Message)
    assert changed.caption == "then"


async def test_aiogram_accepts_every_kind_of_update(
    aiogram: Bot, gram: Localgram, alice: Person
) -> None:
    kinds = ["message", "edited_message", "callback_query", "message_reaction", "my_chat_member"]
    kinds.append("stopped_message_generation")
    await aiogram.get_updates(allowed_updates=kinds)
    said = await alice.send("one")
    await alice.edit(said, "two")
    await alice.react(said, "👍")
    await aiogram.send_message(5, "x", reply_markup=keys("A"))
    await alice.press(await alice.next_message(), "A")
    await aiogram.send_message_draft(5, 1, text="x", can_stop=True)
    await alice.stop_draft()
    await alice.block()
    await alice.unblock()
    for kind in ("photo", "document", "voice", "audio", "video", "video_note", "animation"):
        await alice.send_file(kind, png())
    await alice.send_album([png(), png()], caption="c")
    await alice.forward(said)
    gram.migrate(gram.group("Friends", alice))
    forum = gram.group("Lab", alice, forum=True, admin=True)
    topic = await alice.create_topic("Work", chat=forum)
    await alice.send("x", chat=forum, thread=topic.thread)
    updates = await aiogram.get_updates()
    assert {update.event_type for update in updates} == set(kinds)
    assert len(updates) == 23
    press = next(update.callback_query for update in updates if update.callback_query)
    assert (press.data, press.from_user.id) == ("A", 5)
    assert isinstance(press.message, t.Message)
    assert await aiogram.answer_callback_query(press.id, "ok")


async def test_aiogram_accepts_chats_and_the_profile(
    aiogram: Bot, gram: Localgram, alice: Person
) -> None:
    forum = gram.group("Lab", alice, forum=True, admin=True)
    assert (await aiogram.get_chat(5)).first_name == "Alice"
    assert (await aiogram.get_chat(forum.id)).is_forum
    assert (await aiogram.get_chat_member(forum.id, 5)).status == "creator"
    assert (await aiogram.get_chat_member(forum.id, 777)).status == "administrator"
    assert len(await aiogram.get_chat_administrators(forum.id)) == 2
    assert await aiogram.get_chat_member_count(forum.id) == 2
    assert (await aiogram.create_forum_topic(forum.id, "Work")).name == "Work"
    commands = [t.BotCommand(command="new", description="New")]
    assert await aiogram.set_my_commands(commands, scope=t.BotCommandScopeChat(chat_id=5))
    (kept,) = await aiogram.get_my_commands(scope=t.BotCommandScopeChat(chat_id=5))
    assert (kept.command, kept.description) == ("new", "New")
    assert await aiogram.set_my_description("d")
    assert (await aiogram.get_my_description()).description == "d"
    assert (await aiogram.get_my_short_description()).short_description == ""
    assert await aiogram.set_chat_menu_button(menu_button=t.MenuButtonCommands())
    assert (await aiogram.get_chat_menu_button()).type == "commands"
    assert (await aiogram.get_webhook_info()).url == ""
    assert (await aiogram.get_user_profile_photos(5)).total_count == 0
    assert await aiogram.pin_chat_message(5, (await alice.send("x")).id)


async def test_aiogram_sorts_the_errors(aiogram: Bot, gram: Localgram, alice: Person) -> None:
    group = gram.group("Friends", alice)
    new = gram.migrate(group)
    with pytest.raises(TelegramMigrateToChat) as moved:
        await aiogram.send_message(group.id, "x")
    assert moved.value.migrate_to_chat_id == new.id
    gram.fault("sendMessage", "flood", seconds=9)
    with pytest.raises(TelegramRetryAfter) as flooded:
        await aiogram.send_message(5, "x")
    assert flooded.value.retry_after == 9
    with pytest.raises(TelegramAPIError, match="chat not found"):
        await aiogram.send_message(404, "x")


async def greet(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    assert update.message is not None
    await update.message.set_reaction(ReactionTypeEmoji("👀"))
    await update.message.reply_chat_action("typing")
    await context.bot.send_message_draft(update.message.chat_id, 1, "hel")
    markup = InlineKeyboardMarkup([[InlineKeyboardButton("Allow once", callback_data="a")]])
    await update.message.reply_text("hello", reply_markup=markup)


async def decide(update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
    assert update.callback_query is not None
    await update.callback_query.answer("noted")
    await update.callback_query.edit_message_text("allowed")


async def keep(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    assert update.message is not None
    assert update.message.document is not None
    file = await update.message.document.get_file()
    content = bytes(await file.download_as_bytearray())
    await update.message.reply_document(content[::-1], filename="back.txt")


@pytest.fixture
async def ptb(gram: Localgram) -> AsyncIterator[Ptb]:
    builder = Application.builder().token(TOKEN).base_url(f"{gram.url}/bot")
    app: Ptb = builder.base_file_url(f"{gram.url}/file/bot").build()
    app.add_handler(CommandHandler("start", greet))
    app.add_handler(CallbackQueryHandler(decide))
    app.add_handler(MessageHandler(filters.Document.ALL, keep))
    async with app:
        await app.start()
        yield app
        await app.stop()


async def test_an_application_of_ptb_converses(gram: Localgram, ptb: Ptb, alice: Person) -> None:
    assert ptb.updater is not None
    await ptb.updater.start_polling(poll_interval=0.0, timeout=10)
    said = await alice.send("/start")
    hello = await alice.next_message()
    assert (hello.text, hello.buttons) == ("hello", ["Allow once"])
    query = await alice.press(hello, "Allow once")
    assert (await alice.answer(query)).text == "noted"
    assert (await alice.until(hello, lambda now: now.text == "allowed")).buttons == []
    await alice.until(said, lambda now: now.reactions == ((777, "👀"),))
    await alice.send_file("document", b"abc", "there.txt")
    back = await alice.next_message()
    assert back.media is not None
    assert (back.media.file.name, back.media.file.content) == ("back.txt", b"cba")
    assert [made.method for made in gram.calls][:5] == [
        "getMe",
        "deleteWebhook",
        "setMessageReaction",
        "sendChatAction",
        "sendMessageDraft",
    ]
    await ptb.updater.stop()
    assert gram.world.updates.pending() == []


async def test_ptb_sorts_the_errors(gram: Localgram, ptb: Ptb, alice: Person) -> None:
    async def refused(kind: type[Exception]) -> str:
        with pytest.raises(kind) as error:
            await ptb.bot.send_message(5, "x")
        return str(error.value)

    gram.fault("sendMessage", "flood", seconds=4)
    # The second wording is the library's once the bot has been imported into the process.
    assert re.search("in (4 seconds|0:00:04)", await refused(RetryAfter))
    gram.fault("sendMessage", "bad_gateway")
    await refused(NetworkError)
    gram.fault("sendMessage", "execute_then_drop")
    await refused(NetworkError)
    gram.fault("sendMessage", "truncate")
    await refused(Exception)
    assert [message.text for message in alice.messages()] == ["x", "x"]
    await alice.block()
    assert await refused(Forbidden) == "Forbidden: bot was blocked by the user"
    with pytest.raises(BadRequest, match="Chat not found"):
        await ptb.bot.send_message(404, "x")


async def test_ptb_hears_of_a_second_poller(gram: Localgram, ptb: Ptb, aiogram: Bot) -> None:
    polling = asyncio.create_task(ptb.bot.get_updates(timeout=10))
    await gram.until(lambda: gram.world.updates.waiting or None)
    newer = asyncio.create_task(aiogram.get_updates(timeout=10))
    with pytest.raises(Conflict, match="only one bot instance"):
        await polling
    newer.cancel()
