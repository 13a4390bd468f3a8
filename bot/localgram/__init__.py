"""A local Bot API server with a chat page: for the demo, the tests and the benches.

It speaks the Bot API over HTTP on loopback, keeps everything in memory, and is not Telegram;
README.md says what in it is assumed.

server.py page.py visitor.py views.py  HTTP: the Bot API, the chat page and its requests
wire.py forms.py dispatch.py           calls: their form and errors, the way through faults and flood control
methods/                               the Bot API's methods, by family
world.py chat.py membership.py message.py people.py profile.py files.py queries.py
                                       the server's state
entities.py nesting.py tdlib.py reactions.py pictures.py
                                       what Telegram makes of texts, reactions and pictures
updates.py webhook.py                  the queue behind getUpdates; delivery to a webhook
person.py feed.py                      what people do and see, for tests and for the page
faults.py flood.py clock.py            faults on demand, flood control, the time
gram.py                                Localgram, the whole server
"""

from bot.localgram.chat import Chat, Topic
from bot.localgram.clock import VirtualClock
from bot.localgram.flood import Limits
from bot.localgram.gram import Localgram
from bot.localgram.message import Message
from bot.localgram.person import Person, is_final

__all__ = ["Chat", "Limits", "Localgram", "Message", "Person", "Topic", "VirtualClock", "is_final"]
