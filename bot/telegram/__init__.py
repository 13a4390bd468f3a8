"""Telegram: the Bot API's updates to turns, events to messages.

app.py       the application: start, polling, the one table of handlers
intake.py    an update becomes an inbox row; who may speak
post.py      the channel: sends, edits, drafts, files
pacer.py     when something may be sent
render.py    Markdown to text and entities; page.py does it, loaded with the first text
"""

import os
import sys

# httpx offers a command line and imports click, pygments and rich for it: 0.2 s of every start.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
# python-telegram-bot warns of every number of seconds until it may give timedeltas.
os.environ.setdefault("PTB_TIMEDELTA", "1")
