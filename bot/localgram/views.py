"""What the chat page is told: the Bot API's own shapes, and what only a client knows."""

import time
from dataclasses import asdict

from bot.localgram.chat import Chat, message_json
from bot.localgram.feed import (
    Acted,
    Answered,
    Changed,
    Deleted,
    Drafted,
    DraftEnded,
    Edited,
    Event,
    Posted,
    Reacted,
)
from bot.localgram.message import Account, Message
from bot.localgram.wire import Json
from bot.localgram.world import World

SHOWN = 200  # messages of a chat, the newest


def message_view(chat: Chat, message: Message, me: Account) -> Json:
    return {
        **message_json(message, chat),
        "out": message.sender.id == me.id,
        "reactions": [{"emoji": emoji, "mine": user == me.id} for user, emoji in message.reactions],
    }


def chat_view(world: World, chat: Chat, me: Account) -> Json:
    """The head of a person's private chat."""
    return {
        "title": world.bot.first_name,
        "greeting": world.text("description", me.language),
        "commands": world.commands_in(chat, me.language),
        "blocked": chat.status == "kicked",
    }


def home_view(world: World, chat: Chat, me: Account) -> Json:
    """The whole chat. `event` is the number after which the page goes on listening to `feed`."""
    going_on: list[Drafted | Acted] = [*chat.draft.values(), *chat.action.values()]
    waiting = [event for event in going_on if event.until > time.time()]
    return {
        "me": me.json(),
        "view": chat_view(world, chat, me),
        "messages": [message_view(chat, each, me) for each in [*chat.messages.values()][-SHOWN:]],
        "waiting": [event_view(world, chat, event, me) for event in waiting],
        "feed": chat.feed.name,
        "event": chat.feed.last,
    }


def event_view(world: World, chat: Chat, event: Event, me: Account) -> Json:
    """One line of the event stream."""
    match event:
        case Posted(message):
            return {"event": "posted", "message": message_view(chat, message, me)}
        case Edited(message) | Reacted(message):
            return {"event": "edited", "message": message_view(chat, message, me)}
        case Deleted(ids=ids):
            return {"event": "deleted", "ids": list(ids)}
        case Drafted() | Acted():
            fields = asdict(event)
            fields["seconds"] = max(0.0, fields.pop("until") - time.time())
            return {"event": "drafted" if isinstance(event, Drafted) else "acted", **fields}
        case DraftEnded(thread=thread):
            return {"event": "draft_ended", "thread": thread}
        case Answered(query=query, text=text, alert=alert, url=url):
            return {"event": "answered", "query": query, "text": text, "alert": alert, "url": url}
        case Changed():
            return {"event": "changed", "view": chat_view(world, chat, me)}
