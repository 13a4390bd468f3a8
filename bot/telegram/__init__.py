"""Telegram: updates to messages, commands and presses; messages and live views to the Bot API.

app.py               the app: connecting, listening, the end
handlers.py          the one table of handlers, one short function per kind of update
inline.py            in chats that the bot is not in: facts for an owner who writes "@bot disk?", guests declined
update_gate.py       an update is acknowledged once it is handled
updates.py           long polling or a webhook, and what is wrong with it
incoming_message.py  a message as a row of the inbox
channel.py           texts in parts, files, edits, reactions
live.py              the live view of a turn
message_calls.py     Bot API calls on messages: chats by key, each at its chat's pace, errors
pacer.py             when something may be sent
connection.py        how calls reach the server
markdown.py          Markdown to styled text
rich.py              answers with tables or headings as rich messages
styled.py            styled text: building it, cutting it, Telegram's form of it
"""

import os
import sys

# httpx offers a command line and imports click, pygments and rich for it: 0.2 s of every start.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
# python-telegram-bot warns of every number of seconds until it may give timedeltas.
os.environ.setdefault("PTB_TIMEDELTA", "1")

# python-telegram-bot decrypts passports with `cryptography` where that is there, as it is for Matrix
# and MCP. Nobody is asked for a passport: without it the bot is 6 MiB smaller and starts 25 ms sooner.
if "cryptography" not in sys.modules:
    sys.modules["cryptography"] = None  # type: ignore[assignment]
    import telegram._passport.credentials  # noqa: F401

    del sys.modules["cryptography"]
