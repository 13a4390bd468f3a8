"""A local Bot API server with a chat page: for the demo, the tests and the benches.

It speaks the Bot API over HTTP on loopback, keeps everything in memory, and is not Telegram;
README.md says what in it is assumed.

    wire, forms     the envelope; how a request becomes a call
    dispatch        one call, through faults and flood control
    methods/        the Bot API's methods, by family
    world           everything the server knows: chat, message, people, files, profile
    updates         the queue behind getUpdates
    person, speech  what people do, for tests and for the page
    server, page    HTTP
    gram            Localgram, which is all of it
"""

from bot.localgram.chat import Chat, Topic
from bot.localgram.clock import VirtualClock
from bot.localgram.flood import Limits
from bot.localgram.gram import Localgram
from bot.localgram.message import Message
from bot.localgram.person import Person, is_final

__all__ = ["Chat", "Limits", "Localgram", "Message", "Person", "Topic", "VirtualClock", "is_final"]
