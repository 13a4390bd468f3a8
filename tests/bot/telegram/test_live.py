"""Against Telegram itself, where a token is given.

    TELEGRAM_TEST_TOKEN=123:abc TELEGRAM_TEST_CHAT=111 pytest -m live

The chat is a person who has started the bot.
"""

import os

import pytest
from telegram import Bot

from bot.channel import Choice, OutgoingMessage, Step, View
from bot.telegram.channel import TelegramChannel
from bot.telegram.pacer import Pacers

TOKEN, CHAT = os.environ.get("TELEGRAM_TEST_TOKEN"), os.environ.get("TELEGRAM_TEST_CHAT")

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not (TOKEN and CHAT), reason="needs TELEGRAM_TEST_TOKEN and _CHAT"),
]


async def test_what_a_turn_sends_is_taken() -> None:
    async with Bot(TOKEN or "") as bot:
        post, chat = TelegramChannel(bot, Pacers()), f"tg:{CHAT}"
        await post.typing(chat)
        live = post.live(chat)
        await live.show(View((Step("c", "bash", "df -h", "ok", "12 GB free"),), "**Look"))
        live.close(View())
        await live.settle(View((Step("c", "bash", "df -h", "ok", "12 GB free"),)))
        text = "**Bold**, `code`, [link](https://example.org)\n\n|a|b|\n|-|-|\n|1|2|\n"
        (message,) = await post.send(chat, OutgoingMessage(text, [[Choice("x:1", "A button")]]))
        await post.edit(chat, message, "Edited.")
        assert int(message) > 0
