"""Conversations of a chat: /new, /resume, /stop, /retry, /export, and the [Continue] button."""

import asyncio
from io import BytesIO

from agent.memory.notes import ChatMemory, as_json, markdown
from agent.store import Incoming
from agent.turn.journal import TurnReply
from bot.channel import Button, ChannelError, Keyboard
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult
from bot.texts import Texts

RESUME = "conv"
RESUMABLE = 8  # conversations that are offered
TITLE_CHARACTERS = 60
CONTINUE = "onward"
CONTINUABLE = frozenset({"tool_limit", "loop"})  # reasons for which a turn ended at a limit


async def new(context: HandlerContext, call: CommandCall) -> None:
    await context.services.chats.stop(call.chat)
    await context.store.chats.new_conversation(call.chat)
    await context.send(call.chat, context.texts.new)


async def stop(context: HandlerContext, call: CommandCall) -> None:
    if not await context.services.chats.stop(call.chat):
        await context.send(call.chat, context.texts.nothing_runs)


async def press_answer_now(context: HandlerContext, press: ButtonPress) -> PressResult:
    """[Answer now] while the model thinks."""
    heard = context.services.chats.answer_now(press.chat)
    return PressResult(context.texts.answers_now if heard else context.texts.expired)


async def retry(context: HandlerContext, call: CommandCall) -> None:
    if not await context.services.chats.retry(call.chat):
        await context.send(call.chat, context.texts.nothing_to_retry)


async def resume(context: HandlerContext, call: CommandCall) -> None:
    """The conversations used last, to choose from."""
    found = await context.store.chats.conversations(call.chat, RESUMABLE + 1)
    keyboard = []
    for one in [c for c in found if not c.current][:RESUMABLE]:
        day = f"{await context.local_time(call.chat, one.active_at):%Y-%m-%d}"
        label = f"{day} · {one.title or '…'}"[:TITLE_CHARACTERS]
        keyboard.append([Button(f"{RESUME}:{one.id}", label)])
    text = context.texts.resume if keyboard else context.texts.no_conversations
    await context.send(call.chat, text, keyboard)


async def press_resume(context: HandlerContext, press: ButtonPress) -> PressResult:
    chosen = int(press.argument)
    if not await context.store.chats.resume(press.chat, chosen):
        return PressResult(context.texts.expired)
    conversations = await context.store.chats.conversations(press.chat, 100)
    title = next((c.title for c in conversations if c.id == chosen), "")
    return PressResult("", context.texts.resumed.format(title=title or "…"))


async def export(context: HandlerContext, call: CommandCall) -> None:
    """Notes and conversations of this chat, as Markdown to read and as JSON."""
    chat, now = call.chat, await context.local_time(call.chat)
    exported = await ChatMemory(context.store, chat, str(now.tzinfo)).export()
    if not (exported["notes"] or exported["conversations"]):
        await context.send(chat, context.texts.nothing_said)
        return
    try:
        for suffix, form in ((".md", markdown), (".json", as_json)):
            text = await asyncio.to_thread(form, exported)
            file = BytesIO(text.encode("utf-8", "replace"))
            await context.channel.send_files(chat, [(file, f"chat-{now:%Y-%m-%d}{suffix}")], "")
    except ChannelError as error:
        await context.send(chat, context.texts.undeliverable.format(why=error))


def continue_keyboard(reply: TurnReply, texts: Texts) -> Keyboard:
    """The buttons of a finished turn's reply: [Continue] where it ended at a limit."""
    if reply.reason not in CONTINUABLE:
        return ()
    return [[Button(f"{CONTINUE}:{reply.turn}", texts.go_on)]]


async def press_continue(context: HandlerContext, press: ButtonPress) -> PressResult:
    """The next turn, as if the person had said so; once, and only while nothing came after that turn."""
    turns = context.store.turns
    last = await turns.last(press.chat)
    if last is None or last[0].id != press.argument or await turns.unfinished(press.chat):
        return PressResult(context.texts.expired)
    incoming = Incoming(
        press.chat,
        context.channel.source,
        f"{CONTINUE}:{press.argument}",
        context.texts.go_on,
        sender=press.sender.name if press.sender.group else "",
    )
    fresh = await context.services.chats.submit(incoming)
    return PressResult(context.texts.goes_on if fresh else context.texts.expired)
