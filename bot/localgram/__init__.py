"""A local Bot API server with a chat page: for the demo, the tests and the benches.

It speaks the Bot API over HTTP on loopback, keeps everything in memory, and is not Telegram;
README.md says what in it is assumed.

server.py wire.py    Localgram, the whole server; the Bot API's calls, their form and errors
methods.py           the methods that the bot calls
world.py chat.py message.py
                     the server's state, and the queue behind getUpdates
person.py feed.py    what people do and see, for tests and for the page
page.py              the chat page and its requests
"""

from bot.localgram.chat import Chat, Topic
from bot.localgram.message import Message
from bot.localgram.person import Person
from bot.localgram.server import Localgram

__all__ = ["Chat", "Localgram", "Message", "Person", "Topic"]
