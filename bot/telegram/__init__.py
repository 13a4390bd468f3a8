"""Telegram: updates to messages, commands and presses; messages and live views to the Bot API.

app.py               the app: connect, listen, shut down
handlers.py          the one table of handlers, and a short function for each kind of update but messages
inline.py            inline and guest queries, from chats that the bot is not in
updates.py           long polling or a webhook; an update is acknowledged once it is handled
incoming_message.py  a message: whether it is for the bot, and its row of the inbox
channel.py           texts in parts, files, edits, reactions
live.py              the live view of a turn
message_calls.py     Bot API calls on messages: chats by key, rate limits, errors
connection.py        how calls reach the server
markdown.py          Markdown to styled text
styled.py            styled text: building it, cutting it, Telegram's form of it
"""

import os
import sys

# httpx offers a command line and imports click, pygments and rich for it: 0.2 s of every start.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
# Without it python-telegram-bot warns of each duration that it gives in seconds.
os.environ.setdefault("PTB_TIMEDELTA", "1")

# python-telegram-bot decrypts passports with `cryptography` if it is installed, as it is for Matrix and
# MCP. The bot asks nobody for a passport: without it, it is 6 MiB smaller and starts 25 ms sooner.
if "cryptography" not in sys.modules:
    sys.modules["cryptography"] = None  # type: ignore[assignment]
    import telegram._passport.credentials  # noqa: F401

    del sys.modules["cryptography"]
