"""Inline and guest queries, from chats that the bot is not in. "@bot disk?" offers an owner lines about the
machine, to be sent there; a guest query is declined in one line.

They begin no turn: Telegram waits only seconds for the answer, and the bot has no chat to answer in.
"""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress

from telegram import Bot, InlineQuery, InlineQueryResultArticle, InputTextMessageContent
from telegram.error import TelegramError

from agent.language import speaking, translate_phrase
from agent.sandbox.host_report import HostReport
from backend.protocol import Phrase, Status
from bot.commands.context import HandlerContext
from bot.commands.status import backend_status

STATUS_SECONDS = 2.0
ANSWER_SECONDS = 5.0
ALIKE = {"ram": "memory", "space": "disk", "storage": "disk", "cpu": "load", "host": "name"}
LEFT_OUT = "charts"  # what only the agent needs


async def offer_facts(context: HandlerContext, query: InlineQuery) -> None:
    """Answer an inline query with the facts that its words name, or with all; Telegram caches none."""
    state = context.services.state
    status = None
    with suppress(TimeoutError):
        async with asyncio.timeout(STATUS_SECONDS):
            status = await backend_status(context)
    report = HostReport(state, context.timezone, status if isinstance(status, Status) else None)
    chat = context.channel.private_chat(str(query.from_user.id))
    with speaking(await context.chosen_language(chat)):
        lines = facts(await asyncio.to_thread(report.lines), query.query)
    results = [
        InlineQueryResultArticle(
            id=str(number),
            title=named(line)[0],
            description=named(line)[1],
            input_message_content=InputTextMessageContent(line),
        )
        for number, line in enumerate(lines)
    ]
    with suppress(TelegramError):  # too late: the person has gone on writing
        await query.answer(results, cache_time=0, is_personal=True, read_timeout=ANSWER_SECONDS)


async def decline_guest(bot: Bot, query: str, told: str) -> None:
    """Answer a guest query with a text, which Telegram shows in that chat. Errors are ignored."""
    result = InlineQueryResultArticle("no", told, InputTextMessageContent(told))
    with suppress(TelegramError):
        await bot.answer_guest_query(query, result, read_timeout=ANSWER_SECONDS)


def facts(report: Sequence[Phrase], words: str) -> list[str]:
    """The report's lines ("disk /: 200.0 GiB total") that have one of the words in their names, in the language
    spoken or in English; all lines if none has."""
    told = {translate_phrase(line): line for line in report if not line.startswith(LEFT_OUT)}
    asked = {ALIKE.get(word, word) for word in words_of(words)}
    meant = [n for n, line in told.items() if asked & words_of(f"{named(n)[0]} {named(line)[0]}")]
    return meant or [*told]


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def named(line: str) -> tuple[str, str]:
    """The name of a fact, and the fact."""
    name, fact = re.split(r"\s*[:：]\s*", line, maxsplit=1)
    return name, fact
