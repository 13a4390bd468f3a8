"""Against Telegram itself, where a token is given.

    TELEGRAM_TEST_TOKEN=123:abc TELEGRAM_TEST_CHAT=111 pytest -m live

The chat is a person who has started the bot.
"""

import os
from pathlib import Path

import pytest
from telegram import Bot

from agent.leaks import LeakDetector
from agent.store import open_store
from bot.channel import Button, OutgoingMessage, ToolCallView, TurnView, send
from bot.telegram.channel import TelegramChannel
from bot.telegram.live import LiveMessageStore
from bot.telegram.message_calls import MessageCalls, Pacers

TOKEN, CHAT = os.environ.get("TELEGRAM_TEST_TOKEN"), os.environ.get("TELEGRAM_TEST_CHAT")

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not (TOKEN and CHAT), reason="needs TELEGRAM_TEST_TOKEN and _CHAT"),
]


async def test_what_a_turn_sends_is_taken(tmp_path: Path) -> None:
    async with Bot(TOKEN or "") as bot, open_store(tmp_path / "voltaire.db") as store:
        unfinished = LiveMessageStore(store.key_values)
        calls, chat = MessageCalls(bot, Pacers()), f"tg:{CHAT}"
        channel = TelegramChannel(calls, unfinished, LeakDetector())
        await channel.typing(chat)
        live = channel.live_view(chat)
        steps = (ToolCallView("c", "bash", "df -h", "ok", "12 GB free"),)
        await live.show(TurnView(steps, "**Look"))
        live.close(TurnView())
        await live.finish(TurnView(steps))
        text = "**Bold**, `code`, [link](https://example.org)\n\n|a|b|\n|-|-|\n|1|2|\n"
        message = OutgoingMessage(text, [[Button("x:1", "A button")]])
        (sent,) = await send(channel, chat, message)
        await channel.edit(chat, sent, "Edited.")
        assert int(sent) > 0
