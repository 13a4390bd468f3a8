"""/trust: text of strangers in a chat, and an owner's word that it is theirs."""

import re

from bot.chat_trust import ChatTrust
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult

# "This page is mine", "I trust that file": such words bring the buttons; only a press vouches.
VOUCHING = re.compile(
    r"\b(?:this|that|these|those|it|the (?:page|file|document|message|picture|repo(?:sitory)?))\b.{0,30}"
    r"\b(?:is|are) (?:mine|ours|from me|by me)\b|\b(?:i|you can) trust (?:this|that|it|these|those|the)\b",
    re.IGNORECASE,
)


async def trust(context: HandlerContext, call: CommandCall) -> None:
    await context.send(call.chat, *await (await of_chat(context, call.chat)).report())


async def offer(context: HandlerContext, chat: str, words: str) -> None:
    """Show the buttons where an owner's words claim a stranger's text as their own."""
    if VOUCHING.search(words) and await context.store.taints.of_chat(chat):
        await context.send(chat, *await (await of_chat(context, chat)).report())


async def press_trust(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Vouch, and show what is left."""
    chat = await of_chat(context, press.chat)
    done = await chat.vouch(press.argument, press.sender.name)
    return PressResult(context.texts.vouched if done else context.texts.expired, later=chat.report)


async def of_chat(context: HandlerContext, chat: str) -> ChatTrust:
    sandbox, zone = context.services.sandbox, str((await context.local_time(chat)).tzinfo)
    files = (await sandbox(chat)).files if sandbox else None
    return ChatTrust(chat, context.store, files, context.texts, zone)
